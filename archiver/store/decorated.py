"""Stores around stores: each decorator adds one thing to the calls and passes them on.

    retrying(limited(store, 2**40), attempts=5, patience=30.0)

A decorated store is a `Remote`, or `Versioned`, if the store within is one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo, ObjectStore, ObjectVersion, Remote, Versioned

Result = TypeVar("Result")

BUFFER = 1 << 18
"""Bytes that a reader asks the store for at a time."""


class Decorated:
    """Passes every call on as it is; a decorator overrides `_call`, or the verbs that it changes."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    @property
    def url(self) -> str:
        """The address of the store within."""
        return self._inner.url

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        return self._call("create", lambda: self._inner.create(name, body, retention=retention))

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        return self._call("open", lambda: self._inner.open(name, offset=offset))

    def read(self, name: str, *, limit: int) -> bytes:
        return self._call("read", lambda: self._inner.read(name, limit=limit))

    def head(self, name: str) -> ObjectInfo:
        return self._call("head", lambda: self._inner.head(name))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._call("list", lambda: self._inner.list(prefix))

    def class_of(self, name: str) -> RetentionClass | None:
        return self._call("class_of", lambda: self._inner.class_of(name))

    def retag(self, name: str, retention: RetentionClass) -> None:
        return self._call("retag", lambda: self._inner.retag(name, retention))

    def delete(self, name: str) -> None:
        return self._call("delete", lambda: self._inner.delete(name))

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        return self._call("replace", lambda: self._inner.replace(name, body, was=was))

    def _call(self, verb: str, work: Callable[[], Result]) -> Result:  # noqa: ARG002 # for those who override it
        return work()


class DecoratedRemote(Decorated):
    """What a decorator of a store over a network has besides; mixed into each of them."""

    @property
    def parallel(self) -> int:
        """As many as the store within."""
        return self._remote.parallel

    def clock(self) -> datetime:
        return self._call("clock", self._remote.clock)

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        return self._call("download", lambda: self._remote.download(name, into, limit=limit))

    @property
    def _remote(self) -> Remote:
        return cast("Remote", self._inner)


class DecoratedVersioned(DecoratedRemote):
    """What a decorator of a store that may keep versions has besides; mixed into each of them."""

    def versions(self, prefix: str = "") -> Iterator[ObjectVersion]:
        return self._call("versions", lambda: self._versioned.versions(prefix))

    def open_version(self, name: str, version: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        return self._call("open_version", lambda: self._versioned.open_version(name, version, offset=offset))

    def read_version(self, name: str, version: str, *, limit: int) -> bytes:
        return self._call("read_version", lambda: self._versioned.read_version(name, version, limit=limit))

    def class_of_version(self, name: str, version: str) -> RetentionClass | None:
        return self._call("class_of_version", lambda: self._versioned.class_of_version(name, version))

    def retag_version(self, name: str, version: str, retention: RetentionClass) -> None:
        return self._call("retag_version", lambda: self._versioned.retag_version(name, version, retention))

    def delete_version(self, name: str, version: str) -> None:
        return self._call("delete_version", lambda: self._versioned.delete_version(name, version))

    @property
    def _versioned(self) -> Versioned:
        return cast("Versioned", self._inner)


class Reader(io.RawIOBase):
    """The reader of a store, with something done to what it gives; closing it closes that one."""

    def __init__(self, opened: AbstractContextManager[BinaryIO]) -> None:
        super().__init__()
        self._open(opened)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes first, at most what fits: more would be lost with what fails behind it."""
        return int(self._file.readinto1(buffer))

    def close(self) -> None:
        if not self.closed:
            self._opened.__exit__(None, None, None)
        super().close()

    def _open(self, opened: AbstractContextManager[BinaryIO]) -> None:
        self._opened = opened
        self._file: Any = opened.__enter__()

    def _reopen(self, opened: AbstractContextManager[BinaryIO]) -> None:
        """Go on with another reader, which begins where this one is."""
        self._opened.__exit__(None, None, None)
        self._open(opened)
