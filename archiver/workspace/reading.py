"""The content of a captured file: what was looked at is what is read, from the first byte to the last."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeVar

from archiver.workspace.found import Found, Stamp, stamp_of

READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""A pipe without a writer would block for ever."""
BLOCK: Final = 1 << 20
TRIES: Final = 3
_REPLACED: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

Taken = TypeVar("Taken")


class NotReadError(Exception):
    """Why a file is not carried after all: half a sentence, for `Skipped`."""


class ChangedWhileReadError(NotReadError):
    """The file is not what was looked at, or did not stay it."""

    def __init__(self) -> None:
        super().__init__("it changed while it was read")


def content(found: Found) -> Iterator[bytes]:
    """The bytes of a file in blocks of at most 1 MiB, exactly as many as were found.

    Raises `ChangedWhileReadError` before the first block, or after the last one, if the file is not what the
    stamp says, and `NotReadError` if it cannot be read.
    """
    if isinstance(found.source, str):
        with _unchanged(found.source, found) as blocks:
            yield from blocks
    else:
        yield from _pieces(found.source)


def stable(
    found: Found, take: Callable[[Iterator[bytes], int], Taken], *, limit: int | None = None
) -> tuple[Taken, Found]:
    """What `take` makes of the blocks and the size of a file that stayed the same meanwhile.

    A file that changes is looked at again and read again, three times in all; `take` begins anew each time.
    With the result comes what was found the time that counts. Raises `ChangedWhileReadError`, and
    `NotReadError` for a file that cannot be read or has grown over `limit` bytes.
    """
    if not isinstance(found.source, str):
        return take(_pieces(found.source), found.entry.size), found
    tries = TRIES
    while True:
        try:
            with _unchanged(found.source, found) as blocks:
                taken = take(blocks, found.entry.size)
        except ChangedWhileReadError:
            tries -= 1
            if not tries:
                raise
            found = _again(found.source, found, limit)
        else:
            return taken, found


@contextmanager
def _unchanged(source: str, found: Found) -> Iterator[Iterator[bytes]]:
    """The blocks of a file; the stamp must hold before the first one and when the caller has done."""
    try:
        handle = os.open(source, READ)
    except OSError as error:
        if error.errno in _REPLACED:
            raise ChangedWhileReadError from error
        raise NotReadError(f"it cannot be read: {error.strerror}") from error
    try:
        _check(handle, found.stamp)
        yield _blocks(handle, found.entry.size)
        _check(handle, found.stamp)
    finally:
        os.close(handle)


def _check(handle: int, stamp: Stamp) -> None:
    if stamp_of(os.fstat(handle)) != stamp:
        raise ChangedWhileReadError


def _blocks(handle: int, size: int) -> Iterator[bytes]:
    while size:
        try:
            block = os.read(handle, min(BLOCK, size))
        except OSError as error:
            raise NotReadError(f"it cannot be read: {error.strerror}") from error
        if not block:
            raise ChangedWhileReadError
        size -= len(block)
        yield block


def _pieces(data: bytes | None) -> Iterator[bytes]:
    if data is None:
        raise NotReadError("it has no content")
    return (data[start : start + BLOCK] for start in range(0, len(data), BLOCK))


def _again(source: str, found: Found, limit: int | None) -> Found:
    """The same path as it is now, looked at without following a link below the root of the tree."""
    try:
        seen = _looked_at(source, found.entry.path)
    except OSError as error:
        raise NotReadError("it was removed or replaced while it was read") from error
    if not stat.S_ISREG(seen.st_mode):
        raise NotReadError("it was replaced by something else while it was read")
    if limit is not None and seen.st_size > limit:
        raise NotReadError(f"it has {seen.st_size} bytes by now, the limit of a file is {limit}")
    stamp = stamp_of(seen)
    entry = replace(found.entry, mode=seen.st_mode & 0o777, modified=stamp.mtime_ns, size=stamp.size)
    return Found(entry, source, stamp)


def _looked_at(source: str, path: str) -> os.stat_result:
    *folders, name = path.split("/")
    if not source.endswith(f"/{path}"):  # a private copy, which lies nowhere in the tree
        return os.lstat(source)
    at = os.open(source.removesuffix(path), _STEP)
    try:
        for step in folders:
            below = os.open(step, _STEP | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    finally:
        os.close(at)


def read_whole(handle: int, limit: int) -> bytes:
    """All bytes of an open file, `limit` of them at most."""
    pieces = []
    while limit and (piece := os.read(handle, min(BLOCK, limit))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)
