"""Files and folders of the spool: private, durable when a call returns, errors by meaning."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, takewhile
from pathlib import Path
from typing import Final

from archiver.errors import (
    ArchiverError,
    DamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)
from archiver.scratch import fsync_folder
from archiver.store.folder import sync

PATIENCE: Final = 30.0
"""Seconds to wait for another process that changes the spool; it needs milliseconds unless it was stopped."""

_PAUSE = 0.005
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1 << 20


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Give an `OSError` inside its meaning for the spool."""
    try:
        yield
    except OSError as error:
        raise _meaning(error, f"{path}: {error.strerror or error}") from error


def _meaning(error: OSError, text: str) -> StoreError:
    if error.errno in _FULL:
        return StoreFullError(
            f"the spool has no room for {text}",
            remedy="free disk space there, or name another folder with run.spool; "
            "`archiver sync` delivers what it holds",
        )
    if error.errno in _DENIED:
        return StoreDeniedError(
            f"the spool cannot be used: {text}",
            remedy="check owner and mode of the folder of run.spool and of those above it",
        )
    return StoreUnreachableError(
        f"the spool cannot be used: {text}", remedy="check the disk and the folder of run.spool"
    )


def make_folder(path: Path) -> None:
    """Make the folder and its missing parents, mode 0700, durably."""
    missing = list(takewhile(lambda one: not one.exists(), chain((path,), path.parents)))
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        fsync_folder(one.parent)


def write(path: Path, data: bytes) -> None:
    """Write a new file, mode 0600, durably but for its name."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        sync(file.fileno())


def read(path: Path, limit: int) -> bytes:
    """A small plain file whole; `DamagedError` for anything else, and for one with more bytes."""
    handle = os.open(path, os.O_RDONLY | _FLAGS)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DamagedError(f"{path} is not a plain file", remedy="look at it with `ls -l`")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DamagedError(f"{path} has more than {limit} bytes", remedy="nothing this program writes has")
    return data


def take(source: Path, target: Path) -> bool:
    """Move a file into the spool, durably but for its name; False where it had to be copied instead.

    A rename costs nothing. A copy leaves the source to the caller: it may be needed if what follows fails.
    """
    handle = os.open(source, os.O_RDONLY | _FLAGS)
    try:
        os.fchmod(handle, 0o600)
        sync(handle)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(handle, target)
            return False
    finally:
        os.close(handle)
    return True


def _copy(source: int, target: Path) -> None:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    with os.fdopen(handle, "wb") as file:
        while block := os.read(source, _BLOCK):
            file.write(block)
        file.flush()
        sync(file.fileno())


def names(folder: Path) -> list[str]:
    """Names in a folder, sorted; none where it is not there. Such as start with a dot are left out."""
    try:
        return sorted(one.name for one in folder.iterdir() if not one.name.startswith("."))
    except FileNotFoundError:
        return []


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def remove(path: Path, trash: Path) -> None:
    """Remove a folder: first its name, so that nobody sees half of it."""
    aside = trash / secrets.token_hex(8)
    with suppress(FileNotFoundError):
        path.rename(aside)
        fsync_folder(path.parent)
        shutil.rmtree(aside, ignore_errors=True)


def size_of(folder: Path) -> int:
    """Bytes of all files below, but for what is being made; what vanishes meanwhile counts nothing."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        for item in found:
            if item.name.startswith("."):
                continue
            with suppress(FileNotFoundError):
                if item.is_dir(follow_symlinks=False):
                    total += size_of(Path(item.path))
                else:
                    total += item.stat(follow_symlinks=False).st_size
    return total


def hold(path: Path, *, patience: float = PATIENCE) -> int | None:
    """Keep other processes and threads from doing the same until `release` of the handle that this gives.

    Each call has a handle of its own, so a child that was forked meanwhile holds nothing once this one ends.
    None where the file was removed while it was waited for; `FileNotFoundError` where its folder was.
    `StoreUnreachableError` after `patience` seconds.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CREAT | _FLAGS, 0o600)
    try:
        _wait(handle, path, time.monotonic() + patience, patience)
    except (OSError, ArchiverError):
        os.close(handle)
        raise
    if _is_at(handle, path):
        return handle
    os.close(handle)
    return None


def release(handle: int) -> None:
    """End what `hold` began."""
    with suppress(OSError):  # closing alone would leave the lock with a child that was forked meanwhile
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _wait(handle: int, path: Path, deadline: float, patience: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreUnreachableError(
                    f"another process has held {path} for {patience:.0f} seconds",
                    remedy="it goes on when that one is done; `fuser` on that file finds it",
                ) from None
            time.sleep(_PAUSE)
        else:
            return


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
