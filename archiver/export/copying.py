"""From a store into a folder: the bytes as they are, hashed on the way, with their class and their time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from archiver import layout, records
from archiver.errors import ArchiverError, InvalidNameError, LimitExceededError, StoreFullError
from archiver.history import Histories, Stored, opening
from archiver.model.export import ExportedObject
from archiver.scratch import fsync_folder
from archiver.store import ObjectInfo, Versioned, open_store

if TYPE_CHECKING:
    from archiver.model.record import RetentionClass
    from archiver.progress import Progress
    from archiver.setup import Setup
    from archiver.store import ObjectVersion

OBJECTS: Final = "objects"
VERSIONS: Final = "versions"

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class _Source:
    """What is copied: an object, or one version of it."""

    name: str
    modified: datetime
    version: str | None
    opened: AbstractContextManager[BinaryIO]


class Copying:
    """Copies objects of one store into the new folder `out`."""

    def __init__(self, setup: Setup, out: Path, progress: Progress) -> None:
        self._setup = setup
        self._out = out
        self._progress = progress
        self._histories = Histories(setup.store)
        self._target = open_store(str(out / OBJECTS), make=True)

    @property
    def target(self) -> str:
        """The address of the store that comes into being."""
        return self._target.url

    def name_store(self) -> None:
        """The object that names the store, so that the copy is one."""
        try:
            data = self._setup.store.read(layout.STORE, limit=4096)
        except ArchiverError:
            if self._setup.store_id is None:
                return
            data = layout.store_document(self._setup.store_id)
        self._target.create(layout.STORE, [data], retention="hold")

    def copied(self, stored: Stored) -> Iterator[ExportedObject]:
        """Every version of an object; what counts lies among the objects. What cannot be copied is said."""
        name = stored.info.name
        try:
            chosen, source = self._chosen(stored)
            yield self._one(stored, source, chosen)
        except StoreFullError:
            raise
        except ArchiverError as error:
            chosen = None
            yield _failed(name, None, error)
        for number, body in enumerate(reversed(stored.bodies), start=1):
            if chosen is None or body.version != chosen.version:
                yield self._version(stored, body, number)
        if stored.marker is not None:
            yield ExportedObject(
                name=name, version=stored.marker, deleted=True, said="a delete marker: it hides the others"
            )

    def _chosen(self, stored: Stored) -> tuple[ObjectVersion | None, _Source]:
        """The version that is read, as `history` has it for records; of others the newest, hidden or not."""
        store, info = self._setup.store, stored.info
        if not stored.bodies:
            return None, _Source(info.name, info.modified, None, store.open(info.name))
        body = stored.bodies[0]
        if stored.touched and info.name.startswith(layout.RECORDS):
            with suppress(LimitExceededError):
                run = layout.parse(info.name).run or ""
                opens = opening(self._setup.identities_for(run, "record"))
                read = self._histories.read(stored, records.MAX_RECORD, opens)
                body = next((one for one in stored.bodies if _is(one, read.info)), body)
                source = BytesIO(read.sealed)
                return body, _Source(info.name, body.modified, body.version, cast("BinaryIO", source))
        if not stored.touched:
            return body, _Source(info.name, body.modified, body.version, store.open(info.name))
        opened = cast("Versioned", store).open_version(info.name, body.version)
        return body, _Source(info.name, body.modified, body.version, opened)

    def _one(self, stored: Stored, source: _Source, body: ObjectVersion | None) -> ExportedObject:
        """Into the store of the copy; one without a class has none there either."""
        name = source.name
        retention = self._class_of(name)
        sha256 = hashlib.sha256()
        with source.opened as file:
            info = self._target.create(name, self._blocks(file, sha256), retention=retention or "hold")
        place = self._out / OBJECTS / name
        if retention is None:
            place.with_name(f".{place.name}.class").unlink()
        # A writer is judged by when the store got the object: a copy of today would be too new for some.
        _date(place, stored.written)
        fsync_folder(place.parent)
        expected = stored.info.size if body is None else body.size
        changed = (
            ""
            if info.size == expected
            else f"it was changed while it was copied: {expected} bytes were listed"
        )
        return ExportedObject(
            name=name,
            file=f"{OBJECTS}/{name}",
            size=info.size,
            sha256=sha256.hexdigest(),
            version=source.version,
            latest=body is None or body.latest,
            hidden=stored.marker is not None,
            modified=source.modified,
            retention=retention,
            said=changed,
        )

    def _version(self, stored: Stored, body: ObjectVersion, number: int) -> ExportedObject:
        """Beside the store of the copy."""
        file = f"{VERSIONS}/{body.name}/{number:04d}"
        place = self._out / file
        sha256 = hashlib.sha256()
        size = 0
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = cast("Versioned", self._setup.store).open_version(body.name, body.version)
            with opened as source, _new(place) as target:
                for block in self._blocks(source, sha256):
                    size += target.write(block)
                target.flush()
                os.fsync(target.fileno())
        except ArchiverError as error:
            place.unlink(missing_ok=True)
            return _failed(body.name, body.version, error)
        _date(place, body.modified)
        return ExportedObject(
            name=body.name,
            file=file,
            size=size,
            sha256=sha256.hexdigest(),
            version=body.version,
            latest=body.latest,
            hidden=stored.marker is not None,
            modified=body.modified,
            said="another version, which does not count",
        )

    def _class_of(self, name: str) -> RetentionClass | None:
        try:
            return self._setup.store.head(name).retention
        except ArchiverError:
            return None  # hidden, or its tag may not be read

    def _blocks(self, source: BinaryIO, sha256: hashlib._Hash) -> Iterator[bytes]:
        while block := source.read(_BLOCK):
            sha256.update(block)
            self._progress.advance(len(block))
            yield block


def _is(body: ObjectVersion, info: ObjectInfo) -> bool:
    return (body.size, body.modified, body.etag) == (info.size, info.modified, info.etag)


def _failed(name: str, version: str | None, error: ArchiverError) -> ExportedObject:
    what = "its name cannot be a file's" if isinstance(error, InvalidNameError) else str(error)
    return ExportedObject(
        name=name, version=version, verification=type(error).__name__, said=f"not copied: {what}"
    )


def _date(path: Path, moment: datetime) -> None:
    with suppress(OSError, OverflowError, ValueError):
        os.utime(path, (moment.timestamp(), moment.timestamp()))


def _new(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
