"""Ask about paths that a person named: whatever the system answers is a typed error or a plain fact."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG

from archiver.errors import ConfigError, InputNotFoundError

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


def home() -> Path:
    """The home folder; `ConfigError` where nobody says which it is."""
    try:
        return Path.home()
    except (RuntimeError, OSError) as error:
        raise ConfigError(
            "the home folder of this user is not known", remedy="set HOME to a folder of its own"
        ) from error


def current_folder() -> Path:
    """The working folder; `InputNotFoundError` where it was removed or may not be entered."""
    try:
        return Path.cwd()
    except OSError as error:
        raise InputNotFoundError(
            f"the current folder cannot be used: {error.strerror}", remedy="change to a folder that exists"
        ) from error


def absolute(path: str | Path) -> Path:
    """The absolute path, with `~` and `~name` as home folders.

    Raises `ConfigError` for the home of nobody, and `InputNotFoundError` where the working folder is gone.
    """
    try:
        expanded = Path(path).expanduser()
    except (RuntimeError, ValueError) as error:
        raise ConfigError(
            f"{path}: the home folder it names is not known",
            remedy=f"write the whole path, or ./{path} for a name that begins with ~",
        ) from error
    return expanded if expanded.is_absolute() else current_folder() / expanded


def lookup(path: Path) -> os.stat_result | None:
    """What lies there, links followed; None for nothing, `InputNotFoundError` if that cannot be found out."""
    try:
        return path.stat()
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise InputNotFoundError(
            f"{_shown(path)} cannot be looked at: {error.strerror}",
            remedy="check the owner and mode of the folders above it, or name another path",
        ) from error
    except ValueError as error:  # a NUL character
        raise InputNotFoundError(f"{str(path)!r} cannot be the name of a file: {error}") from error


def is_file(path: Path) -> bool:
    """Whether a plain file lies there; `InputNotFoundError` if that cannot be found out."""
    status = lookup(path)
    return status is not None and S_ISREG(status.st_mode)


def exists(path: Path) -> bool:
    """Whether anything lies there; `InputNotFoundError` if that cannot be found out."""
    return lookup(path) is not None


def _shown(path: Path, limit: int = 300) -> str:
    text = str(path)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
