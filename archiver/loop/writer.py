"""The background writer of a run: snapshots in, sealed checkpoints in the spool and in the store out.

    submit → queue → sealing thread → spool → delivering thread → store

A store that hangs does not keep the next checkpoint from being sealed, and neither thread keeps the loop.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING

from archiver.archive import Options
from archiver.errors import ArchiverError, StaleWriterError, StoreUnreachableError, UsageError
from archiver.loop import writer_exit
from archiver.loop.reach import Reach
from archiver.loop.snapshot import Snapshot, Status
from archiver.loop.writer_delivery import Deliverer, Pace
from archiver.loop.writer_errors import TRANSIENT, Complaints, as_error
from archiver.loop.writer_queue import MAX_WAITING, Job, Queue
from archiver.loop.writer_sealing import Sealed, Sealer
from archiver.position import Position
from archiver.spool import RunSpool

if TYPE_CHECKING:
    from archiver.setup import Setup

log = logging.getLogger("archiver")


class Writer:
    """Saves the snapshots of one run off its loop; may be used from any thread of the process it is made in.

    What fails for a while is tried again and never raised; what fails for good fails its ticket. When another
    writer has taken the run over, every method raises `StaleWriterError` from then on.
    """

    def __init__(
        self,
        setup: Setup,
        place: Position,
        spool: RunSpool,
        *,
        patience: float,
        queue: int,
        options: Callable[[], Options] = Options,
        most_bytes: int = MAX_WAITING,
    ) -> None:
        """`patience`: seconds that a call waits for the store; `queue`, `most_bytes`: what may wait."""
        self.patience = patience
        self._run = place.run
        self.reach = Reach()
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._numbering = threading.Lock()
        """Held while a number is given, and by a fence, which needs the next one to stay the next one."""
        self._queue = Queue(queue, most_bytes)
        self._current: Job | None = None
        self._pace = Pace()
        self._failing: ArchiverError | None = None
        """Why nothing can be sealed now, and (`_failing_since`) since when."""
        self._failing_since = 0.0
        self._stale: StaleWriterError | None = None
        self._closed = self._ended = False
        self._last_seconds: float | None = None
        self._complaints = Complaints(place.run)
        self._sealer = Sealer(setup, place, spool, options, self._deliver_all)
        self._deliverer = Deliverer(
            setup, place.run, spool, self._sealer.tally, self._changed, self.reach, self._lose
        )
        self._thread = threading.Thread(target=self._work, name="archiver-seal", daemon=True)
        self._thread.start()
        writer_exit.watch(self)

    @property
    def place(self) -> Position:
        """Where the next checkpoint goes: after the last one that has a number."""
        self._demand_own_process()
        return self._sealer.place

    @property
    def stale(self) -> StaleWriterError | None:
        """The error of a run that another writer has taken over."""
        return self._stale

    @property
    def last_seconds(self) -> float | None:
        """How long the last save took in the background, until it was durable."""
        return self._last_seconds

    @property
    def failures(self) -> Counter[str]:
        """Failed attempts so far, by the class of the error."""
        return self._complaints.counts + self._deliverer.complaints.counts

    @property
    def waiting(self) -> int:
        """Checkpoints that are not sealed yet, and those that are not in the store yet."""
        return len(self._queue) + (self._current is not None) + self._deliverer.waiting

    def submit(self, snapshot: Snapshot) -> None:
        """Have it saved. Waits neither for a disk nor for a network; only where milestones fill the queue.

        A plain snapshot takes the place of a plain one that waits. Where there is no room it waits until the
        sealing thread has made some. While nothing can be sealed at all (no disk and no store), it waits no
        longer than `patience`; then the oldest that waits is given up, for the loop has to go on, and what is
        newest holds the most.
        """
        self._demand_own_process()
        given_up: list[Job] = []
        try:
            going = self._enqueue(Job(snapshot), given_up)
        finally:
            self._give_up(given_up, self._failing or self._late("nothing could be sealed"))
        _settle(going, "replaced")

    def _enqueue(self, job: Job, given_up: list[Job]) -> list[Job]:
        """Have it wait; gives those whose place it takes, and adds to `given_up`."""
        with self._changed:
            if job.snapshot.ticket.awaited:
                self._pace.now()
            while True:
                self._demand_open()
                if (going := self._queue.put(job)) is not None:
                    self._changed.notify_all()
                    return going
                if self._has_failed_for_long():
                    given_up.append(self._queue.take())
                elif not self._changed.wait(self.patience):
                    log.warning("run %s: %d milestones wait to be sealed", self._run, len(self._queue))

    def put_aside(self, name: str, sealed: bytes) -> None:
        """Keep an object of the effects ledger in the spool, durable when this returns; it is delivered from
        there, before the next checkpoint. Raises what `RunSpool.add_effect` does.
        """
        self._demand_own_process()
        self._deliverer.put_aside(name, sealed)

    def save(self, snapshot: Snapshot, timeout: float | None = None, *, stored: bool = False) -> bool:
        """Submit and wait until it is sealed on disk, or `stored`; `timeout` in seconds, else `patience`."""
        self.submit(snapshot)
        self.hurry(deliver=stored)
        done = snapshot.ticket.wait(self.patience if timeout is None else timeout, stored=stored)
        self.raise_if_stale()
        return done

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all that was submitted is sealed on disk; whether it is."""
        return self._wait_for(self._is_sealed, timeout)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was submitted is in the store; whether it is. What failed for good is not."""
        return self._wait_for(self._is_stored, timeout)

    def fence(self) -> None:
        """See that the run is still this writer's: all numbers are delivered, and the next one is free.

        Raises `StaleWriterError` where it is not, `StoreUnreachableError` and what else delivery raises where
        that cannot be known within `patience`.
        """
        self._demand_open()
        deadline = time.monotonic() + self.patience
        if not self._numbering.acquire(timeout=self.patience):
            raise self._late("a checkpoint was being sealed")
        try:
            self._ask(deadline)
        finally:
            self._numbering.release()

    def _ask(self, deadline: float) -> None:
        answer = self._deliverer.fence(self._sealer.place.seq)
        try:
            answer.result(max(0.0, deadline - time.monotonic()))
        except (FutureTimeoutError, CancelledError) as error:
            answer.cancel()
            raise self._late("the store did not answer") from error

    def close(self, timeout: float | None = None) -> bool:
        """Save what is queued and end; whether all is in the store. What is in the spool stays there.

        A store that is known to be away is tried once more, and waited for only while it takes what waits.
        What cannot be sealed by then is lost, and logged as an error. May be called again.
        """
        self._demand_own_process()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.end(self.patience if timeout is None else timeout)
        self.raise_if_stale()
        return not self._deliverer.waiting

    def raise_if_stale(self) -> None:
        """`StaleWriterError` once another writer has taken the run over."""
        if self._stale is not None:
            raise self._stale

    def hurry(self, *, deliver: bool = True) -> None:
        """Try at once what waits for a better time."""
        with self._changed:
            self._pace.now()
            self._changed.notify_all()
        if deliver:
            self._deliverer.hurry()

    def end(self, timeout: float) -> None:
        """As `close`, but raises nothing."""
        deadline = time.monotonic() + timeout
        self.hurry()
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._stale or self._is_sealed(), timeout)
        self._deliverer.wait(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._ended = True
            left = self._queue.clear()
            unsure = self._current
            self._changed.notify_all()
        self._deliverer.end()
        writer_exit.forget(self)
        self._give_up(left, self._failing or self._late("it was not sealed in time"))
        if unsure is not None:
            log.error("run %s: a checkpoint was still being sealed when the writer was closed", self._run)
        if waiting := self._deliverer.waiting:
            log.warning(
                "run %s: %d checkpoints wait in the spool; `archiver sync` delivers", self._run, waiting
            )

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                with self._numbering:
                    self._seal(job)
            finally:
                with self._changed:
                    self._current = None
                    self._changed.notify_all()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._ended:
                if self._queue and not self._pace.wait():
                    self._current = self._queue.take()
                    self._changed.notify_all()
                    return self._current
                self._changed.wait(self._pace.wait() if self._queue else None)
            return None

    def _seal(self, job: Job) -> None:
        """Make it durable; whatever goes wrong, this thread goes on."""
        started = time.monotonic()
        try:
            self.raise_if_stale()
            sealed = self._sealer.seal(job)
            self._last_seconds = time.monotonic() - started
        except StaleWriterError as error:
            self._lose(error)
            job.snapshot.ticket.settle("failed", error=error)
        except TRANSIENT as error:
            self._again(job, error)
        except Exception as error:
            ours = as_error(error, "the save of a checkpoint")
            self._complaints.failed(ours, "this checkpoint is not saved; the next one is tried")
            job.snapshot.ticket.settle("failed", error=ours)
        else:
            self._sealed(job, sealed)

    def _sealed(self, job: Job, sealed: Sealed) -> None:
        with self._changed:
            self._failing = None
            self._pace.now()
        self._complaints.worked()
        job.snapshot.ticket.settle("stored" if sealed.stored else "spooled", seq=sealed.seq)
        if not sealed.stored:
            self._deliverer.add(sealed.seq, job.snapshot.ticket)

    def _again(self, job: Job, error: ArchiverError) -> None:
        """Keep it for another try, unless a newer one may take its place."""
        with self._changed:
            self._failing_since = self._failing_since if self._failing else time.monotonic()
            self._failing = error
            self._pace.failed()
            ended = self._ended
            kept = not ended and self._queue.put_back(job)
        if kept:
            self._complaints.failed(error, "it is kept in memory and tried again")
            job.snapshot.ticket.settle("waiting", error=error)
        elif ended:
            self._give_up([job], error)
        else:
            self._complaints.failed(error, "a newer checkpoint is tried in its place")
            job.snapshot.ticket.settle("replaced", error=error)

    def _deliver_all(self) -> bool:
        self._deliverer.hurry()
        return self._deliverer.wait(self.patience)

    def _lose(self, error: StaleWriterError) -> None:
        """The run is somebody else's now: nothing more is sealed."""
        with self._changed:
            if self._stale is None:
                self._stale = error
                log.error("run %s: %s", self._run, error)
            left = self._queue.clear()
            self._changed.notify_all()
        _settle(left, "failed", error)

    def _give_up(self, jobs: list[Job], error: ArchiverError) -> None:
        for job in jobs:
            kind = "plain checkpoint" if job.plain else "milestone"
            self._complaints.lost(error, f"a {kind} ({job.snapshot.ticket.because})")
        _settle(jobs, "failed", error)

    def _wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        self._demand_own_process()
        self.raise_if_stale()
        self.hurry()
        with self._changed:
            self._changed.wait_for(
                lambda: self._stale or self._ended or done(), self.patience if timeout is None else timeout
            )
            ended = done()
        self.raise_if_stale()
        return ended

    def _is_sealed(self) -> bool:
        return not self._queue and self._current is None

    def _is_stored(self) -> bool:
        return self._is_sealed() and not self._deliverer.waiting

    def _has_failed_for_long(self) -> bool:
        return self._failing is not None and time.monotonic() - self._failing_since > self.patience

    def _late(self, why: str) -> StoreUnreachableError:
        return StoreUnreachableError(
            f"run {self._run}: {why}, and it is not waited for any longer",
            remedy="look at the log for what holds it up; run.patience says how long is waited",
        )

    def _demand_own_process(self) -> None:
        """Before any lock: in a child that was forked, another thread's locks are never released."""
        if os.getpid() != self._pid:
            raise UsageError(
                f"run {self._run} was opened by another process, from which this one was forked",
                remedy="open a run of its own in the child, or save in the parent alone",
            )

    def _demand_open(self) -> None:
        self._demand_own_process()
        self.raise_if_stale()
        if self._closed:
            raise UsageError(f"the writer of run {self._run} is closed", remedy="save before it is closed")


def _settle(jobs: list[Job], status: Status, error: ArchiverError | None = None) -> None:
    for job in jobs:
        job.snapshot.ticket.settle(status, error=error)
