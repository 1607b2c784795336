"""Save one finished run, once: same content → nothing; other content → its next number.

    content of the files → newest record of the run → is it in there? → archive → remember

What is in the store decides, whatever this machine remembers, and it is looked at again right before anything
is uploaded: another host may have saved the same meanwhile. Of two that both upload, one commits the number;
the other finds its content there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from archiver import position, records
from archiver.archive import Archived, Given, Options, Prepared, Source, archive
from archiver.catalog import Catalog, Entry
from archiver.errors import (
    KMS_AWAY,
    ArchiverError,
    KeyUnavailableError,
    RefusedError,
    RunErasedError,
    StaleWriterError,
    StoreDeniedError,
    UnconfirmedError,
    UntrustedWriterError,
)
from archiver.model import Outcome, Record
from archiver.position import Position
from archiver.progress import Progress
from archiver.sweep import belonging, content
from archiver.sweep.looking import LASTING
from archiver.sweep.remembering import Remembering, world
from archiver.sweep.state import State, open_state

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.sources import FileStamp, Found

What = Literal["archived", "unchanged", "refused", "failed"]
ACTIVE: Final = timedelta(days=1)
"""How long after a run was written to the machine counts as the world that it was in."""
LOOK_BACK: Final = 64
"""Records before the newest in which the same content is looked for."""
TRIES: Final = 3
"""How often a run is begun anew because its files, or its place in the store, changed meanwhile."""
ERASED: Final = "its files are still there: remove them, or leave them out with `match` of the source"


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one run."""

    run: str
    seq: int | None
    what: What
    record: Record | None
    size: int
    """Bytes that were stored."""
    seconds: float
    warnings: tuple[str, ...]
    error: ArchiverError | None


class _SameError(Exception):
    """The store holds this content."""

    def __init__(self, record: Record, sha256: str) -> None:
        super().__init__()
        self.record, self.sha256 = record, sha256


class _ChangedError(Exception):
    """Files or place are not what they were when the save began."""


def save(
    found: Found,
    outcome: Outcome,
    setup: Setup,
    *,
    progress: Progress | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    state: State | None = None,
) -> Saved:
    """Save the run unless the store holds the same content with this outcome; errors are in what is returned.

    `refused` is what does not get better by being tried again: another writer has the run, or it was erased.
    A writer without a way to read records goes by what this machine remembers. `state` is the memory that is
    used, where the caller has it open.
    """
    began = time.monotonic()
    memory, warnings = state, ()
    try:
        memory = state or open_state(setup)
        work = _Saving(found, outcome, setup, Remembering(found, outcome, setup, memory), progress, now)
        try:
            saved = work.saved()
        except ArchiverError as error:
            saved = work.ended(error)
    except ArchiverError as error:
        saved = Saved(found.run_id or "", None, "failed", None, 0, 0.0, warnings, error)
    finally:
        if memory is not None and state is None:
            memory.close()
    return replace(saved, seconds=time.monotonic() - began)


