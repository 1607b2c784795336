"""Ask git about a repository that nobody trusts: nothing its configuration names is ever run.

Two measures. Questions about commits run with everything overridden that a repository's configuration can
make git start (fsmonitor, hooks, transports, pagers), and never touch a file of the work tree. The one
question that does, whether the tree is dirty, would run clean filters: it is asked through a private git
folder with a configuration of our own, so the repository's is not even read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from archiver.git.running import MAX_OUTPUT, GitError, Input, Run, collect

__all__ = ["OBJECT_ID", "Distance", "GitError", "NoRepositoryError", "Repository"]

OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_LINE_ENDS = {"core.autocrlf": ("true", "false", "input"), "core.eol": ("lf", "crlf", "native")}


class NoRepositoryError(GitError):
    """The folder is in no repository."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Commits that only one of two commits has in its history."""

    ahead: int
    behind: int


class Repository:
    """The repository around a folder, with one deadline for all questions asked of it."""

    def __init__(self, folder: Path, timeout: float, *, exactly: bool = False) -> None:
        """`exactly`: the folder itself is the repository, bare or with a `.git`; none around it is meant."""
        self._folder = folder.absolute()
        self._timeout = timeout
        self._deadline = monotonic() + timeout
        self._place: dict[str, str] = {}
        if not self._folder.is_dir():
            raise NoRepositoryError(f"there is no folder {self._folder} on this machine")
        if exactly:
            inner = self._folder / ".git"
            self._place = {"GIT_DIR": str(inner if inner.exists() else self._folder)}
        self.git_folder = self._ask_path("--git-dir")

    def head(self) -> str | None:
        """The commit that HEAD stands at; None before the first commit."""
        status, out = self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        found = out.decode("ascii", "replace").strip()
        return found if status == 0 and OBJECT_ID.fullmatch(found) else None

    def branch(self) -> str | None:
        """The branch that HEAD names; None when it is detached."""
        status, out = self._run("symbolic-ref", "--quiet", "HEAD")  # a short name depends on other refs
        return (
            out.decode("utf-8", "replace").strip().removeprefix("refs/heads/") or None
            if status == 0
            else None
        )

    def tip(self, ref: str) -> str | None:
        """The object that a whole name of a ref, such as `refs/heads/main`, stands for here."""
        status, out = self._run("show-ref", "--verify", "--hash", "--", ref)
        found = out.decode("ascii", "replace").strip()
        return found if status == 0 and OBJECT_ID.fullmatch(found) else None

    def refs(self, below: str, limit: int) -> dict[str, str]:
        """Names and objects of all refs below a prefix such as `refs/remotes/`; `GitError` beyond the limit.

        Symbolic ones are among them, and what they lead to.
        """
        status, out = self._run("for-each-ref", "--format=%(objectname) %(refname)", below, limit=limit)
        if status != 0 or len(out) >= limit:
            raise GitError("the refs cannot be listed")
        lines = (line.partition(b" ") for line in out.split(b"\n") if line)
        return {os.fsdecode(name): found.decode("ascii", "replace") for found, _, name in lines}

    def upstream(self) -> tuple[str, str] | None:
        """Address and ref that HEAD's branch follows, else the same branch of `origin`; None without one.

        As the repository's own file writes them, which nobody trusts.
        """
        branch = self.branch()
        if branch is None:
            return None
        remote = self._setting(f"branch.{branch}.remote") or "origin"
        address = self._setting(f"remote.{remote}.url")
        ref = self._setting(f"branch.{branch}.merge") or f"refs/heads/{branch}"
        return None if address is None else (address, ref)

    def _setting(self, key: str) -> str | None:
        """The first value of a key in the repository's file; files that it includes are not read."""
        status, out = self._run("config", "--local", "--no-includes", "-z", "--get-all", key)
        return out.split(b"\0")[0].decode("utf-8", "replace") or None if status == 0 else None

    def is_unborn(self) -> bool:
        """Whether HEAD names a branch that has no commit yet; a HEAD that leads nowhere is broken instead."""
        named, _ = self._run("symbolic-ref", "--quiet", "HEAD")
        leads, _ = self._run("rev-parse", "--verify", "--quiet", "HEAD")
        return named == 0 and leads != 0

    def is_shallow(self) -> bool:
        """Whether the history here was cut, so that distances cannot be told."""
        status, out = self._run("rev-parse", "--is-shallow-repository")
        return status == 0 and out.strip() == b"true"

    def has_branch(self, branch: str) -> bool:
        """Whether there is a branch of this name."""
        status, _ = self._run("show-ref", "--verify", "--quiet", f"refs/heads/{branch}")
        return status == 0

    def has_commit(self, commit: str) -> bool:
        """Whether the commit is here; nothing is fetched to find out."""
        status, _ = self._run("cat-file", "-e", f"{_checked(commit)}^{{commit}}")
        return status == 0

    def committed_at(self, commit: str) -> datetime | None:
        """When the commit was made, as it says of itself; None where it is not here."""
        status, out = self._run("cat-file", "commit", _checked(commit))
        header = out.split(b"\n\n", 1)[0]
        found = re.search(rb"^committer [^\n]*> ([0-9]{1,11}) [+-][0-9]{4}$", header, re.MULTILINE)
        return datetime.fromtimestamp(int(found[1]), UTC) if status == 0 and found else None

    def distance(self, ours: str, theirs: str) -> Distance:
        """How many commits `ours` has that `theirs` has not, and the other way round."""
        span = f"{_checked(ours)}...{_checked(theirs)}"
        status, out = self._run("rev-list", "--left-right", "--count", "--end-of-options", span, "--")
        counts = out.split()
        if status != 0 or len(counts) != 2:
            raise GitError("git cannot compare the two commits")
        return Distance(int(counts[0]), int(counts[1]))

    @property
    def deadline(self) -> float:
        """The moment of the monotonic clock at which questions end."""
        return self._deadline

    @property
    def common_folder(self) -> Path:
        """The git folder that all work trees of the repository share."""
        return self._ask_path("--git-common-dir")

    def tree(self) -> Path:
        """The work tree around the folder; its configuration may not name another one."""
        tree = self._ask_path("--show-toplevel")
        if not self._folder.resolve().is_relative_to(tree.resolve()) or not (tree / ".git").exists():
            raise NoRepositoryError(f"the repository at {self._folder} has its work tree elsewhere")
        return tree

    def is_sha256(self) -> bool:
        """Whether its objects are named by SHA-256."""
        _, out = self._run("rev-parse", "--show-object-format")
        return out.strip() == b"sha256"

    def line_ends(self) -> dict[str, str]:
        """How the repository's own file says that line ends are converted: words that start no program."""
        found = {key: self._setting(key) for key in _LINE_ENDS}
        return {key: said for key, said in found.items() if said and said.lower() in _LINE_ENDS[key]}

    def settings(self, pattern: str, limit: int = MAX_OUTPUT) -> list[tuple[str, str]]:
        """Keys that match a pattern, and their values, in the repository's file; includes are not read."""
        status, out = self._run(
            "config", "--local", "--no-includes", "-z", "--get-regexp", pattern, limit=limit
        )
        entries = (entry.decode("utf-8", "replace").partition("\n") for entry in out.split(b"\0") if entry)
        return [(key, value) for key, _, value in entries] if status == 0 else []

    def privately(
        self,
        environ: dict[str, str],
        *arguments: str,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
        stdin: Input = None,
    ) -> tuple[int, bytes]:
        """As all questions are asked, through the git folder that `environ` names."""
        return self._run(*arguments, environ=environ, limit=limit, sink=sink, stdin=stdin)

    def streamed(
        self, environ: dict[str, str], *arguments: str, stdin: Input = None
    ) -> Generator[bytes, None, None]:
        """A large output piece by piece, with the whole time limit for git alone; `GitError` if it fails."""
        run = Run(arguments, environ, monotonic() + self._timeout)
        yield from run.pieces(stdin, patient=True)
        if run.status != 0:
            raise GitError("git cannot read what it was asked for")

    def _ask_path(self, question: str) -> Path:
        status, out = self._run("rev-parse", "--path-format=absolute", question)
        if status != 0 or not out.endswith(b"\n"):
            raise NoRepositoryError(f"there is no git repository at {self._folder}")
        return Path(os.fsdecode(out[:-1]))

    def _run(
        self,
        *arguments: str,
        environ: dict[str, str] | None = None,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
        stdin: Input = None,
    ) -> tuple[int, bytes]:
        """Exit status and the beginning of the output; `GitError` past the deadline.

        All of the output goes to `sink` where there is one, piece by piece. A run that is ended at the limit
        counts as successful.
        """
        environ = environ or self._place
        place = [] if environ else ["-C", str(self._folder)]
        run = Run([*place, *arguments], environ, self._deadline)
        out = collect(run.pieces(stdin), limit, sink)
        return run.status, out


def _checked(commit: str) -> str:
    """The object id itself; anything else could be an option or an expression."""
    if not OBJECT_ID.fullmatch(commit):
        raise GitError("the record does not hold a commit id")
    return commit
