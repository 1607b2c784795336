"""What this machine remembers of one run while it is saved, and afterwards.

A writer that can read no record has nothing else. Before it puts a record it remembers which number it is
about to take with which content: if it is killed then, and the number is taken when it looks again, it was
most probably itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from archiver import __version__, jsonio, position
from archiver.audit.cleaning import Clean
from archiver.errors import ArchiverError, UnconfirmedError
from archiver.model import Outcome, Record, SourceRef
from archiver.position import Position
from archiver.sweep import content
from archiver.sweep.state import Known, State, key_of

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup
    from archiver.sources import Found

_UNREAD: Final = (
    "have the run archived by somebody who may read the store; nothing more of it is uploaded from here"
)


def world(settings: Settings, now: datetime) -> str:
    """What besides files decides whether they can be saved: release, settings, and once a day all else."""
    text = f"{__version__} {settings!r} {now.astimezone(UTC):%Y-%m-%d}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(slots=True)
class Remembering:
    """The memory of one run of a source."""

    found: Found
    outcome: Outcome
    setup: Setup
    state: State
    run: str = ""
    ref: SourceRef | None = None
    stamp: str = ""
    """Of the files as they were read; empty while it is not known that they stayed as they were."""
    blind: bool = False
    """Whether no record can be read here."""
    known: Known | None = field(default=None, init=False)
    """What was remembered before it was begun."""

    def __post_init__(self) -> None:
        self.run = self.found.run_id or ""
        self.known = self.state.get(self.found.kind, key_of(self.found.key))

    # --- what became of it ---

    def saved(self, record: Record, sha256: str) -> None:
        """The store has the content in this record."""
        kept = jsonio.canonical(record.document()) if self.blind else None
        self._put("archived", "", record.run, record.seq, record.outcome, kept, sha256)

    def refused(self, what: str, why: str, also: str = "") -> None:
        """It is not to be tried again while its files stay as they are, and what `also` stands for."""
        clean = Clean(self.setup).whole
        with suppress(ArchiverError):
            self.stamp = content.stamp(content.look(self.found.files), also)
        self._put(what, clean(why), clean(self.run), 0, self.outcome, None, "")

    def perhaps(self) -> int:
        """The number that this content has most probably, remembered without its record."""
        seq = self.known.seq + 1 if self.known is not None else 1
        self._put("archived", "", self.run, seq, self.outcome, None, "")
        return seq

    # --- without a way to read records ---

    def begin(self, place: Position) -> None:
        """Remember that something may be there, before it is: nobody can look afterwards."""
        last = place.head
        kept = jsonio.canonical(last.document()) if last is not None else None
        outcome = last.outcome if last is not None else "running"
        self._put("begun", "", place.run, place.seq - 1, outcome, kept, place.previous or "")

    def unread(self, run: str, same: Callable[[Record, str], None]) -> Position:
        """The place after the record that is remembered; `same` is shown that, and may raise."""
        known = self.state.of_run(run)
        if known is not None and known.what == "unconfirmed":
            raise UnconfirmedError(known.why, remedy=_UNREAD)
        last = known.document if known is not None else None
        if known is not None and last is not None:
            same(last, known.sha256)
            return position.unread(run, self.setup, last, known.sha256)
        if known is not None and known.seq:
            raise UnconfirmedError(
                f"run {run} has record {known.seq}, and what it says is not known here: what comes after it "
                "cannot be named",
                remedy=_UNREAD,
            )
        return position.unread(run, self.setup, None, "")

    def is_own(self, error: UnconfirmedError) -> bool:
        """Whether what is there now was begun here, with this very content, before a death."""
        known = self.known
        if known is None or known.what != "begun" or self.ref is None or known.run != self.run:
            return False
        return known.content == self.ref.content and error.details.get("seq", known.seq + 1) == known.seq + 1

    def _put(
        self, what: str, why: str, run: str, seq: int, outcome: str, record: bytes | None, sha256: str
    ) -> None:
        key, ref = key_of(self.found.key), self.ref.content if self.ref else ""
        self.state.put(
            Known(self.found.kind, key, self.stamp, ref, run, seq, outcome, what, why, record, sha256)
        )
