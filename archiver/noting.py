"""Sign and put a note of an administrator about how long a run is kept, before what it says is done.

And say in words what the notes that are believed say.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from archiver import __version__, layout, notes
from archiver.catalog import Catalog
from archiver.errors import (
    ArchiverError,
    BundleRemovedError,
    LimitExceededError,
    RunErasedError,
)
from archiver.model import utc_text
from archiver.model.note import MAX_REASON, Note, NoteKind
from archiver.notes import Believed, Notes
from archiver.safetext import shorten
from archiver.shellwords import run_word

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
    from archiver.redact import new_key  # not for those who only read notes: it loads the rules engine

    at = now or datetime.now(UTC)
    at -= timedelta(microseconds=at.microsecond % 1000)  # notes have milliseconds: two must not be of one
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


_WORDS: dict[NoteKind, str] = {
    "rekey": "rekeyed",
    "hold": "on hold since",
    "release": "released from hold on",
    "merged": "merged upstream, as of",
    "remove": "bundles removed on",
    "erase": "erased on",
}


def words(one: Believed) -> str:
    """A note about how long a run is kept as one line: what, when, by whom, why."""
    note = one.note
    reason = f": {note.reason}" if note.reason else ""
    return f"{_WORDS[note.kind]} {utc_text(note.at)} by {one.administrator}{reason}"


def erased(run: str, one: Believed) -> RunErasedError:
    """The error of a run of which that is the tombstone."""
    return RunErasedError(
        f"run {run} was {words(one)}",
        remedy="nothing brings it back: a new run takes another id; what may still be in the store of this "
        "one goes with another `archiver erase`",
    )


def with_leavings(error: RunErasedError, run: str) -> str:
    """What is said where something lies under an erased run: a writer that still ran has put it there."""
    return (
        f"{error}, with leavings: something of it is in the store; run `archiver erase {run_word(run)}` again"
    )


def removed(run: str, seq: int, one: Believed) -> BundleRemovedError:
    """The error of a bundle that was taken away, as that note says."""
    return BundleRemovedError(
        f"the bundle of checkpoint {seq} of run {run} is REMOVED: {words(one)}",
        remedy="its records are still there: `archiver show` has what they say",
    )


def refuse_erased(run: str, known: Notes) -> None:
    """`RunErasedError` where a believed tombstone says that all of the run was erased."""
    one = known.tombstone(run)
    if one is not None:
        raise erased(run, one)


def said(run: str, known: Notes) -> tuple[str, ...]:
    """What administrators signed about how long the run is kept, as far as it holds, a line each."""
    try:
        standing = known.standing(run)
        kinds: tuple[tuple[NoteKind, datetime | None], ...] = (
            ("hold", standing.held),
            ("merged", standing.merged),
            ("remove", standing.removed),
            ("erase", standing.erased),
        )
        found = (known.newest(run, kind) for kind, at in kinds if at is not None)
        return tuple(words(one) for one in found if one is not None)
    except ArchiverError:
        return ()


def doubted(run: str, known: Notes) -> tuple[str, ...]:
    """What is to be said of notes that are not believed: they change nothing. Raises the store's errors."""
    return tuple(
        f"the note {one.name} changes nothing: {one.error}"
        for one in known.examined(run)
        if one.error is not None
    )
