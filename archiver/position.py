"""Where the next checkpoint of a run goes: its number, what it follows, and the run's redaction key."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from archiver import age, layout, noting, pack, rollback
from archiver.catalog import Catalog, Entry
from archiver.errors import (
    DigestMismatchError,
    InvalidNameError,
    LimitExceededError,
    MissingRecordError,
    ObjectNotFoundError,
    RunErasedError,
    StaleWriterError,
    StoreDeniedError,
    UnconfirmedError,
)
from archiver.model.record import BundleRef, Record
from archiver.shellwords import command

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Position:
    """The place of the next record; `head` is the newest record, None for a new run."""

    run: str
    seq: int = 1
    previous: str | None = None
    head: Record | None = None
    redaction_key: bytes = b""
    """The run's key for placeholders; empty when no bundle holds one (any more)."""


def find(
    run: str,
    setup: Setup,
    *,
    anyone: bool = False,
    seen: Callable[[Catalog, Entry], None] = lambda _catalog, _head: None,
) -> Position:
    """Read the head of the run, and from its newest bundle the redaction key.

    `seen` is shown the newest record of an own run before any bundle is asked for, and may raise.
    Raises `StaleWriterError` where another key than the own has written it, unless it may be `anyone`'s: for
    those who write nothing. Raises `RolledBackError` or `ForkError` where the store is not as far as the
    witness has seen it: what came next would use a number again.
    """
    sight = rollback.look(run, setup)
    catalog = Catalog(setup)
    head = catalog.head(run)
    _refuse_erased(run, setup, catalog, head)
    sight.demand(head, catalog, datetime.now(UTC))
    if head is None:
        return Position(run)
    own = setup.require_signing_key().public
    if head.record.writer != own and not anyone:
        raise StaleWriterError(
            f"run {run} is written with the key {head.record.writer}, not with the own one, {own}",
            remedy="archive with that key, or under another --run-id; "
            f"`{command('archiver restore', run, ('--claim', *setup.session.words()))}` takes the run over, "
            "if its writer has ended",
        )
    seen(catalog, head)
    return after(head.record, head.sha256, setup)


def _refuse_erased(run: str, setup: Setup, catalog: Catalog, head: Entry | None) -> None:
    """`RunErasedError` for a run that was erased; also for one with notes that cannot be read and no record.

    A writer need not be able to read notes, or to know who may sign them: then a person has to look.
    """
    noting.refuse_erased(run, catalog.notes)
    if head is not None:
        return
    try:
        if not any(True for _ in setup.store.list(layout.notes_prefix(run))):
            return
    except StoreDeniedError:  # whether there are any is not for this role to know
        return
    try:
        doubted = noting.doubted(run, catalog.notes)
    except StoreDeniedError as error:
        doubted = (str(error),)
    if doubted:
        raise RunErasedError(
            f"run {run} has notes of administrators and no record, so it was erased as it seems, and what "
            f"they say is not known here: {doubted[0]}",
            remedy="have an administrator look at them with `archiver verify`, or use another run id",
        )


def unread(run: str, setup: Setup, last: Record | None, sha256: str) -> Position:
    """The same for a role that can read nothing back: the place after the record that it committed last.

    Nothing is opened. `UnconfirmedError` where the store, if it may be listed, or the witness has a number
    after that record's: what lies there cannot be told.
    """
    newest = last.seq if last is not None else 0
    sight = rollback.look(run, setup)
    there = sight.seen.seq if sight.seen is not None else 0
    with suppress(StoreDeniedError):
        there = max(there, *Catalog(setup).numbers(run), 0)
    if there > newest:
        error = UnconfirmedError(
            f"run {run} has record {there}, which this role cannot read, and nothing here remembers what it "
            "was made of",
            remedy="have the run archived by somebody who may read the store; nothing was uploaded",
        )
        error.details["seq"] = there
        raise error
    return Position(run, newest + 1, sha256 or None, last)


def after(record: Record, sha256: str, setup: Setup) -> Position:
    """The place after that record, which is the newest of its run.

    `LimitExceededError` after the last number.
    """
    if record.seq >= layout.MAX_SEQ:
        raise LimitExceededError(
            f"run {record.run} has used its last number, {layout.MAX_SEQ}", remedy="use another run id"
        )
    return Position(
        record.run,
        seq=record.seq + 1,
        previous=sha256,
        head=record,
        redaction_key=_redaction_key(Catalog(setup), record, setup),
    )


def _redaction_key(catalog: Catalog, head: Record, setup: Setup) -> bytes:
    """The key in the manifest of the newest bundle that is still there: placeholders stay the same."""
    if head.bundle is not None and (key := _key_in(head.bundle, head, setup)) is not None:
        return key
    for seq in _with_bundles(head, setup):
        try:
            record = catalog.read(head.run, seq).record
        except (MissingRecordError, ObjectNotFoundError):
            return b""
        if record.bundle is not None and (key := _key_in(record.bundle, record, setup)) is not None:
            return key
    return b""


def _with_bundles(head: Record, setup: Setup) -> list[int]:
    """Numbers before the head that have a bundle, the newest first; of a long run most have none any more."""
    found = set()
    for info in setup.store.list(layout.bundles_prefix(head.run)):
        with suppress(InvalidNameError):
            found.add(layout.parse(info.name).seq or head.seq)
    return sorted((seq for seq in found if seq < head.seq), reverse=True)


def _key_in(bundle: BundleRef, record: Record, setup: Setup) -> bytes | None:
    identities = setup.identities_for(record.run, "bundle", record.task)
    try:
        with (
            setup.store.open(bundle.name) as source,
            age.unseal(identities, source, name=bundle.name) as opened,
        ):
            opened.demand_context(record.run, record.task, "bundle")
            manifest = pack.read_manifest(opened, limits=setup.settings.limits)
    except ObjectNotFoundError:
        return None
    if manifest.sha256 != bundle.manifest_sha256:
        raise DigestMismatchError(f"{bundle.name} holds another manifest than its record signed")
    return base64.b64decode(manifest.redaction_key)
