"""Look at files of a folder that nobody trusts: bounded, never through a link, never waiting for a pipe."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from archiver.freshness.probe import Context
from archiver.model import JsonValue

_CHUNK = 1 << 20
_MAX_LEVELS = 32
"""Folders between a workspace and its repository."""


class UnreadableError(Exception):
    """A file was not read; the text says why. Stays inside this package."""


def read(path: Path, limit: int) -> bytes:
    """The content of a plain file; `UnreadableError` for anything else, and beyond `limit` bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise UnreadableError("it is not there") from None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else f"it cannot be read: {error.strerror}"
        raise UnreadableError(why) from None
    try:
        return _content(handle, limit)
    except OSError as error:
        raise UnreadableError(f"it cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)


def _content(handle: int, limit: int) -> bytes:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("it is no file")
    if status.st_size > limit:
        raise UnreadableError(f"it has more than {limit >> 20} MiB")
    content = bytearray()
    while chunk := os.read(handle, min(_CHUNK, limit + 1 - len(content))):
        content += chunk
    if len(content) > limit:
        raise UnreadableError(f"it has more than {limit >> 20} MiB")
    return bytes(content)


def folders(path: Path, limit: int) -> Iterator[str]:
    """Names of the folders in a folder, in order; links are none. At most `limit` entries are looked at.

    Raises `UnreadableError` for a folder that cannot be listed, or has more entries.
    """
    found = []
    try:
        with os.scandir(path) as entries:
            for count, entry in enumerate(entries):
                if count >= limit:
                    raise UnreadableError(f"it has more than {limit} entries")
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.name)
    except OSError as error:
        raise UnreadableError(f"it cannot be listed: {error.strerror}") from None
    yield from sorted(found)


def above(folder: Path) -> list[Path]:
    """The folders around this one up to that of its repository, the nearest first; none outside of one."""
    around = [folder, *folder.parents][: _MAX_LEVELS + 1]
    for count, place in enumerate(around):
        if exists(place / ".git"):
            return around[1 : count + 1]
    return []


def exists(path: Path | str) -> bool:
    """Whether something bears the name; what cannot be looked at raises `UnreadableError`."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise UnreadableError(f"it cannot be looked at: {getattr(error, 'strerror', error)}") from None
    return True


def elsewhere(captured: JsonValue, context: Context) -> bool:
    """Whether the folder at hand is another than the one that was looked at when the checkpoint was saved."""
    return not isinstance(captured, dict) or captured.get("path") != str(context.workspace)