@dataclass(slots=True)
class _Saving:
    found: Found
    outcome: Outcome
    setup: Setup
    memory: Remembering
    progress: Progress | None
    now: Callable[[], datetime]
    refused: bool = False
    notes: list[str] = field(default_factory=list)

    def saved(self) -> Saved:
        """As often as files or place change meanwhile, but for a bounded number of times."""
        self.memory.blind = not self.setup.identities  # nothing can be opened: a role that only creates
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            files = content.look(self.found.files)
            self.memory.ref = content.reference(self.found, self.setup)
            try:
                return self._once(files, last)
            except _SameError as same:
                self.memory.stamp = content.stamp(files) if content.look(files) == files else ""
                self.memory.saved(same.record, same.sha256)
                return self._result(same.record, "unchanged")
            except _ChangedError:
                continue
            except StaleWriterError:
                if self.refused or last:
                    raise
            except UnconfirmedError as error:
                if not self.memory.is_own(error):
                    raise
                self.memory.stamp = content.stamp(files) if content.look(files) == files else ""
                return self._perhaps()
        raise AssertionError("the last attempt returns or raises")

    def ended(self, error: ArchiverError) -> Saved:
        """What is remembered and returned of an error; only what does not get better is remembered."""
        final = self.refused or isinstance(error, RunErasedError)
        if isinstance(error, RunErasedError):
            error.remedy = ERASED
        lasting = final and not isinstance(error, UntrustedWriterError)
        with suppress(ArchiverError):
            if lasting or isinstance(error, UnconfirmedError):
                self.memory.refused("refused" if final else "unconfirmed", str(error))
            elif isinstance(error, LASTING) and not self.memory.blind:
                self.memory.refused("failed", str(error), world(self.setup.settings, self.now()))
        return Saved(
            *(self.memory.run, None, "refused" if final else "failed", None, 0, 0.0, tuple(self.notes)),
            error=error,
        )

    def _once(self, files: tuple[FileStamp, ...], last: bool) -> Saved:
        def ready(prepared: Prepared) -> None:
            if content.look(files) == files:
                self.memory.stamp = content.stamp(files)
            elif not last:
                raise _ChangedError
            if not self.memory.blind:
                self._look_again(prepared.place)

        def intend(place: Position) -> None:
            if self.memory.blind:
                self.memory.begin(place)

        done = archive(
            Source(paths=self.found.paths, only=belonging.only(self.found)),
            self.setup,
            options=self._options(),
            progress=self.progress,
            now=self.now,
            find=self._place,
            ready=ready,
            intend=intend,
        )
        return self._done(done)

    def _options(self) -> Options:
        found = self.found
        given = Given(
            run_id=found.run_id,
            task_id=found.task,
            user_id=found.user or self.setup.settings.archive.user,
            outcome=self.outcome,
            phase=found.phase or None,
            note=found.note or None,
        )
        active = self.now() - found.written < ACTIVE
        return Options(given=given, salvage=True, capture=active, made_of=self.memory.ref)

    def _done(self, done: Archived) -> Saved:
        try:
            self.memory.saved(done.record, records.body_sha256(done.record))
        except ArchiverError as error:
            self.notes.append(f"run {self.memory.run} is archived, and that is not remembered here: {error}")
        self.notes[:0] = done.warnings
        return self._result(done.record, "archived")

    def _perhaps(self) -> Saved:
        seq = self.memory.perhaps()
        self.notes.append(
            f"archived as number {seq}, not confirmed: that number is taken, it was begun here before a "
            "sweep died, and it cannot be read to see; `archiver verify` of somebody who may read tells"
        )
        return Saved(self.memory.run, seq, "archived", None, 0, 0.0, tuple(self.notes), None)

    def _result(self, record: Record, what: What) -> Saved:
        size = record.sizes.stored if what == "archived" else 0
        return Saved(record.run, record.seq, what, record, size, 0.0, tuple(self.notes), None)

    # --- its place ---

    def _place(self, run: str) -> Position:
        self.memory.run = run
        place = self._after(run)
        if place.head is None:
            self._demand_own(None)
        return place

    def _after(self, run: str) -> Position:
        if self.memory.blind:
            return self.memory.unread(run, self._remembered)
        try:
            return position.find(run, self.setup, seen=self._compare)
        except (StaleWriterError, UntrustedWriterError):
            self.refused = True
            raise
        except (StoreDeniedError, KeyUnavailableError) as error:
            if isinstance(error, KMS_AWAY):
                raise
            # It may list and not read, or read and not open: what it remembers is all that it knows.
            self.memory.blind = True
            return self.memory.unread(run, self._remembered)

    def _remembered(self, last: Record, sha256: str) -> None:
        if self._is_same(last, newest=True):
            raise _SameError(last, sha256)
        self._demand_own(last)

    def _compare(self, catalog: Catalog, head: Entry) -> None:
        """`_SameError` if the newest checkpoint has this content, or one before that others came after.

        Two files may tell of one run, such as a session and a longer copy of it.
        """
        if self._is_same(head.record, newest=True):
            raise _SameError(head.record, head.sha256)
        source, known = head.record.source, self.memory.known
        if known is None or source is None or source.content != known.content:
            for seq in range(head.record.seq - 1, max(0, head.record.seq - 1 - LOOK_BACK), -1):
                entry = catalog.read(head.record.run, seq)
                if self._is_same(entry.record, newest=False):
                    raise _SameError(entry.record, entry.sha256)
        self._demand_own(head.record)

    def _demand_own(self, last: Record | None) -> None:
        try:
            if last is not None:
                belonging.demand_kind(self.found, self.memory.run, last)
            belonging.demand_own(self.found, self.memory.run, self.memory.state)
        except RefusedError:
            self.refused = True
            raise

    def _is_same(self, record: Record, *, newest: bool) -> bool:
        """Whether it holds this content, and this outcome or one that needs no other any more.

        A claim after it leaves it as it is. While a run goes on, what has ended it in the store stays.
        """
        if record.source != self.memory.ref:
            return False
        if self.outcome in (record.outcome, "running"):
            return True
        return not newest and record.outcome != "running"

    def _look_again(self, place: Position) -> None:
        """Right before the upload: `_SameError`, or `_ChangedError` if the place is taken."""
        catalog = Catalog(self.setup)
        numbers = catalog.numbers(place.run)
        if numbers and numbers[-1] >= place.seq:
            self._compare(catalog, catalog.read(place.run, numbers[-1]))
            raise StaleWriterError(f"run {place.run} has gone on meanwhile", remedy="sweep again")
