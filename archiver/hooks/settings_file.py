"""A settings file of Claude Code: where it lies, how it is read, and written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from archiver.config.paths import absolute, current_folder, home
from archiver.errors import InputNotFoundError, RefusedError, StoreFullError
from archiver.scratch import fsync_folder

Scope = Literal["user", "project", "local", "file"]
_MAX: Final = 8 << 20
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file as it was read; `data` is None for one that is not there yet."""

    scope: Scope
    path: Path
    """As it was named; a link stays one."""
    data: bytes | None

    @property
    def text(self) -> str:
        """Its text; an absent or empty file is an empty object."""
        try:
            text = (self.data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise RefusedError(
                f"{self.path} is not UTF-8 (byte {error.start})", remedy="mend it, then run this again"
            ) from error
        return text if text.strip("\ufeff \t\r\n") else "{}\n"


def config_folder() -> Path:
    """Where Claude Code keeps what is the user's."""
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    return absolute(configured) if configured else home() / ".claude"


def place(scope: Scope) -> Path:
    """The settings file of the user, of this folder's project, or of this user in it."""
    if scope == "user":
        return config_folder() / "settings.json"
    name = "settings.json" if scope == "project" else "settings.local.json"
    return current_folder() / ".claude" / name


def read(scope: Scope, path: Path) -> SettingsFile:
    """What lies there now; raises where it is no plain file, or cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return SettingsFile(scope, path, None)
    except OSError as error:
        raise InputNotFoundError(
            f"{path} cannot be read: {error.strerror}", remedy="check its owner and mode"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RefusedError(f"{path} is no plain file", remedy="name another one with --settings")
    with os.fdopen(handle, "rb") as file:
        data = file.read(_MAX + 1)
    if len(data) > _MAX:
        raise RefusedError(f"{path} has more than {_MAX} bytes: it is no settings file")
    return SettingsFile(scope, path, data)


def write(file: SettingsFile, text: str) -> None:
    """Put the text in the place of what was read; `RefusedError` if that has changed since.

    The new file has mode and owner of the old one; where a link is, its target is replaced.
    """
    target = Path(os.path.realpath(file.path))
    try:
        _make_folder(target.parent)
        with _locked(target.parent):
            _remove_abandoned(target)
            made = _written(target, text.encode("utf-8"), _status(target))
            try:
                _refuse_changed(file)
                made.replace(target)
            except BaseException:
                with suppress(OSError):
                    made.unlink()
                raise
            fsync_folder(target.parent)
    except OSError as error:
        kind = StoreFullError if error.errno in _FULL else RefusedError
        raise kind(
            f"{target} cannot be written: {error.strerror}",
            remedy=f"check room, owner and mode of {target.parent}; nothing was changed",
        ) from error


def _refuse_changed(file: SettingsFile) -> None:
    if read(file.scope, file.path).data != file.data:
        raise RefusedError(
            f"{file.path} was changed by somebody else in the meantime; it was left as it is",
            remedy="run this again, and look at the new change",
        )


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700 if folder == config_folder() else 0o777, parents=True, exist_ok=True)


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time: between the look at the file and its replacement nobody of ours comes in."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _beginning(target: Path) -> str:
    return f".{target.name}.archiver-"


def _remove_abandoned(target: Path) -> None:
    """What a process that was killed has left beside the file."""
    for left in target.parent.iterdir():
        if left.name.startswith(_beginning(target)) and left.is_file() and not left.is_symlink():
            left.unlink()


def _written(target: Path, data: bytes, old: os.stat_result | None) -> Path:
    handle, name = tempfile.mkstemp(prefix=_beginning(target), dir=target.parent)
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if old is not None and old.st_uid != os.geteuid():  # by an administrator; it stays its owner's
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode) if old is not None else 0o600)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
    return made
