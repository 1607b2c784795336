"""What every store can do. Names are `layout` names: relative, `/`-separated, made and parsed there only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from archiver.model.record import RetentionClass


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: its name, size in bytes, when the store says it was written, and its class tag."""

    name: str
    size: int
    modified: datetime
    retention: RetentionClass | None = None


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

    def retag(self, name: str, retention: RetentionClass) -> None:
        """Change the class tag."""

    def delete(self, name: str) -> None:
        """Remove the object; nothing happens if it is not there."""
