"""A folder of our own copied to another disk as it is: contents, links, modes and times, through to the disk.

Nothing is followed: a link is copied as what it says. What its mode closes to us is open while it is read.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK: Final = 1 << 20


def replicate(source: Path, target: Path) -> None:
    """Copy a file, a link or a folder to the new name `target`; raises `OSError`.

    What is written is private until it is finished. What was copied before an error stays.
    """
    with _opened(str(source.parent), None) as old, _opened(str(target.parent), None) as new:
        _copy(source.name, old, target.name, new)


def _copy(name: str, old: int, copied: str, new: int) -> None:
    """`old` and `new`: handles of the folders around the two names."""
    about = os.stat(name, dir_fd=old, follow_symlinks=False)
    if stat.S_ISLNK(about.st_mode):
        os.symlink(os.readlink(name, dir_fd=old), copied, dir_fd=new)
        os.utime(copied, ns=_times(about), dir_fd=new, follow_symlinks=False)
    elif stat.S_ISDIR(about.st_mode):
        os.mkdir(copied, 0o700, dir_fd=new)
        with _readable(name, old, about, _FOLDER) as source, _opened(copied, new) as target:
            with os.scandir(source) as entries:
                for entry in entries:
                    _copy(entry.name, source, entry.name, target)
            _finish(target, about)
    else:
        handle = os.open(copied, _NEW, 0o600, dir_fd=new)
        with _readable(name, old, about, _FILE) as source, os.fdopen(handle, "wb") as file:
            with os.fdopen(os.dup(source), "rb") as held:
                shutil.copyfileobj(held, file, _BLOCK)
            file.flush()
            _finish(file.fileno(), about)


def _finish(handle: int, about: os.stat_result) -> None:
    os.fchmod(handle, stat.S_IMODE(about.st_mode))
    os.utime(handle, ns=_times(about))
    os.fsync(handle)


def _times(about: os.stat_result) -> tuple[int, int]:
    return about.st_atime_ns, about.st_mtime_ns


@contextmanager
def _opened(name: str, around: int | None) -> Iterator[int]:
    handle = os.open(name, _FOLDER if around is not None else _FOLDER & ~os.O_NOFOLLOW, dir_fd=around)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _readable(name: str, around: int, about: os.stat_result, flags: int) -> Iterator[int]:
    """A handle of what its owner may not be allowed to read; its mode is as it was in the end."""
    needed = 0o500 if stat.S_ISDIR(about.st_mode) else 0o400
    mode = stat.S_IMODE(about.st_mode)
    closed = mode & needed != needed
    if closed:
        os.chmod(name, mode | needed, dir_fd=around)
    try:
        handle = os.open(name, flags, dir_fd=around)
        try:
            yield handle
        finally:
            os.close(handle)
    finally:
        if closed:
            os.chmod(name, mode, dir_fd=around)
