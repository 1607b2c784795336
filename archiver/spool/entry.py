"""One sealed record of a run on the local disk, with its bundle if it has one.

    <number, 8 digits>/waiting.json     what delivery has to know: numbers, digests and times, no text
                       <digest>.age     the sealed record, as the store gets it
                       bundle.age       the sealed bundle likewise; a claim and a skipped one have none

The name of the JSON file is the state: `waiting`, `sent` or `delivered`. So a step forward is one rename,
which works on a full disk too, and another record takes the place of the first in the moment in which another
JSON file does.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from archiver import jsonio, layout
from archiver.errors import (
    ContextMismatchError,
    DamagedError,
    DigestMismatchError,
    InvalidNameError,
    NotSerialisableError,
    UnsupportedSchemaError,
)
from archiver.model import Frozen
from archiver.model.base import JsonValue, Utc
from archiver.model.checkpoint import Count, Digest
from archiver.model.limits import MAX_CHAIN
from archiver.model.record import RecordKind, RetentionClass
from archiver.records import MAX_RECORD
from archiver.spool import disk

SPOOL_FORMAT: Final = 1
MAX_META: Final = 1 << 14
"""Bytes of the JSON file."""
BUNDLE: Final = "bundle.age"

State = Literal["waiting", "sent", "delivered"]
"""`sent`: it may be in the store already, so its bytes stay as they are. `delivered`: it is."""


class BundleFile(Frozen):
    """The sealed bundle of an entry."""

    name: str
    """Its name in the store."""
    payload_sha256: Digest
    payload_length: Count
    size: Count


class Meta(Frozen):
    """What is known of an entry without a key."""

    format: Literal[1] = SPOOL_FORMAT
    store: str
    run: str
    seq: Annotated[int, Field(ge=1, le=layout.MAX_SEQ)]
    kind: RecordKind
    plain: bool
    """Whether it may give up its bundle when the spool is full."""
    joined: bool
    """Whether the record before it lies or lay in the spool too."""
    sha256: Digest
    """Of the body of the record."""
    was: Digest | None = None
    """The same of the one that was put here first, where it was signed anew: what the next one may name."""
    unsigned: bool = False
    """Whether the record has yet to be signed as what is said here."""
    previous: Digest | None
    recorded_at: Utc
    retention: RetentionClass
    sealed_sha256: Digest
    """Of the file of the record."""
    sealed_size: Count
    bundle: BundleFile | None = None
    bases: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(max_length=MAX_CHAIN)] = ()
    """Numbers of the bundles that its bundle is based on."""
    at: Utc
    """When it was put here, by the clock of this machine."""

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = as_usual(self)
        if not self.bases:
            document.pop("bases", None)
        return document


@dataclass(frozen=True, slots=True)
class Entry:
    """A sealed record in the spool; what it says may have changed on disk since."""

    folder: Path
    meta: Meta
    state: State

    @property
    def run(self) -> str:
        return self.meta.run

    @property
    def seq(self) -> int:
        return self.meta.seq

    @property
    def sha256(self) -> str:
        """Of the record's body: what the next record names as `previous`."""
        return self.meta.sha256

    @property
    def recorded_at(self) -> datetime:
        return self.meta.recorded_at

    @property
    def kind(self) -> RecordKind:
        return self.meta.kind

    @property
    def plain(self) -> bool:
        return self.meta.plain

    @property
    def delivered(self) -> bool:
        return self.state == "delivered"

    @property
    def size(self) -> int:
        """Bytes of the record and of its bundle."""
        return self.meta.sealed_size + (self.meta.bundle.size if self.meta.bundle else 0)

    @property
    def at(self) -> datetime:
        return self.meta.at

    @property
    def bundle(self) -> Path | None:
        """The file of the bundle, if it has one."""
        return self.folder / BUNDLE if self.meta.bundle else None

    @property
    def digests(self) -> tuple[str | None, str | None]:
        """What the next record may name as `previous`: it is signed anew where this one was."""
        return self.meta.sha256, self.meta.was

    def stepped_at(self) -> float:
        """When it took its last step, in seconds since 1970 by the clock of this machine."""
        with disk.translated(self.folder):
            return (self.folder / meta_file(self.state)).stat().st_mtime

    def read_record(self) -> bytes:
        """The sealed record; `DigestMismatchError` if it is not what was put here."""
        path = self.folder / record_file(self.meta)
        with disk.translated(self.folder):
            data = _present(path, MAX_RECORD)
        if hashlib.sha256(data).hexdigest() != self.meta.sealed_sha256:
            raise DigestMismatchError(f"{path} is not what was put into the spool", remedy=REMEDY)
        return data


def record_file(meta: Meta) -> str:
    """The name of the file with the sealed record."""
    return f"{meta.sealed_sha256[:16]}.age"


def meta_file(state: State) -> str:
    """The name of the JSON file."""
    return f"{state}.json"


def meta_bytes(meta: Meta) -> bytes:
    """Its content."""
    return jsonio.canonical(meta.document()) + b"\n"


REMEDY: Final = (
    "bring the folder back from a backup; if there is none, `archiver sync` keeps it and what follows it as "
    "forks, and the run goes on from what is in the store"
)


def load(folder: Path, store: str, run: str) -> Entry:
    """The entry in that folder; `DamagedError` if it is not one, `ContextMismatchError` if of another run."""
    with disk.translated(folder):
        there = disk.names(folder)
        states: list[State] = [state for state in get_args(State) if meta_file(state) in there]
        if len(states) != 1:
            raise DamagedError(f"{folder} does not say whether it was delivered", remedy=REMEDY)
        path = folder / meta_file(states[0])
        meta = _parsed(path, _present(path, MAX_META))
    if (meta.store, meta.run, meta.seq) != (store, run, number(folder.name)):
        raise ContextMismatchError(
            f"{folder} holds record {meta.seq} of run {meta.run} of store {meta.store}: it was moved or "
            "copied",
            remedy="put it back where it belongs, or remove it",
        )
    return Entry(folder, meta, states[0])


def number(name: str) -> int | None:
    """The number in the name of an entry's folder, or of a fork's; None for anything else."""
    digits = name.partition("-")[0]
    return int(digits) if len(digits) == 8 and digits.isascii() and digits.isdigit() and int(digits) else None


def _present(path: Path, limit: int) -> bytes:
    try:
        return disk.read(path, limit)
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing", remedy=REMEDY) from error


def _parsed(path: Path, data: bytes) -> Meta:
    try:
        document = jsonio.loads(data)
    except ValueError as error:
        raise DamagedError(f"{path} is not JSON", remedy=REMEDY) from error
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SPOOL_FORMAT:
        raise UnsupportedSchemaError(
            f"{path} has spool format {version}; this release reads {SPOOL_FORMAT}",
            remedy=f"deliver it with a checkpoint-archiver release that reads spool format {version}",
        )
    try:
        meta = Meta.model_validate(document)
        if meta.bundle is not None:
            parsed = layout.parse(meta.bundle.name)
            if (parsed.kind, parsed.run, parsed.seq) != ("bundle", meta.run, meta.seq):
                raise DamagedError(f"{path} names a bundle that cannot be its own", remedy=REMEDY)
    except (ValidationError, NotSerialisableError, InvalidNameError) as error:
        raise DamagedError(f"{path} is not what was written there", remedy=REMEDY) from error
    return meta
