"""What lies in the spool of a run, as a store that is only read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from archiver import layout
from archiver.errors import LimitExceededError, ObjectNotFoundError, StoreDeniedError
from archiver.model.record import RetentionClass
from archiver.spool import disk
from archiver.spool.entry import record_file
from archiver.store import ObjectInfo

if TYPE_CHECKING:
    from archiver.spool.folder import RunFolder


class SpoolReader:
    """An `ObjectStore` of the records and bundles of one run on the local disk; nothing is changed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    @property
    def url(self) -> str:
        """The folder as a `file:` address."""
        return self._folder.path.as_uri()

    def open(self, name: str, *, offset: int = 0) -> BinaryIO:
        """A reader of the object from `offset`."""
        path = self._path(name)
        with disk.translated(path):
            try:
                file = path.open("rb")
            except FileNotFoundError:
                raise _missing(name) from None
            file.seek(offset)
        return file

    def read(self, name: str, *, limit: int) -> bytes:
        """A small object whole."""
        with self.open(name) as file, disk.translated(self._folder.path):
            data = file.read(limit + 1)
        if len(data) > limit:
            raise LimitExceededError(f"{name} in the spool has more than {limit} bytes")
        return data

    def head(self, name: str) -> ObjectInfo:
        """What is known of the object."""
        path = self._path(name)
        with disk.translated(path):
            try:
                about = path.stat()
            except FileNotFoundError:
                raise _missing(name) from None
        return ObjectInfo(name, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Objects whose names start with `prefix`, sorted by name."""
        return (self.head(name) for name in sorted(self._files()) if name.startswith(prefix))

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> NoReturn:  # noqa: ARG002
        raise _read_only(name)

    def class_of(self, name: str) -> None:
        self._path(name)  # the spool has no tags

    def retag(self, name: str, retention: RetentionClass) -> NoReturn:  # noqa: ARG002
        raise _read_only(name)

    def delete(self, name: str) -> NoReturn:
        raise _read_only(name)

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> NoReturn:  # noqa: ARG002
        raise _read_only(name)

    def _path(self, name: str) -> Path:
        path = self._files().get(name)
        if path is None:
            raise _missing(name)
        return path

    def _files(self) -> dict[str, Path]:
        """Files by the names that the objects have in the store."""
        found: dict[str, Path] = {}
        with self._folder.reading():
            entries = (*self._folder.bases(), *self._folder.entries())
        for entry in entries:
            found[layout.record_name(entry.run, entry.seq)] = entry.folder / record_file(entry.meta)
            if entry.meta.bundle is not None and entry.bundle is not None:
                found[entry.meta.bundle.name] = entry.bundle
        return found


def _missing(name: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(
        f"{name} is not in the spool", remedy="the store may have it: try again when it can be reached"
    )


def _read_only(name: str) -> StoreDeniedError:
    return StoreDeniedError(
        f"{name}: the spool is only read here", remedy="try again when the store can be reached"
    )
