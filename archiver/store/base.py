"""What every store can do. Names are `layout` names: relative, `/`-separated, made and parsed there only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from archiver.model.record import RetentionClass


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: its name, size in bytes, when the store says it was written, and its class tag."""

    name: str
    size: int
    modified: datetime
    retention: RetentionClass | None = None
    etag: str | None = None
    """Names this version of the object, where the store has such names."""


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, or a marker that hides the versions before it."""

    name: str
    version: str
    """Its id, which the store made."""
    modified: datetime
    size: int = 0
    etag: str | None = None
    deleted: bool = False
    """Whether it is a marker, left by a delete: it has no bytes."""
    latest: bool = False
    """Whether it is what a request without a version gets."""


class ObjectStore(Protocol):
    """Objects that are created once and never changed.

    Errors: `StoreUnreachableError`, `StoreDeniedError`, `StoreFullError`, and those named below.
    """

    @property
    def url(self) -> str:
        """The address as configured, without credentials."""

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        """Create a new object, durable when this returns; `AlreadyExistsError` if the name is taken.

        Exactly one of several concurrent creators of one name wins; of an interrupted create nothing is seen.
        """

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        """A reader of the object from `offset`; `ObjectNotFoundError` if it is not there."""

    def read(self, name: str, *, limit: int) -> bytes:
        """A small object whole; `LimitExceededError` if it is larger than `limit` bytes."""

    def head(self, name: str) -> ObjectInfo:
        """What is known of the object; `ObjectNotFoundError` if it is not there."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Objects whose names start with `prefix`, sorted by name; tags may be missing."""

    def class_of(self, name: str) -> RetentionClass | None:
        """The class tag; None without one, or with one that is no class: such an object never expires."""

    def retag(self, name: str, retention: RetentionClass) -> None:
        """Change the class tag."""

    def delete(self, name: str) -> None:
        """Remove the object; nothing happens if it is not there."""

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        """For re-keying alone: other bytes under a name that is there, with its class tag; all or nothing.

        `was` is what `head` said: `AlreadyExistsError` if the object has changed since, as far as the store
        can tell; `ObjectNotFoundError` if it is gone. Where the store keeps versions the old one stays.
        """


@runtime_checkable
class Guarded(Protocol):
    """What a store does besides whose class tags have a lock, to be asked for with `isinstance`."""

    def delete_if(self, name: str, allowed: Collection[RetentionClass | None]) -> bool:
        """Remove the object and its tag, durably, if its class is one of these at that moment.

        The lock that `retag` takes is held meanwhile. False where the class is another; True also where the
        object is not there.
        """


@runtime_checkable
class Remote(Protocol):
    """What a store over a network can do besides, to be asked for with `isinstance`."""

    @property
    def parallel(self) -> int:
        """How many requests at the same time are welcome."""

    def clock(self) -> datetime:
        """The time by the clock of the store; by that of this machine where it does not tell."""

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        """The object as the new file `into` (mode 0600), in parallel ranges of one version of it.

        `LimitExceededError`, before anything is fetched, if it has more than `limit` bytes.
        """


@runtime_checkable
class Versioned(Remote, Protocol):
    """What a store does besides that may keep the versions of its objects, to be asked for with `isinstance`.

    A bucket without versions gives one version of each object, the one that is there.
    """

    def versions(self, prefix: str = "") -> Iterator[ObjectVersion]:
        """All versions of the objects whose names start with `prefix`, sorted by name, the newest first.

        `StoreDeniedError` where they may not be listed; `StoreError` where the server cannot.
        """

    def open_version(self, name: str, version: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        """A reader of that version, from `offset`; `ObjectNotFoundError` if it is not there."""

    def read_version(self, name: str, version: str, *, limit: int) -> bytes:
        """A small version whole; `LimitExceededError` if it is larger than `limit` bytes."""

    def class_of_version(self, name: str, version: str) -> RetentionClass | None:
        """The class tag of that version: each has its own."""

    def retag_version(self, name: str, version: str, retention: RetentionClass) -> None:
        """Change the class tag of that version."""

    def delete_version(self, name: str, version: str) -> None:
        """Remove that version, or that marker, for good; nothing happens if it is not there.

        `StoreDeniedError` where a lock protects it, or the caller may not.
        """
