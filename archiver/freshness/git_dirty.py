"""Probe `git_dirty`: whether the uncommitted changes of the work tree are those of the checkpoint."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from archiver.freshness import digests
from archiver.freshness.git_commit import ELSEWHERE, SHARE
from archiver.freshness.probe import Context
from archiver.freshness.verdict import State, Verdict
from archiver.git import worktree
from archiver.git.repository import GitError, Repository
from archiver.model import JsonValue
from archiver.safetext import shorten

MAX_NAMES = 2 << 20
"""Bytes of the list of all changed files."""
MAX_REPOSITORIES = 64
"""Repositories inside the work tree, however deep."""
MAX_FILES = 2000
MAX_CONTENT = 64 << 20
"""Bytes of all changed files together."""
_CHUNK = 1 << 20
_LISTED = 8
_MAX_NAME = 120
_ACCEPT = "`--accept git_dirty` goes on anyway"


class GitDirtyProbe:
    """FRESH with no changes or the same ones, STALE with others, UNKNOWN when they are too large.

    What lies in the work tree counts, whether it is staged or not, and what lies in the index alone; so do
    repositories inside this one, with what lies in them. Ignored files do not.
    """

    name = "git_dirty"

    def capture(self, context: Context) -> JsonValue | None:
        """`{count, files, digest}`: the first names, and a guarded digest of names, modes and contents.

        `absent` is there where files are left out of the work tree, as in a sparse checkout. `{unread}` says
        why there is none. None without a repository.
        """
        if context.workspace is None:
            return None
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
        except (GitError, OSError):
            return None
        try:
            found = uncommitted(repository, context.apart)
        except (GitError, OSError) as error:
            return {"unread": _said(error)}
        return {
            "count": len(found.names),
            "files": [_shown(name) for name in found.names[:_LISTED]],
            "digest": digests.guarded(found.content) if found.names else None,
            **(
                {"absent": {"count": found.absent, **digests.guarded(found.left_out)}} if found.absent else {}
            ),
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict):
            raise TypeError("the record holds no changes")
        if "unread" in captured:
            return self._answer("UNKNOWN", f"not looked at when it was saved: {captured['unread']}", None)
        count = captured.get("count")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise TypeError("the record does not hold how many files had changes")
        if context.workspace is None:
            return self._answer("UNKNOWN", "no workspace folder is known", ELSEWHERE)
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
            found = uncommitted(repository, context.apart)
        except (GitError, OSError) as error:
            return self._answer("UNKNOWN", f"cannot be compared: {_said(error)}", ELSEWHERE)
        names = found.names
        if not (names and count and digests.matches(found.content, captured.get("digest"))) and (
            names or count
        ):
            return self._differ(captured, count, names)
        if left_out := _left_out(captured.get("absent"), found):
            return self._answer("STALE", left_out, f"look at `git sparse-checkout list`; {_ACCEPT}")
        if not names:
            return self._answer("FRESH", "no uncommitted changes, then and now", None)
        return self._answer("FRESH", f"the same uncommitted changes in {_files(count)}", None)

    def _differ(self, captured: JsonValue, count: int, names: list[bytes]) -> Verdict:
        then = _listed(list(captured.get("files") or ()), count)
        now = _listed([_shown(name) for name in names[:_LISTED]], len(names))
        if not names:
            remedy = f"look for them in `git stash list` and `git log`; {_ACCEPT}"
            return self._answer("STALE", f"uncommitted changes then ({then}), none now", remedy)
        what = "other uncommitted changes" if count else "uncommitted changes that were not there"
        remedy = f"look at `git status` and `git diff HEAD`; {_ACCEPT}"
        return self._answer("STALE", f"{what}: then {then}, now {now}", remedy)

    def _answer(self, state: State, evidence: str, remedy: str | None) -> Verdict:
        return Verdict(probe=self.name, state=state, evidence=evidence, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What lies in a work tree beside what its commit says."""

    names: list[bytes]
    content: bytes
    """A digest of what lies under the names."""
    absent: int
    """How many files and submodules are left out of the work tree."""
    left_out: bytes
    """A digest of their names."""


def uncommitted(repository: Repository, apart: Sequence[Path] = ()) -> Uncommitted:
    """What differs, also in the repositories inside this one; `GitError` beyond the limits."""
    return _Look(apart, repository.deadline).at(repository)


