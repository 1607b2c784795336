"""What each sweep did, as JSON lines in a file of this machine: one an event, appended to.

    {"time":…,"sweep":…,"event":"archived","run":…,"source":"codex","path":…,"seq":…,"bytes":…,"error":null}

Texts are free of credentials. Of a file of 64 MiB the name becomes `FILE.1`, in place of the one before it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver import jsonio
from archiver.audit.cleaning import Clean
from archiver.config import state_home
from archiver.errors import StoreDeniedError, StoreError, StoreFullError
from archiver.model import utc_text
from archiver.sweep.disk import make_folder

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.errors import ArchiverError
    from archiver.setup import Setup

FILE_NAME: Final = "sweep.jsonl"
MAX_FILE: Final = 64 << 20
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def place(settings: Settings) -> Path:
    """Where the lines go."""
    return settings.sweep.log or state_home() / FILE_NAME


class Journal:
    """The log of one sweep."""

    def __init__(self, path: Path, setup: Setup) -> None:
        self.path = path
        self.sweep = secrets.token_hex(8)
        """Names this sweep in its lines."""
        make_folder(path.parent)
        self._clean = Clean(setup)

    def write(self, event: str, *, error: ArchiverError | None = None, **said: Any) -> None:
        """Append one line; `StoreFullError`, `StoreDeniedError` or `StoreError` where that cannot be done."""
        document: dict[str, Any] = {"time": utc_text(datetime.now(UTC)), "sweep": self.sweep, "event": event}
        document |= self._clean.value(said)
        document["error"] = None if error is None else self._described(error)
        try:
            _append(self.path, jsonio.dumps(document) + b"\n")
        except OSError as problem:
            raise _meaning(self.path, problem) from problem

    def _described(self, error: ArchiverError) -> dict[str, Any]:
        return {
            "type": type(error).__name__,
            "message": self._clean.text(str(error)),
            "remedy": self._clean.text(error.remedy) if error.remedy else None,
            "exit_code": error.exit_code,
        }


def _append(path: Path, line: bytes) -> None:
    """In one piece, under a lock; what a full disk left of a line before is ended first."""
    while True:
        handle = os.open(path, _FLAGS, 0o600)
        try:
            with suppress(OSError):  # a file system without locks: one write is as much as it gives
                fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_current(handle, path):
                continue
            end = os.fstat(handle).st_size
            if end + len(line) > MAX_FILE and end:
                path.rename(path.with_name(f"{path.name}.1"))
                continue
            torn = end > 0 and os.pread(handle, 1, end - 1) != b"\n"
            try:
                _write(handle, b"\n" + line if torn else line)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(handle, end)
                raise
            return
        finally:
            os.close(handle)


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _is_current(handle: int, path: Path) -> bool:
    """Whether the file that was locked still bears the name, and was not just renamed."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(handle))
    return False


def _meaning(path: Path, error: OSError) -> StoreError:
    text = f"the log of sweeps, {path}, cannot be written: {error.strerror or error}"
    other = "or name another file with --log or sweep.log"
    if error.errno in _FULL:
        return StoreFullError(text, remedy=f"free disk space there, {other}")
    kind = StoreDeniedError if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else StoreError
    return kind(text, remedy=f"check who may write there, {other}")
