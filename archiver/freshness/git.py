"""Ask git about a repository that nobody trusts: nothing its configuration names is ever run.

Two measures. Questions about commits run with everything overridden that a repository's configuration can
make git start (fsmonitor, hooks, transports, pagers), and never touch a file of the work tree. The one
question that does, whether the tree is dirty, would run clean filters: it is asked through a private git
folder with a configuration of our own, so the repository's is not even read.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from archiver.freshness.git_private import private_folder

OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_MAX_OUTPUT = 1 << 16

# In the order git applies them these beat the repository's own files. `safe.directory` lets us look at other
# people's repositories: what it protects from, the next lines switch off.
_OVERRIDES = {
    "safe.directory": "*",
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class GitError(Exception):
    """Git cannot answer; the text says why. Stays inside this package."""


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
        status, out = self._run("symbolic-ref", "--quiet", "--short", "HEAD")
        return out.decode("utf-8", "replace").strip() or None if status == 0 else None

    def tip(self, ref: str) -> str | None:
        """The object that a whole name of a ref, such as `refs/heads/main`, stands for here."""
        status, out = self._run("show-ref", "--verify", "--hash", "--", ref)
        found = out.decode("ascii", "replace").strip()
        return found if status == 0 and OBJECT_ID.fullmatch(found) else None

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

    def distance(self, ours: str, theirs: str) -> Distance:
        """How many commits `ours` has that `theirs` has not, and the other way round."""
        span = f"{_checked(ours)}...{_checked(theirs)}"
        status, out = self._run("rev-list", "--left-right", "--count", "--end-of-options", span, "--")
        counts = out.split()
        if status != 0 or len(counts) != 2:
            raise GitError("git cannot compare the two commits")
        return Distance(int(counts[0]), int(counts[1]))

    def dirty(self) -> bool | None:
        """Whether files differ from HEAD or are untracked; None where that cannot be found out safely.

        Submodules are not entered, and content filters such as LFS are not run: a file that only a filter
        can compare counts as changed.
        """
        try:
            _, status, out = self._status("--untracked-files=normal", limit=1)
        except NoRepositoryError:
            return None
        return None if status != 0 else bool(out)

    def changed(self, limit: int) -> tuple[Path, list[bytes]]:
        """The work tree, and the names in it of files that differ from HEAD or are untracked.

        As `dirty`, every untracked file by itself. `GitError` when the names have more than `limit` bytes.
        """
        tree, status, out = self._status("--untracked-files=all", "-z", limit=limit)
        if status != 0:
            raise GitError("git cannot compare the work tree")
        if len(out) >= limit:
            raise GitError("too many files have uncommitted changes")
        names = sorted({entry[3:] for entry in out.split(b"\0") if len(entry) > 3})
        if any(name.startswith(b"/") or b".." in name.split(b"/") for name in names):
            raise GitError("the index names files outside the work tree")
        return tree, names

    @property
    def deadline(self) -> float:
        """The moment of the monotonic clock at which questions end."""
        return self._deadline

    def _status(self, *arguments: str, limit: int) -> tuple[Path, int, bytes]:
        """Work tree, exit status and output of `git status`, through a git folder of our own."""
        head = self.head()
        if head is None and not self.is_unborn():
            raise NoRepositoryError("HEAD leads to no commit")
        tree = self._tree()
        common = self._ask_path("--git-common-dir")
        sha256 = len(head) == 64 if head else self._is_sha256()
        with tempfile.TemporaryDirectory(prefix="archiver-git-") as private:
            environ = private_folder(Path(private), head, tree, self.git_folder, common, sha256=sha256)
            status, out = self._run(
                "status", "--porcelain", "--ignore-submodules=all", "--no-renames", *arguments,
                environ=environ, limit=limit,
            )  # fmt: skip
        return tree, status, out

    def _tree(self) -> Path:
        """The work tree around the folder; its configuration may not name another one."""
        tree = self._ask_path("--show-toplevel")
        if not self._folder.resolve().is_relative_to(tree.resolve()) or not (tree / ".git").exists():
            raise NoRepositoryError(f"the repository at {self._folder} has its work tree elsewhere")
        return tree

    def _is_sha256(self) -> bool:
        _, out = self._run("rev-parse", "--show-object-format")
        return out.strip() == b"sha256"

    def _ask_path(self, question: str) -> Path:
        status, out = self._run("rev-parse", "--path-format=absolute", question)
        if status != 0 or not out.endswith(b"\n"):
            raise NoRepositoryError(f"there is no git repository at {self._folder}")
        return Path(os.fsdecode(out[:-1]))

    def _run(
        self, *arguments: str, environ: dict[str, str] | None = None, limit: int = _MAX_OUTPUT
    ) -> tuple[int, bytes]:
        """Exit status and the beginning of the output; `GitError` past the deadline."""
        environ = environ or self._place
        place = [] if environ else ["-C", str(self._folder)]
        overrides = [part for item in _OVERRIDES.items() for part in ("-c", "=".join(item))]
        command = [_git(), *overrides, "--no-pager", "--no-replace-objects", *place, *arguments]
        with subprocess.Popen(  # noqa: S603 - an absolute program, a list of arguments, no shell
            command,
            cwd="/",
            env=_environ() | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return _collect(process, self._deadline, limit)
            finally:
                _end(process)


def _collect(process: subprocess.Popen[bytes], deadline: float, limit: int) -> tuple[int, bytes]:
    """At most `limit` bytes of output; reading stops there and the process counts as successful."""
    assert process.stdout is not None  # noqa: S101 - opened as a pipe above
    out = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(out) < limit:
            if not selector.select(max(0.0, deadline - monotonic())):
                raise GitError("git did not answer in time")
            chunk = os.read(process.stdout.fileno(), limit - len(out))
            if not chunk:
                break
            out += chunk
        else:
            return 0, bytes(out)
    try:
        return process.wait(max(0.0, deadline - monotonic())), bytes(out)
    except subprocess.TimeoutExpired:
        raise GitError("git did not answer in time") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _git() -> str:
    """The absolute program; a relative entry in PATH could name one inside the suspect folder."""
    path = os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute())
    found = shutil.which("git", path=path)
    if found is None:
        raise GitError("git is not installed on this machine")
    return found


def _environ() -> dict[str, str]:
    """A fresh environment: no variable of the caller steers git."""
    return {
        "PATH": os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute()),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


def _checked(commit: str) -> str:
    """The object id itself; anything else could be an option or an expression."""
    if not OBJECT_ID.fullmatch(commit):
        raise GitError("the record does not hold a commit id")
    return commit
