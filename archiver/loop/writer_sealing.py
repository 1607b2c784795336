"""One snapshot made durable: sealed and added to the spool, or put into the store where that cannot be."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import archive, committing, describe, layout, records, telemetry
from archiver.archive import Options, Prepared, Source
from archiver.epochs import Based, Epochs, Reason, Terms
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    BundleTooOldError,
    InputNotFoundError,
    LimitExceededError,
    ObjectNotFoundError,
    StoreError,
)
from archiver.loop.writer_errors import gone_stale
from archiver.loop.writer_queue import Job
from archiver.model import Checkpoint, Outcome, Record
from archiver.position import Position
from archiver.remembered import Remembered
from archiver.spool import RunSpool

if TYPE_CHECKING:
    from archiver.setup import Setup

log = logging.getLogger("archiver")


class Tally:
    """Bytes of all bundles of a run, as a sum: to list them at each save would cost more than the save."""

    def __init__(self, spool: RunSpool) -> None:
        self._spool = spool
        self._sealed = sum(entry.size for entry in spool.entries())
        self._before = 0
        self._lock = threading.Lock()
        self.counted = False
        """Whether what the store holds is part of the sum."""

    def count(self, setup: Setup, run: str) -> None:
        """Ask the store; to be called by whoever delivers, when nothing is being delivered."""
        with self._lock:
            waiting = sum(entry.size for entry in self._spool.entries())
            sealed = self._sealed
        listed = sum(info.size for info in setup.store.list(layout.bundles_prefix(run)))
        with self._lock:
            self._before = listed + waiting - sealed
            self.counted = True

    @contextmanager
    def adding(self, setup: Setup, run: str, size: int) -> Iterator[None]:
        """Add a bundle within the block; `LimitExceededError` where the run would have too many bytes."""
        with self._lock:
            try:
                setup.settings.limits.check_run(run, self._before + self._sealed + size)
            except LimitExceededError:
                self.counted = False  # a sweeper may have removed some meanwhile
                raise
            yield
            self._sealed += size


@dataclass(frozen=True, slots=True)
class Sealed:
    """A checkpoint with a number that survives the end of this process."""

    seq: int
    stored: bool
    """Whether it is in the store already; else it waits in the spool."""


@dataclass(slots=True)
class _Attempt:
    """A record that may have reached the store though nobody said so."""

    job: Job
    record: Record
    sealed: bytes
    put_at: float


class Sealer:
    """Gives numbers; used by one thread at a time."""

    def __init__(
        self,
        setup: Setup,
        place: Position,
        spool: RunSpool,
        options: Callable[[], Options],
        deliver_all: Callable[[], bool],
    ) -> None:
        """`deliver_all` has the spool delivered and says whether it is empty."""
        self.place = place
        self.tally = Tally(spool)
        self._setup = setup
        self._spool = spool
        self._options = options
        self._deliver_all = deliver_all
        self._attempt: _Attempt | None = None
        self._epochs = Epochs(setup.settings.run.full_every)
        self._remembered = Remembered()
        self._acknowledged: deque[tuple[int, str]] = deque()
        self._complained = False
        """Whether it was said that the spool cannot be used."""

    def acknowledged(self, seq: int, bundle: str) -> None:
        """The store has the record of that number, which commits that bundle; may be called by any thread."""
        self._acknowledged.append((seq, bundle))

    @telemetry.span("archiver.save")
    def seal(self, job: Job) -> Sealed:
        """Raises what `archive.prepare` and the spool raise, and `StaleWriterError`."""
        started = time.monotonic()
        if (done := self._settled(job)) is not None:
            return done
        checkpoint = job.checkpoint()
        try:
            return self._durable(checkpoint, job, started)
        finally:
            if checkpoint.outcome != "running":
                self._remembered.close()  # before the folder of the run goes, once that is delivered

    def _durable(self, checkpoint: Checkpoint, job: Job, started: float) -> Sealed:
        """In the spool, or in the store where that cannot be."""
        try:
            with self._prepared(checkpoint, job, self._spool.folder) as prepared:
                return self._spooled(prepared, job, started)
        except (StoreError, InputNotFoundError) as error:
            if not self._deliver_all():
                raise
            because = error
        with self._prepared(checkpoint, job, None) as prepared:
            done = self._put(prepared, job, started)
        if not self._complained:
            log.warning("run %s: saved into the store without the spool: %s", self.place.run, because)
        self._complained = True
        return done

    def _prepared(
        self, checkpoint: Checkpoint, job: Job, parent: Path | None
    ) -> AbstractContextManager[Prepared]:
        place, hold = self.place, job.snapshot.ticket.hold
        captured = self._setup.settings.workspace.capture
        return archive.prepare(
            Source(
                checkpoint=checkpoint,
                workspace=describe.captured_folder(checkpoint) if captured else None,
                was_still=hold.end if hold is not None else lambda: True,
            ),
            self._setup,
            lambda _: place,
            options=self._options(),
            parent=parent,
            choose=self._choose,
            remembered=self._remembered,
        )

    def close(self) -> None:
        """Remove what was kept for the next save."""
        self._remembered.close()

    def _choose(self, terms: Terms, outcome: Outcome) -> Based | Reason:
        while self._acknowledged:
            self._epochs.acknowledged(*self._acknowledged.popleft())
        return self._epochs.choose(terms, outcome, datetime.now(UTC))

    def _remember(self, prepared: Prepared, record: Record) -> None:
        """What was sealed may become a base, once the store has it."""
        if prepared.terms is not None:
            packed, marks = prepared.sealed.packed, prepared.marks
            self._epochs.sealed(record.seq, packed, marks, prepared.terms, record.recorded_at, prepared.based)

    def _spooled(self, prepared: Prepared, job: Job, started: float) -> Sealed:
        record, sealed = self._record(prepared, self.place.previous)
        with self.tally.adding(self._setup, record.run, prepared.sealed.size):
            entry = self._spool.add(record, sealed, prepared.sealed.path, plain=job.plain)
        self._remember(prepared, record)
        self._go_on(record, entry.sha256)
        archive.measure(record, time.monotonic() - started, "spool")
        return Sealed(record.seq, stored=False)

    def _record(self, prepared: Prepared, previous: str | None) -> tuple[Record, bytes]:
        record = prepared.record(prepared.new_name(), datetime.now(UTC))
        record = record.model_copy(update={"previous": previous})
        reached = self._setup.seal_to(record.run, record.task, "record")
        return records.sealed(record, self._setup.require_signing_key(), reached)

    def _put(self, prepared: Prepared, job: Job, started: float) -> Sealed:
        """Straight into the store: bundle, then record. All that was numbered before is there."""
        head = self._spool.head()
        # One that gave up its bundle was signed anew on its way.
        follows = head is not None and head.seq == self.place.seq - 1
        record, sealed = self._record(prepared, head.sha256 if head and follows else self.place.previous)
        assert record.bundle is not None  # noqa: S101 - a prepared checkpoint has one
        with self.tally.adding(self._setup, record.run, prepared.sealed.size):
            self._setup.store.create(record.bundle.name, prepared.sealed, retention=record.retention)
        self._remember(prepared, record)
        self._attempt = _Attempt(job, record, sealed, time.monotonic())
        self._commit(self._attempt)
        archive.measure(record, time.monotonic() - started, "store")
        return Sealed(record.seq, stored=True)

    def _settled(self, job: Job) -> Sealed | None:
        """End an attempt of which is not known whether it succeeded: the same record again, or none.

        What is returned is for the job it was made for.
        """
        attempt = self._attempt
        if attempt is None:
            return None
        try:
            self._commit(attempt)
        except BundleTooOldError:
            self._attempt = None
            return None
        return Sealed(attempt.record.seq, stored=True) if attempt.job is job else None

    def _commit(self, attempt: _Attempt) -> None:
        record, sha256 = attempt.record, records.body_sha256(attempt.record)
        try:
            committing.refuse_old(record, time.monotonic() - attempt.put_at)
            committing.create(record, sha256, attempt.sealed, self._setup)
        except (AlreadyExistsError, BundleTooOldError) as error:
            self._demand_own(attempt, error)
            committing.follow_up(record, sha256, self._setup)
        self._attempt = None
        if record.bundle is not None:
            self.acknowledged(record.seq, record.bundle.name)
        self._go_on(record, sha256)

    def _demand_own(self, attempt: _Attempt, error: ArchiverError) -> None:
        """See that the record in the store is this one; `error` where there is none."""
        record = attempt.record
        try:
            found = self._setup.store.read(
                layout.record_name(record.run, record.seq), limit=records.MAX_RECORD
            )
        except ObjectNotFoundError:
            raise error from None
        if found != attempt.sealed:
            raise gone_stale(record.run, record.seq) from error

    def _go_on(self, record: Record, sha256: str) -> None:
        self.place = replace(self.place, seq=record.seq + 1, previous=sha256, head=record)
