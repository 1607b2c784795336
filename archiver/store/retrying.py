"""Calls of a store again, after it could not be reached for a while.

The clients of S3 try a request again at once; a server that starts again, or a network that comes back, takes
longer, and some calls are more than one request. Here whole calls are repeated, readers and lists go on where
they were, and what an earlier attempt achieved without saying so is not taken for somebody else's.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from archiver.errors import (
    AlreadyExistsError,
    StoreDeniedError,
    StoreUnreachableError,
    UnconfirmedError,
)
from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo, ObjectStore, ObjectVersion, Remote, Versioned
from archiver.store.decorated import BUFFER, Decorated, DecoratedRemote, DecoratedVersioned, Reader, Result
from archiver.store.tries import Tries

_Opens = Callable[[int], AbstractContextManager[BinaryIO]]
"""Opens an object at an offset."""


class Retrying(Decorated):
    """A store whose calls are made up to `attempts` times, and not again after `patience` seconds."""

    def __init__(self, inner: ObjectStore, attempts: int, patience: float) -> None:
        super().__init__(inner)
        self._limits = (attempts, patience)

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        """Again only if `body` can be iterated again."""
        return self._write(name, body, lambda: self._inner.create(name, body, retention=retention))

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        """A reader that opens the object again where it was.

        Should the object be re-keyed at that moment, what was read is of two versions: readers compare the
        digest of the whole.
        """
        return self._reader(lambda at: self._call("open", lambda: self._inner.open(name, offset=at)), offset)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._listed(prefix, super().list(prefix))

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        """Again only if `body` can be iterated again."""
        return self._write(name, body, lambda: self._inner.replace(name, body, was=was))

    def tries(self) -> Tries:
        """Those of one call."""
        return Tries(*self._limits)

    def _reader(self, opened: _Opens, offset: int) -> AbstractContextManager[BinaryIO]:
        return io.BufferedReader(_ResumingReader(self, opened, offset), BUFFER)

    def _call(self, verb: str, work: Callable[[], Result]) -> Result:  # noqa: ARG002 # all verbs alike
        tries = self.tries()
        while True:
            try:
                return work()
            except StoreUnreachableError as error:
                tries.wait_after(error)

    def _listed(self, prefix: str, found: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        last, moved, tries = "", False, self.tries()
        while True:
            try:
                for info in found:
                    if info.name > last:
                        last, moved = info.name, True
                        yield info
            except StoreUnreachableError as error:
                if moved:
                    moved, tries = False, self.tries()
                tries.wait_after(error)
                found = self._inner.list(prefix)
            else:
                return

    def _write(self, name: str, body: Iterable[bytes], work: Callable[[], ObjectInfo]) -> ObjectInfo:
        if iter(body) is body:
            return work()
        tries = self.tries()
        while True:
            try:
                return work()
            except AlreadyExistsError:
                found = self._own(name, body) if tries.failed else None
                if found is None:
                    raise
                return found
            except StoreUnreachableError as error:
                tries.wait_after(error)

    def _own(self, name: str, body: Iterable[bytes]) -> ObjectInfo | None:
        """The object if its bytes are those of `body`: an earlier attempt put them, and could not say so."""
        try:
            with self._inner.open(name) as file:
                if any(file.read(len(chunk)) != chunk for chunk in body) or file.read(1):
                    return None
            return self._inner.head(name)
        except StoreDeniedError as error:
            raise UnconfirmedError(
                f"object {name} exists already, perhaps by an attempt whose answer was lost, and it cannot "
                "be read to see",
                remedy="let somebody who may read the store look (`archiver list`)",
            ) from error


class RetryingRemote(DecoratedRemote, Retrying):
    """A store over a network that is asked again."""


class RetryingVersioned(DecoratedVersioned, RetryingRemote):
    """A store that may keep versions and is asked again."""

    def versions(self, prefix: str = "") -> Iterator[ObjectVersion]:
        """Whole lists are asked for again: where one ended within the versions of a name cannot be said."""
        return iter(self._call("versions", lambda: list(self._versioned.versions(prefix))))

    def open_version(self, name: str, version: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        return self._reader(lambda at: self._version_opened(name, version, at), offset)

    def _version_opened(self, name: str, version: str, at: int) -> AbstractContextManager[BinaryIO]:
        return self._call("open_version", lambda: self._versioned.open_version(name, version, offset=at))


def retrying(store: ObjectStore, attempts: int, patience: float) -> Retrying:
    """`store`, with calls made again while it cannot be reached."""
    if isinstance(store, Versioned):
        return RetryingVersioned(store, attempts, patience)
    return (RetryingRemote if isinstance(store, Remote) else Retrying)(store, attempts, patience)


class _ResumingReader(Reader):
    def __init__(self, store: Retrying, opened: _Opens, offset: int) -> None:
        super().__init__(opened(offset))
        self._store = store
        self._opens = opened
        self._at = offset
        self._tries = store.tries()

    def readinto(self, buffer: Any) -> int:
        while True:
            try:
                count = super().readinto(buffer)
            except StoreUnreachableError as error:
                self._tries.wait_after(error)
                self._reopen(self._opens(self._at))
            else:
                self._at += count
                if count:
                    self._tries = self._store.tries()
                return count
