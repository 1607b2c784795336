"""The class tag of an object: a small hidden file beside it, `00000001.age → .00000001.age.class`.

It holds the class as one word in 16 bytes, padded with spaces and ended by a line end, so that changing it is
one write in place. Its lock is what makes tag and object one: whoever creates, retags or deletes the object
holds it, and a dead process holds nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, get_args

from archiver.errors import StoreUnreachableError
from archiver.model.record import RetentionClass
from archiver.store.folder import sync, wrong_kind

_WIDTH: Final = 16
_PATIENCE: Final = 30.0
"""Seconds to wait for another process that holds the lock; it needs milliseconds unless it was stopped."""
_PAUSE: Final = 0.005
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WORDS: dict[bytes, RetentionClass] = {word.encode(): word for word in get_args(RetentionClass)}


def file_name(leaf: str) -> str:
    """The name of the tag of the object `leaf` in the same folder."""
    return f".{leaf}.class"


def read(folder: int, leaf: str) -> RetentionClass | None:
    """The class; None for an object without a tag or with an unknown one: it never expires."""
    try:
        handle = os.open(file_name(leaf), os.O_RDONLY | _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        _refuse_special(handle, leaf)
        return _WORDS.get(os.read(handle, _WIDTH + 1).rstrip(b" \n"))
    finally:
        os.close(handle)


def write(handle: int, retention: RetentionClass) -> None:
    """Put the class into a tag held by `hold`, durably."""
    os.pwrite(handle, retention.encode().ljust(_WIDTH - 1) + b"\n", 0)
    os.ftruncate(handle, _WIDTH)
    sync(handle)


@contextmanager
def hold(folder: int, leaf: str) -> Iterator[int]:
    """Keep other processes off the object `leaf` and its tag, which is made empty if it is missing."""
    handle = _acquire(folder, leaf, os.O_CREAT)
    try:
        yield handle
    finally:
        _release(handle)


@contextmanager
def hold_if_there(folder: int, leaf: str) -> Iterator[bool]:
    """The same without making a tag: False if there is none, and then nothing is held."""
    try:
        handle = _acquire(folder, leaf, 0)
    except FileNotFoundError:
        yield False
        return
    try:
        yield True
    finally:
        _release(handle)


def _acquire(folder: int, leaf: str, flags: int) -> int:
    deadline = time.monotonic() + _PATIENCE
    while True:
        handle = os.open(file_name(leaf), os.O_RDWR | flags | _FLAGS, 0o600, dir_fd=folder)
        with _closing_on_error(handle):
            _refuse_special(handle, leaf)
            if _lock(handle) and _is_current(handle, folder, leaf):
                return handle
        os.close(handle)
        if time.monotonic() > deadline:
            raise StoreUnreachableError(
                f"another process has held the tag of {leaf} for {_PATIENCE:.0f} seconds",
                remedy="find the stopped process with `fuser` on the tag file and end or continue it",
            )
        time.sleep(_PAUSE)


def _release(handle: int) -> None:
    with suppress(OSError):  # closing alone would leave the lock with a child that was forked meanwhile
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@contextmanager
def _closing_on_error(handle: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(handle)
        raise


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A file system without locks still lets exactly one creator win; only its tag could be the loser's.
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_current(handle: int, folder: int, leaf: str) -> bool:
    """Whether the file that was locked is still the one beside the object, not one just deleted."""
    with suppress(FileNotFoundError):
        now = os.stat(file_name(leaf), dir_fd=folder, follow_symlinks=False)
        return os.path.samestat(now, os.fstat(handle))
    return False


def _refuse_special(handle: int, leaf: str) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise wrong_kind(f"the tag of {leaf}")
