"""A limit on the size of one object, on the way in and on the way out."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from archiver.errors import LimitExceededError
from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo, ObjectStore, Remote, Versioned
from archiver.store.decorated import BUFFER, Decorated, DecoratedRemote, DecoratedVersioned, Reader


class Limited(Decorated):
    """A store that takes and gives no object of more than `largest` bytes: `LimitExceededError`.

    So a store that sends without end, or a body without end, fills neither disk nor memory.
    """

    def __init__(self, inner: ObjectStore, largest: int) -> None:
        super().__init__(inner)
        self.largest = largest

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        """Nothing is seen of an object that turns out to be too large."""
        return self._inner.create(name, self._bounded(name, body), retention=retention)

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        """The reader raises where the object goes on behind the limit."""
        return self._reader(self._inner.open(name, offset=offset), name, offset)

    def read(self, name: str, *, limit: int) -> bytes:
        return self._inner.read(name, limit=min(limit, self.largest))

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        return self._inner.replace(name, self._bounded(name, body), was=was)

    def _reader(
        self, opened: AbstractContextManager[BinaryIO], name: str, offset: int
    ) -> AbstractContextManager[BinaryIO]:
        return io.BufferedReader(_BoundedReader(opened, name, offset, self.largest), BUFFER)

    def _bounded(self, name: str, body: Iterable[bytes]) -> Iterator[bytes]:
        left = self.largest
        for chunk in body:
            left -= len(chunk)
            if left < 0:
                raise _too_large(name, self.largest)
            yield chunk


class LimitedRemote(DecoratedRemote, Limited):
    """A limited store over a network."""

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        return self._remote.download(name, into, limit=min(limit, self.largest))


class LimitedVersioned(DecoratedVersioned, LimitedRemote):
    """A limited store that may keep versions."""

    def open_version(self, name: str, version: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        return self._reader(self._versioned.open_version(name, version, offset=offset), name, offset)

    def read_version(self, name: str, version: str, *, limit: int) -> bytes:
        return self._versioned.read_version(name, version, limit=min(limit, self.largest))


def limited(store: ObjectStore, largest: int) -> Limited:
    """`store` with objects of at most `largest` bytes."""
    if isinstance(store, Versioned):
        return LimitedVersioned(store, largest)
    return (LimitedRemote if isinstance(store, Remote) else Limited)(store, largest)


class _BoundedReader(Reader):
    def __init__(
        self, opened: AbstractContextManager[BinaryIO], name: str, offset: int, largest: int
    ) -> None:
        super().__init__(opened)
        self._name = name
        self._room = max(0, largest - offset)
        self._largest = largest

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(memoryview(buffer)[: self._room + 1])
        self._room -= count
        if self._room < 0:
            raise _too_large(self._name, self._largest)
        return count


def _too_large(name: str, largest: int) -> LimitExceededError:
    return LimitExceededError(
        f"object {name} is larger than the {largest} bytes that it may have",
        remedy="raise limits.run if it is meant to be so large",
    )
