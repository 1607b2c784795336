"""Sign and put a note of an administrator about how long a run is kept, before what it says is done."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from archiver import __version__, layout, notes
from archiver.catalog import Catalog
from archiver.errors import LimitExceededError
from archiver.model.note import MAX_REASON, Note, NoteKind
from archiver.redact import new_key
from archiver.safetext import shorten

if TYPE_CHECKING:
    from archiver.setup import Setup


def demand_administrator(setup: Setup, now: datetime) -> None:
    """`UntrustedWriterError` where nobody would believe a note of the own key; `KeyUnavailableError`."""
    setup.writers.judge_administrator(setup.require_signing_key().public, "a note of yours", now)


def put_note(
    setup: Setup,
    run: str,
    task: str,
    kind: NoteKind,
    *,
    reason: str = "",
    last: int | None = None,
    now: datetime | None = None,
) -> Note:
    """Put a note of this kind on the run, signed with the own key; it is in the store when this returns.

    `last` is the number of its newest record. The note is later than every one before it, whatever the clock
    says. Raises as `demand_administrator`, and the store's errors.
    """
    at = now or datetime.now(UTC)
    demand_administrator(setup, at)
    before = Catalog(setup).notes.examined(run)
    if len(before) >= notes.MAX_NOTES - 1:
        raise LimitExceededError(
            f"run {run} has {len(before)} notes already", remedy="remove those that are not needed any more"
        )
    newest = max((one.believed.note.at for one in before if one.believed is not None), default=None)
    if newest is not None and newest >= at:
        at = newest + timedelta(milliseconds=1)
    key = setup.require_signing_key()
    reached = setup.seal_to(run, task, "note")
    note = Note(
        kind=kind,
        store=setup.require_store_id(),
        run=run,
        task=task,
        at=at,
        by=key.public,
        reason=shorten(setup.redactor(new_key()).text(reason), MAX_REASON),
        recipients=reached.fingerprints,
        last=last,
        software=f"checkpoint-archiver {__version__}",
    )
    name = layout.note_name(note.at, run, secrets.token_hex(8))
    sealed = notes.encode(note, key, reached.recipients)
    notes.decode(sealed, setup.identities_for(run, "note", task), name=name)
    setup.store.create(name, [sealed], retention="hold")
    return note
