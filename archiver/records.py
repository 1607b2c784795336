"""Records as objects, and what a record must say to lie where it lies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver import jsonio, layout, sign, signed
from archiver.errors import ContextMismatchError, InvalidNameError, LimitExceededError, RecordError
from archiver.model.record import RECORD_FORMAT, Record
from archiver.signed import Seal

if TYPE_CHECKING:
    from archiver.age import Identity, Reached, Recipient

PAYLOAD_TYPE = "application/vnd.checkpoint-archiver.record.v1+json"
MAX_RECORD = 1 << 20
"""Bytes a sealed record may have, on write and on read."""

_FORM = signed.Form("record", PAYLOAD_TYPE, RECORD_FORMAT, Record, MAX_RECORD)


@dataclass(frozen=True, slots=True)
class Link:
    """A verified record with the digest that its successor must name, and how it was sealed."""

    record: Record
    sha256: str
    seal: Seal


def encode(record: Record, key: sign.SigningKey, recipients: Sequence[Recipient]) -> bytes:
    """Sign the record's canonical body and seal the frame; `LimitExceededError` past `MAX_RECORD` bytes."""
    sealed = signed.encode(_FORM, record, key, recipients)
    if len(sealed) > MAX_RECORD:
        raise LimitExceededError(
            f"the record of run {record.run} number {record.seq} would have {len(sealed)} bytes, "
            f"more than {MAX_RECORD}",
            remedy="shorten objective, note or captured probes",
        )
    return sealed


def sealed(record: Record, key: sign.SigningKey, reached: Reached) -> tuple[Record, bytes]:
    """The record, marked with who is missing of those it is sealed to, and its object; raises as `encode`."""
    if not set(reached.missing) <= set(record.missing_recipients):
        missing = dict.fromkeys((*record.missing_recipients, *reached.missing))
        record = record.model_copy(update={"missing_recipients": tuple(missing)})
    return record, encode(record, key, reached.recipients)


def body_sha256(record: Record) -> str:
    """SHA-256 of the body as `encode` writes it: what the next record names as `previous`."""
    return hashlib.sha256(jsonio.canonical(record.document())).hexdigest()


def decode(sealed: bytes, identities: Sequence[Identity], *, run: str, seq: int) -> Link:
    """Open, verify and only then parse a record that lies under the name of `run` and `seq`.

    Whether the signing key may write this run is for the caller to judge: `record.writer` is that key.
    Raises what `signed.decode` does, or `ContextMismatchError` when an authentic record lies in another
    record's place.
    """
    where = f"record {seq} of run {run}"
    opened = signed.decode(_FORM, sealed, identities, where)
    record = opened.document
    if record.writer != opened.public:
        raise RecordError(f"{where} names another writer than the key that signed it")
    if record.bundle is not None and not _is_bundle_of(record.bundle.name, record):
        raise RecordError(f"{where} names an object that cannot be its bundle")
    if (record.run, record.seq) != (run, seq):
        raise ContextMismatchError(
            f"{where} is in truth record {record.seq} of run {record.run}: the object was moved or copied"
        )
    opened.demand_context(run, record.task, "record", where)
    return Link(record, opened.sha256, opened.seal)


def _is_bundle_of(name: str, record: Record) -> bool:
    try:
        parsed = layout.parse(name)
    except InvalidNameError:
        return False
    return (parsed.kind, parsed.run, parsed.seq) == ("bundle", record.run, record.seq)