class _Look:
    """One look at a work tree and at those inside it, with one limit for all of them together."""

    def __init__(self, apart: Sequence[Path], deadline: float) -> None:
        self._apart = [os.fsencode(path.resolve()) for path in apart]
        self._deadline = deadline
        self._left = MAX_CONTENT
        self._repositories = 0

    def at(self, repository: Repository) -> Uncommitted:
        changes = worktree.changes(repository, MAX_NAMES)
        tree = os.fsencode(changes.tree)
        inside: dict[bytes, bytes] = {}
        for name, commit in changes.modules.items():
            module = self._inside(tree + b"/" + name)
            if module is None:
                changes.absent.add(name)
            elif module[0] != commit or module[1].names or module[1].absent:
                inside[name] = _together(*module)
        names = sorted(
            name for name in changes.files.keys() | inside.keys() if self._counts(changes.tree, name)
        )
        if len(names) > MAX_FILES:
            raise GitError(f"more than {MAX_FILES} files have uncommitted changes")
        digest = hashlib.sha256()
        for name in names:
            kind, content = (b"repo", inside[name]) if name in inside else self._content(tree + b"/" + name)
            digest.update(b"%d:%s%s%s" % (len(name), name, kind, content))
            if only := changes.files.get(name):
                digest.update(b"index %d:%s" % (len(only), only))
        return Uncommitted(names, digest.digest(), changes.absent.count, changes.absent.names.digest())

    def _counts(self, tree: Path, name: bytes) -> bool:
        path = os.fsencode(tree.resolve()) + b"/" + name
        return not any(_is_in(path, folder) for folder in self._apart)

    def _inside(self, place: bytes) -> tuple[bytes, Uncommitted] | None:
        """Commit and changes of a repository inside; None where there is none."""
        path = Path(os.fsdecode(place))
        if path.is_symlink() or not os.path.lexists(path / ".git"):
            return None
        self._repositories += 1
        if self._repositories > MAX_REPOSITORIES:
            raise GitError(f"more than {MAX_REPOSITORIES} repositories lie in this one")
        repository = Repository(path, self._deadline - monotonic())
        if repository.tree().resolve() != path.resolve():
            raise GitError("a repository inside this one cannot be read")
        return (repository.head() or "").encode("ascii"), self.at(repository)

    def _content(self, place: bytes) -> tuple[bytes, bytes]:
        """Kind and SHA-256 of what bears the name: a file's content, a link's target, a repository."""
        path = Path(os.fsdecode(place))
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return b"gone", b"-" * 32
        if stat.S_ISLNK(status.st_mode):
            return b"link", hashlib.sha256(os.fsencode(path.readlink())).digest()
        if stat.S_ISDIR(status.st_mode) and (inside := self._inside(place)):
            return b"repo", _together(*inside)
        if not stat.S_ISREG(status.st_mode):  # a folder, a pipe: only that it is there
            return b"else", b"-" * 32
        if status.st_size > self._left:
            raise GitError(f"the uncommitted changes have more than {MAX_CONTENT >> 20} MiB")
        content = _hashed(path, self._left, self._deadline)
        self._left -= status.st_size
        return b"prog" if status.st_mode & stat.S_IXUSR else b"file", content


def _together(commit: bytes, found: Uncommitted) -> bytes:
    return hashlib.sha256(b"%s %s %s" % (commit, found.content, found.left_out)).digest()


def _left_out(then: JsonValue, now: Uncommitted) -> str | None:
    """How the files that are left out of the work tree differ from those of then; None where they do not.

    Where nothing is left out now, everything of the commit is here.
    """
    if not now.absent or (then is not None and digests.matches(now.left_out, then)):
        return None
    before = then.get("count") if isinstance(then, dict) else 0
    return f"other files of the commit are left out of the work tree: {before} then, {now.absent} now"


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


def _hashed(path: Path, left: int, deadline: float) -> bytes:
    digest = hashlib.sha256()
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while chunk := os.read(handle, _CHUNK):
            left -= len(chunk)
            if left < 0:
                raise GitError(f"the uncommitted changes have more than {MAX_CONTENT >> 20} MiB")
            if monotonic() > deadline:
                raise GitError("the uncommitted changes could not be read in time")
            digest.update(chunk)
    finally:
        os.close(handle)
    return digest.digest()


def _said(error: Exception) -> str:
    """Why, without paths of the machine that saved."""
    return str(error.strerror if isinstance(error, OSError) else error)


def _shown(name: bytes) -> str:
    return shorten(name.decode("utf-8", "backslashreplace"), _MAX_NAME)


def _listed(names: list[str], count: int) -> str:
    if not count:
        return "none"
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{_files(count)}: {', '.join(names)}{more}"


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
