"""Notes on how long a run is kept, said once more for new recipients: who holds only new keys knows of them.

What stands is repeated with its own time, so that it counts before and after the same notes as it did; it is
signed by whoever rekeys. A note of a rekey therefore also says that every note before it was looked at.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from archiver import __version__, layout, notes
from archiver.errors import InvalidNameError, KeyUnavailableError
from archiver.model.note import Note
from archiver.notes import Believed, Notes

if TYPE_CHECKING:
    from archiver.setup import Setup


def noted_runs(setup: Setup) -> Iterator[str]:
    """Every run with a note, by name: of one that was erased nothing else is left."""
    last = None
    for info in setup.store.list(layout.NOTES):
        try:
            run = layout.parse(info.name).run
        except InvalidNameError:
            continue
        if run is not None and run != last:
            last = run
            yield run


def to_repeat(run: str, known: Notes, wanted: Collection[str]) -> tuple[Believed, ...]:
    """What stands of the notes on the run and none says to the wanted recipients yet.

    `KeyUnavailableError` where a note opens with none of the identities: it may be a hold, which would be
    lost for whoever holds only new keys.
    """
    unread = known.unread(run)
    if unread is not None and isinstance(unread.error, KeyUnavailableError):
        raise unread.error
    fitting = {
        (one.note.kind, one.note.at, one.note.last)
        for one in known.of(run)
        if frozenset(one.note.recipients) == frozenset(wanted)
    }
    return tuple(
        one for one in known.lasting(run) if (one.note.kind, one.note.at, one.note.last) not in fitting
    )


def repeat(one: Believed, setup: Setup) -> str:
    """Put the same note for the configured recipients, signed with the own key; gives its name."""
    key, was = setup.require_signing_key(), one.note
    fingerprints = tuple(recipient.fingerprint for recipient in setup.recipients)
    software = f"checkpoint-archiver {__version__}"
    changed = {"by": key.public, "recipients": fingerprints, "software": software}
    note = Note(**{name: getattr(was, name) for name in Note.model_fields} | changed)
    name = layout.note_name(note.at, note.run, secrets.token_hex(8))
    sealed = notes.encode(note, key, setup.recipients_for(note.run, note.task, "note"))
    notes.decode(sealed, setup.identities_for(note.run, "note", note.task), name=name)
    setup.store.create(name, [sealed], retention="hold")
    return name
