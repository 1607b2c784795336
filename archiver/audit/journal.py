"""The local file: a JSON line an action, each with the digest of the line before, so that a change shows.

    {…,"previous":null}⏎  {…,"previous":SHA-256 of the first line}⏎  …

Lines are ASCII, so that nothing in them steers a terminal. Each is written and synced in one piece under a
lock; one that a killed process left without its end is ended by the next, whose `previous` covers it. The
first line of a new file goes on from the last of `FILE.1`, the name that log rotation gives the old one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver.config import state_home
from archiver.errors import ArchiverError, AuditError

if TYPE_CHECKING:
    from archiver.config import Settings

FILE_NAME: Final = "audit.jsonl"
PATIENCE: Final = 30.0
"""Seconds to wait for another process that holds the file; it needs milliseconds unless it was stopped."""

_PAUSE = 0.01
_BLOCK = 64 << 10
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


def place(settings: Settings) -> Path:
    """Where the lines go."""
    return settings.audit.file or state_home() / FILE_NAME


def append(path: Path, document: Callable[[str | None], dict[str, Any]]) -> None:
    """Write one line, durable when this returns; `document` is given the digest of the line before.

    `AuditError` if it cannot be written; then the file is as it was.
    """
    try:
        _make_folder(path.parent)
        with _held(path) as handle:
            end = os.fstat(handle).st_size
            previous, torn = last(handle, end)
            if previous is None:
                previous = before(path)
            data = (b"\n" if torn else b"") + text(document(previous)) + b"\n"
            try:
                _write(handle, data)
                os.fsync(handle)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(handle, end)
                raise
    except OSError as error:
        raise _refused(path, error.strerror or str(error), full=error.errno in _FULL) from error
    except ValueError as error:  # a NUL in the name
        raise _refused(path, str(error)) from error
    except ArchiverError as error:
        if isinstance(error, AuditError):
            raise
        raise _refused(path, str(error)) from error


def text(document: dict[str, Any]) -> bytes:
    """A document as one ASCII line; the keys stay in their order."""
    line = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return line.replace("\x7f", "\\u007f").encode("ascii")


def new_digest() -> hashlib._Hash:
    """What the next line says of a line is made with this, from its bytes without the line end."""
    return hashlib.sha256()


def last(handle: int, end: int) -> tuple[str | None, bool]:
    """The digest of the last line of an open file, None if there is none; and whether its end is missing."""
    if not end:
        return None, False
    torn = os.pread(handle, 1, end - 1) != b"\n"
    stop = end if torn else end - 1
    start = stop
    while start:
        block = os.pread(handle, min(_BLOCK, start), max(0, start - _BLOCK))
        found = block.rfind(b"\n")
        if found >= 0:
            start = start - len(block) + found + 1
            break
        start -= len(block)
        if not block:
            break
    sha256 = new_digest()
    for at in range(start, stop, _BLOCK):
        sha256.update(os.pread(handle, min(_BLOCK, stop - at), at))
    return sha256.hexdigest(), torn


def before(path: Path) -> str | None:
    """The digest of the last line of the file before this one, if log rotation has left it there."""
    try:
        handle = os.open(older(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        return last(handle, status.st_size)[0] if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(handle)


def older(path: Path) -> Path:
    """Where log rotation puts the file before this one."""
    return path.with_name(f"{path.name}.1")


def _make_folder(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """The open file, kept from other processes; made with mode 0600 if it is missing."""
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _refused(path, "it is no ordinary file")
            if _lock(handle) and _is_current(handle, path):
                yield handle
                return
        finally:
            with suppress(OSError):  # closing alone would leave the lock with a child forked meanwhile
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)
        if time.monotonic() > deadline:
            raise _refused(path, f"another process has held it for {PATIENCE:.0f} seconds")
        time.sleep(_PAUSE)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:  # appending in one write is as much as such a file system gives
            raise
    return True


def _is_current(handle: int, path: Path) -> bool:
    """Whether the file that was locked still bears the name, and was not just rotated away."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(handle))
    return False


def _write(handle: int, data: bytes) -> None:
    """All of it or an error: a disk that fills takes a part and fails with the rest."""
    while data:
        data = data[os.write(handle, data) :]


def _refused(path: Path, why: str, *, full: bool = False) -> AuditError:
    return AuditError(
        f"the audit line cannot be written to {path}: {why}; so nothing was done",
        remedy=f"{'free some disk space' if full else 'make it a file that you can write'}, or name another "
        f"file: ARCHIVER_AUDIT__FILE={shlex.quote('/path/to/' + FILE_NAME)}, or audit.file in archiver.toml",
    )
