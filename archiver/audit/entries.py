"""Audit objects: who did what with a run, signed by them and sealed to the recipients of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import layout, signed
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    LimitExceededError,
    ObjectNotFoundError,
    RecordError,
    StoreError,
    UntrustedWriterError,
)
from archiver.model import utc_text
from archiver.model.audit import AUDIT_FORMAT, AuditEntry
from archiver.parallel import in_order
from archiver.store import Remote

if TYPE_CHECKING:
    from archiver.age import Identity, Recipient
    from archiver.setup import Setup
    from archiver.sign import SigningKey
    from archiver.store import ObjectInfo

PAYLOAD_TYPE = "application/vnd.checkpoint-archiver.audit.v1+json"
MAX_ENTRY = 1 << 20
"""Bytes a sealed audit object may have, on write and on read."""

_FORM = signed.Form("audit object", PAYLOAD_TYPE, AUDIT_FORMAT, AuditEntry, MAX_ENTRY)


@dataclass(frozen=True, slots=True)
class Found:
    """An audit object of the store, or the error that keeps it from being read."""

    name: str
    entry: AuditEntry | None = None
    signer: str | None = None
    """Name of the trusted key that signed it; None for one that no list of trusted keys has."""
    error: ArchiverError | None = None


def encode(entry: AuditEntry, key: SigningKey, recipients: Sequence[Recipient]) -> bytes:
    """Sign and seal; `LimitExceededError` past `MAX_ENTRY` bytes."""
    sealed = signed.encode(_FORM, entry, key, recipients)
    if len(sealed) > MAX_ENTRY:
        raise LimitExceededError(
            f"an audit object would have {len(sealed)} bytes, more than {MAX_ENTRY}",
            remedy="give shorter reasons, or seal to fewer recipients",
        )
    return sealed


def decode(sealed: bytes, identities: Sequence[Identity], *, name: str) -> AuditEntry:
    """Open, verify and only then parse the audit object under `name`; whether to trust `by` is the caller's.

    Raises what `signed.decode` does, or `ContextMismatchError` when it lies in another one's place.
    """
    opened = signed.decode(_FORM, sealed, identities, name)
    entry, place = opened.document, layout.parse(name)
    if entry.by != opened.public:
        raise RecordError(f"{name} names another signer than the key that signed it")
    run = entry.run or layout.SEVERAL_RUNS
    if place.run != run or layout.audit_name(entry.at, run, place.random or "") != name:
        raise ContextMismatchError(
            f"{name} is in truth the audit of run {run} at {utc_text(entry.at)}: it was moved or copied"
        )
    opened.demand_context(run, entry.task, "audit", name)
    return entry


def of(setup: Setup, run: str) -> Iterator[Found]:
    """The audit objects that lie under a run, the newest first; one that does not hold with its error.

    Raises only what keeps the store from being read.
    """

    return _found(setup, layout.audit_prefix(run), None)


def everywhere(setup: Setup, since: datetime | None) -> Iterator[Found]:
    """The same of all runs, and of what is about several; with `since`, those alone that are not older."""
    return _found(setup, layout.AUDIT, since)


def _found(setup: Setup, prefix: str, since: datetime | None) -> Iterator[Found]:
    def look(info: ObjectInfo) -> Found | None:
        try:
            place = layout.parse(info.name)
            if place.run is None or (since is not None and place.at is not None and place.at < since):
                return None
            return _read(info, place.run, setup)
        except (InvalidNameError, ObjectNotFoundError):
            return None  # nobody's, `verify` reports it as a stranger; or removed since it was listed
        except StoreError:
            raise
        except ArchiverError as error:
            return Found(info.name, error=error.with_traceback(None))

    store = setup.store
    workers = store.parallel if isinstance(store, Remote) else 1
    with closing(in_order(look, store.list(prefix), workers=workers)) as found:
        yield from (one for one in found if one is not None)


def _read(info: ObjectInfo, run: str, setup: Setup) -> Found:
    sealed = setup.store.read(info.name, limit=MAX_ENTRY)
    entry = decode(sealed, setup.identities_for(run, "audit"), name=info.name)
    if setup.store_id is not None and entry.store != setup.store_id:
        raise ContextMismatchError(f"{info.name} belongs to store {entry.store}, not to {setup.store_id}")
    return Found(info.name, entry, _signer(entry, info, setup))


def _signer(entry: AuditEntry, info: ObjectInfo, setup: Setup) -> str | None:
    """The name of the signing key, where it is a trusted writer's of the run or an administrator's."""
    writers = setup.writers
    try:
        return writers.judge(entry.by, entry.run or "", info.modified)
    except UntrustedWriterError:
        pass
    try:
        return writers.judge_administrator(entry.by, info.name, info.modified)
    except UntrustedWriterError:
        return None
