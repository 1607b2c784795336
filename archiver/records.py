"""Records as objects: body → signed frame → age file, and back, checked in that order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from pydantic import ValidationError

from archiver import age, jsonio, layout, sign
from archiver.errors import (
    ContextMismatchError,
    InvalidNameError,
    LimitExceededError,
    NotSerialisableError,
    RecordError,
    UnsupportedSchemaError,
)
from archiver.model.record import RECORD_FORMAT, Record

if TYPE_CHECKING:
    from archiver.age import Identity, Recipient

PAYLOAD_TYPE = "application/vnd.checkpoint-archiver.record.v1+json"
MAX_RECORD = 1 << 20
"""Bytes a sealed record may have, on write and on read."""


@dataclass(frozen=True, slots=True)
class Link:
    """A verified record with the digest that its successor must name."""

    record: Record
    sha256: str


def encode(record: Record, key: sign.SigningKey, recipients: Sequence[Recipient]) -> bytes:
    """Sign the record's canonical body and seal the frame; `LimitExceededError` past `MAX_RECORD` bytes."""
    frame = sign.sign(key, PAYLOAD_TYPE, jsonio.canonical(record.document()))
    pieces: list[bytes] = []
    sealer = age.seal(recipients, pieces.append, digest=False)
    sealer.write(frame)
    sealer.close()
    sealed = b"".join(pieces)
    if len(sealed) > MAX_RECORD:
        raise LimitExceededError(
            f"the record of run {record.run} number {record.seq} would have {len(sealed)} bytes, "
            f"more than {MAX_RECORD}",
            remedy="shorten objective, note or captured probes",
        )
    return sealed


def body_sha256(record: Record) -> str:
    """SHA-256 of the body as `encode` writes it: what the next record names as `previous`."""
    return hashlib.sha256(jsonio.canonical(record.document())).hexdigest()


def decode(sealed: bytes, identities: Sequence[Identity], *, run: str, seq: int) -> Link:
    """Open, verify and only then parse a record that lies under the name of `run` and `seq`.

    Whether the signing key may write this run is for the caller to judge: `record.writer` is that key.
    Raises `ContainerError`, `KeyUnavailableError`, `SignatureError`, `UnsupportedSchemaError`, `RecordError`,
    or `ContextMismatchError` when an authentic record lies in another record's place.
    """
    where = f"record {seq} of run {run}"
    with age.unseal(identities, BytesIO(sealed), name=where, digest=False) as unsealed:
        frame = unsealed.read(MAX_RECORD + 1)
    public, body = sign.verify(frame, PAYLOAD_TYPE)
    record = _parse(body, where)
    if record.writer != public:
        raise RecordError(f"{where} names another writer than the key that signed it")
    if (record.run, record.seq) != (run, seq):
        raise ContextMismatchError(
            f"{where} is in truth record {record.seq} of run {record.run}: the object was moved or copied"
        )
    return Link(record, hashlib.sha256(body).hexdigest())


def _parse(body: bytes, where: str) -> Record:
    try:
        document = jsonio.loads(body)
    except ValueError as error:
        raise RecordError(f"{where} is signed but is not JSON") from error
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > RECORD_FORMAT:
        raise UnsupportedSchemaError(
            f"{where} has record format {version}; this release reads {RECORD_FORMAT}",
            remedy=f"install a checkpoint-archiver release that reads record format {version}",
        )
    try:
        record = Record.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RecordError(f"{where} does not have the shape of a record: {place}: {first['msg']}") from error
    except NotSerialisableError as error:
        raise RecordError(f"{where} does not have the shape of a record: {error}") from error
    if jsonio.canonical(record.document()) != body:
        raise RecordError(f"{where} is not written in the one canonical form")
    if record.bundle is not None and not _is_bundle_of(record.bundle.name, record):
        raise RecordError(f"{where} names an object that cannot be its bundle")
    return record


def _is_bundle_of(name: str, record: Record) -> bool:
    try:
        parsed = layout.parse(name)
    except InvalidNameError:
        return False
    return (parsed.kind, parsed.run, parsed.seq) == ("bundle", record.run, record.seq)
