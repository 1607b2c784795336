"""A large object as a file: several ranges of one version of it at the same time."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from archiver.errors import InputNotFoundError, LimitExceededError, StoreError, StoreFullError
from archiver.parallel import in_order
from archiver.store.base import ObjectInfo
from archiver.store.s3.client import S3, info_of
from archiver.store.s3.read import ObjectReader

RANGE: Final = 8 << 20
"""Bytes of one request."""
_BLOCK: Final = 1 << 18
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def download(s3: S3, name: str, into: Path, *, limit: int) -> ObjectInfo:
    """The object as the new file `into`, mode 0600, which is removed again if anything fails.

    The first range says how large the object is; no checksum is compared, since stores keep none of ranges.
    """
    with ExitStack() as opened:
        first = opened.enter_context(ObjectReader(s3, name, end=RANGE))
        if not first.answer:  # there is no byte to begin at
            info = info_of(name, s3.call("head_object", name))
        else:
            info = info_of(name, {**first.answer, "ContentLength": _total(first)})
        refuse_larger(info, limit)
        with _new_file(into) as handle:
            opened.pop_all()  # From here on it is closed by the thread that reads it, which may hang there.
            _fill(s3, info, first, _Target(handle, into))
    return info


def refuse_larger(info: ObjectInfo, limit: int) -> None:
    """Raise `LimitExceededError` for an object of more than `limit` bytes."""
    if info.size > limit:
        raise LimitExceededError(
            f"object {info.name} is larger than the {limit} bytes that it may have",
            remedy="look at the object; nothing this program writes there is so large",
        )


class _Target:
    """The file that threads write into, until one of them fails."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self._path = path
        self._lock = threading.Lock()
        self._given_up = False

    def give_up(self) -> None:
        """No thread begins or goes on to write; the file may be closed."""
        with self._lock:
            self._given_up = True

    def copy(self, reader: ObjectReader, at: int, end: int) -> None:
        """Write what `reader` gives to the place between `at` and `end`."""
        with self._lock:
            if self._given_up:
                return
            # Its own, so that a thread that nobody waits for writes into no file that was opened after.
            handle = os.dup(self._handle)
        try:
            self._copy(handle, reader, at, end)
        finally:
            os.close(handle)

    def _copy(self, handle: int, reader: ObjectReader, at: int, end: int) -> None:
        buffer = bytearray(min(_BLOCK, end - at))
        while at < end and not self._given_up:
            count = reader.readinto(memoryview(buffer)[: end - at])
            if not count:
                raise StoreError("the store gave less of the object than it has", remedy="run it again")
            self._write(handle, memoryview(buffer)[:count], at)
            at += count

    def _write(self, handle: int, rest: memoryview, at: int) -> None:
        while rest:
            try:
                count = os.pwrite(handle, rest, at)
            except OSError as error:
                raise _unwritable(self._path, error) from error
            rest = rest[count:]
            at += count


def _fill(s3: S3, info: ObjectInfo, first: ObjectReader, target: _Target) -> None:
    def fetch(start: int) -> None:
        end = min(start + RANGE, info.size)
        try:
            with (
                ObjectReader(s3, info.name, start=start, end=end, etag=info.etag) if start else first
            ) as reader:
                target.copy(reader, start, end)
        except BaseException:
            target.give_up()
            raise

    starts = range(0, max(1, info.size), RANGE)
    try:
        for _ in in_order(fetch, starts, workers=min(s3.options.aws.parallel, len(starts))):
            pass
    finally:
        target.give_up()


def _total(first: ObjectReader) -> int:
    total = str(first.answer.get("ContentRange")).rpartition("/")[2]
    if not total.isdecimal():
        raise StoreError("the store does not say how large the object is", remedy="use another server")
    return int(total)


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield handle
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> StoreFullError | InputNotFoundError:
    kind = StoreFullError if error.errno in _FULL else InputNotFoundError
    return kind(
        f"the file {path} cannot be written: {error.strerror}",
        remedy="free some disk space there or set TMPDIR to a folder with more room",
    )
