"""Objects that are being written: hidden, locked by their writer, and removed once their writer is dead."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from archiver.store.folder import sync, translated

FOLDER: Final = ".tmp"
GRACE: Final = 3600.0
"""Seconds without a write before an unlocked file counts as left behind; covers file systems whose locks do
not reach other hosts."""

_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A private file of the store that has no name of an object yet."""

    folder: int
    name: str
    handle: int

    def fill(self, body: Iterable[bytes], what: str) -> os.stat_result:
        """Write the whole body and bring it to the disk."""
        for chunk in body:
            rest = memoryview(chunk)
            while rest:
                with translated(what):
                    rest = rest[os.write(self.handle, rest) :]
        with translated(what):
            sync(self.handle)
            return os.fstat(self.handle)


@contextmanager
def unfinished(root: int) -> Iterator[Unfinished]:
    """A new private file, gone when the block ends; the object keeps its bytes through its own link."""
    with translated("the store's folder of unfinished objects"):
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=root)
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    try:
        name = secrets.token_hex(16)
        with translated("an unfinished object of the store"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            with suppress(OSError):  # without locks the grace alone protects it
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Unfinished(folder, name, handle)
        finally:
            os.close(handle)
            with suppress(OSError):  # it stays hidden, and is removed as left behind
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def remove_left_behind(root: int, now: float | None = None) -> int:
    """Remove the unfinished objects of writers that died; returns how many.

    Never a live writer's: it holds a lock that dies with it. What cannot be judged stays.
    """
    moment = time.time() if now is None else now
    try:
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    except OSError:
        return 0
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if _NAME.fullmatch(entry.name)]
        return sum(_remove(folder, name, moment) for name in names)
    except OSError:
        return 0
    finally:
        os.close(folder)


def _remove(folder: int, name: str, now: float) -> bool:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or now - status.st_mtime < GRACE:
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
