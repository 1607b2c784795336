"""Probe `git_dirty`: whether the uncommitted changes of the work tree are those of the checkpoint."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from archiver.freshness import digests
from archiver.freshness.git import GitError, Repository
from archiver.freshness.git_commit import ELSEWHERE, SHARE
from archiver.freshness.probe import Context
from archiver.freshness.verdict import State, Verdict
from archiver.model import JsonValue
from archiver.safetext import shorten

MAX_NAMES = 1 << 20
"""Bytes of the names of all changed files."""
MAX_FILES = 2000
MAX_CONTENT = 64 << 20
"""Bytes of all changed files together."""
_CHUNK = 1 << 20
_LISTED = 8
_MAX_NAME = 120
_ACCEPT = "`--accept git_dirty` goes on anyway"


class GitDirtyProbe:
    """FRESH with no changes or the same ones, STALE with others, UNKNOWN when they are too large.

    What lies in the work tree counts, whether it is staged or not; ignored files and submodules do not.
    """

    name = "git_dirty"

    def capture(self, context: Context) -> JsonValue | None:
        """`{count, files, digest}`: the first names, and a guarded digest of names, modes and contents.

        `{unread}` says why there is none. None without a repository.
        """
        if context.workspace is None:
            return None
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
        except (GitError, OSError):
            return None
        try:
            names, content = uncommitted(repository, context.apart)
        except (GitError, OSError) as error:
            return {"unread": _said(error)}
        digest = digests.guarded(content) if names else None
        return {"count": len(names), "files": [_shown(name) for name in names[:_LISTED]], "digest": digest}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict):
            raise TypeError("the record holds no changes")
        if "unread" in captured:
            return self._answer("UNKNOWN", f"not looked at when it was saved: {captured['unread']}", None)
        count = captured.get("count")
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError("the record does not hold how many files had changes")
        if context.workspace is None:
            return self._answer("UNKNOWN", "no workspace folder is known", ELSEWHERE)
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
            names, content = uncommitted(repository, context.apart)
        except (GitError, OSError) as error:
            return self._answer("UNKNOWN", f"cannot be compared: {_said(error)}", ELSEWHERE)
        if not names and not count:
            return self._answer("FRESH", "no uncommitted changes, then and now", None)
        if names and count and digests.matches(content, captured.get("digest")):
            return self._answer("FRESH", f"the same uncommitted changes in {_files(count)}", None)
        return self._differ(captured, count, names)

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


def uncommitted(repository: Repository, apart: Sequence[Path] = ()) -> tuple[list[bytes], bytes]:
    """Names of the changed files, and a digest of what lies under them; `GitError` beyond the limits."""
    tree, names = repository.changed(MAX_NAMES)
    outside = [os.fsencode(path.resolve()) for path in apart]
    root = os.fsencode(tree.resolve())
    names = [name for name in names if not any(_is_in(root + b"/" + name, path) for path in outside)]
    if len(names) > MAX_FILES:
        raise GitError(f"more than {MAX_FILES} files have uncommitted changes")
    digest = hashlib.sha256()
    left = MAX_CONTENT
    for name in names:
        kind, size, content = _content(tree / os.fsdecode(name), left, repository.deadline)
        left -= size
        digest.update(b"%d:%s%s%s" % (len(name), name, kind, content))
    return names, digest.digest()


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


def _content(path: Path, left: int, deadline: float) -> tuple[bytes, int, bytes]:
    """Kind, size and SHA-256 of what bears the name: a file's content, a link's target, nothing else."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return b"gone", 0, b"-" * 32
    if stat.S_ISLNK(status.st_mode):
        return b"link", 0, hashlib.sha256(os.fsencode(path.readlink())).digest()
    if not stat.S_ISREG(status.st_mode):  # a repository inside this one, a pipe: only that it is there
        return b"else", 0, b"-" * 32
    if status.st_size > left:
        raise GitError(f"the uncommitted changes have more than {MAX_CONTENT >> 20} MiB")
    kind = b"prog" if status.st_mode & stat.S_IXUSR else b"file"
    return kind, status.st_size, _hashed(path, left, deadline)


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
