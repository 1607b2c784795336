"""The thread that seals what waits, one after the other, and tries again what fails for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from archiver.errors import ArchiverError, LimitExceededError, StaleWriterError, UsageError
from archiver.loop.snapshot import Status, Ticket
from archiver.loop.writer_delivery import Pace
from archiver.loop.writer_errors import TRANSIENT, Complaints, as_error, too_late
from archiver.loop.writer_queue import Job, Queue
from archiver.loop.writer_room import Room
from archiver.loop.writer_sealing import Sealed, Sealer

log = logging.getLogger("archiver")

_TO_TIDY: Final = 5.0
"""Seconds for the thread to remove what it kept for the next save."""


class SealingThread:
    """Makes snapshots durable in its own thread; all of it may be called from any thread.

    It ends with `end`, which is the caller's to call, and seals nothing more once the run is lost.
    """

    def __init__(
        self,
        run: str,
        sealer: Sealer,
        queue: Queue,
        changed: threading.Condition,
        spooled: Callable[[int, Ticket], None],
        room: Room,
    ) -> None:
        """`changed` is notified of all that happens; `spooled` gets the number of what is to be delivered;
        `room` is told of a limit that the run has met.
        """
        self.numbering = threading.Lock()
        """Held while a number is given, and by a fence, which needs the next one to stay the next one."""
        self.lost: StaleWriterError | None = None
        """Why the run is somebody else's now."""
        self.last_seconds: float | None = None
        """How long the last one took until it was durable."""
        self.complaints = Complaints(run)
        self._run, self._sealer, self._queue = run, sealer, queue
        self._changed, self._spooled, self._room = changed, spooled, room
        self._current: Job | None = None
        self._pace = Pace()
        self._failing: ArchiverError | None = None
        """Why nothing can be sealed now, and (`_failing_since`) since when."""
        self._failing_since = 0.0
        self._closed = self._ended = False
        self._thread = threading.Thread(target=self._work, name="archiver-seal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Snapshots that are not sealed yet."""
        return len(self._queue) + (self._current is not None)

    @property
    def ended(self) -> bool:
        return self._ended

    def put(self, job: Job, patience: float) -> None:
        """Have it wait; see `Writer.submit`."""
        given_up: list[Job] = []
        try:
            going = self._enqueue(job, given_up, patience)
        finally:
            self._give_up(given_up, "nothing could be sealed")
        _settle(going, "replaced")

    def _enqueue(self, job: Job, given_up: list[Job], patience: float) -> list[Job]:
        """Gives those whose place it takes, and adds to `given_up`."""
        with self._changed:
            if job.snapshot.ticket.awaited:
                self._pace.now()
            while True:
                self.demand_open()
                if (going := self._queue.put(job)) is not None:
                    self._changed.notify_all()
                    return going
                if self._failing is not None and time.monotonic() - self._failing_since > patience:
                    given_up.append(self._queue.take())
                elif not self._changed.wait(patience):
                    log.warning("run %s: %d milestones wait to be sealed", self._run, len(self._queue))

    def demand_open(self) -> None:
        """Raise `StaleWriterError` once the run is lost, `UsageError` once it takes nothing more."""
        self.raise_if_lost()
        if self._closed:
            raise UsageError(f"the writer of run {self._run} is closed", remedy="save before it is closed")

    def raise_if_lost(self) -> None:
        """`StaleWriterError` once another writer has taken the run over."""
        if self.lost is not None:
            raise self.lost

    def hurry(self) -> None:
        """Try at once what waits for a better time."""
        with self._changed:
            self._pace.now()
            self._changed.notify_all()

    def lose(self, error: StaleWriterError) -> None:
        """The run is somebody else's now: nothing more is sealed."""
        with self._changed:
            if self.lost is None:
                self.lost = error
                log.error("run %s: %s", self._run, error)
            left = self._queue.clear()
            self._changed.notify_all()
        _settle(left, "failed", error)

    def close(self) -> None:
        """Take nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, timeout: float) -> None:
        """Wait until nothing waits here, or never will be sealed."""
        with self._changed:
            self._changed.wait_for(lambda: self.lost or not self.waiting, timeout)

    def end(self) -> None:
        """Give up what is not sealed yet; what is being sealed goes on."""
        with self._changed:
            self._closed = self._ended = True
            left, unsure = self._queue.clear(), self._current
            self._changed.notify_all()
        self._give_up(left, "it was not sealed in time")
        if unsure is None:
            self._thread.join(_TO_TIDY)
        else:
            log.error("run %s: a checkpoint was still being sealed when the writer was closed", self._run)

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                try:
                    with self.numbering:
                        self._seal(job)
                finally:
                    with self._changed:
                        self._current = None
                        self._changed.notify_all()
        finally:
            self._sealer.close()

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
            self.raise_if_lost()
            sealed = self._with_room(job)
            self.last_seconds = time.monotonic() - started
        except StaleWriterError as error:
            self.lose(error)
            job.snapshot.ticket.settle("failed", error=error)
        except TRANSIENT as error:
            self._again(job, error)
        except Exception as error:
            ours = as_error(error, "the save of a checkpoint")
            self.complaints.failed(ours, "this checkpoint is not saved; the next one is tried")
            job.snapshot.ticket.settle("failed", error=ours)
        else:
            self._sealed(job, sealed)

    def _with_room(self, job: Job) -> Sealed:
        """Sealed; once the run has met its limit, with as little of outputs as `limits.run_policy` says."""
        try:
            return self._sealer.seal(job)
        except LimitExceededError as error:
            if not self._room.met(error):
                raise
            log.warning("run %s: %s; from now on it is saved by limits.run_policy", self._run, error)
            return self._sealer.seal(job)

    def _sealed(self, job: Job, sealed: Sealed) -> None:
        with self._changed:
            self._failing = None
            self._pace.now()
        self.complaints.worked()
        job.snapshot.ticket.settle("stored" if sealed.stored else "spooled", seq=sealed.seq)
        if not sealed.stored:
            self._spooled(sealed.seq, job.snapshot.ticket)

    def _again(self, job: Job, error: ArchiverError) -> None:
        """Keep it for another try, unless a newer one may take its place."""
        with self._changed:
            self._failing_since = self._failing_since if self._failing else time.monotonic()
            self._failing = error
            self._pace.failed()
            ended = self._ended
            kept = not ended and self._queue.put_back(job)
        if kept:
            self.complaints.failed(error, "it is kept in memory and tried again")
            job.snapshot.ticket.settle("waiting", error=error)
        elif ended:
            self._give_up([job], "the writer was closed")
        else:
            self.complaints.failed(error, "a newer checkpoint is tried in its place")
            job.snapshot.ticket.settle("replaced", error=error)

    def _give_up(self, jobs: list[Job], why: str) -> None:
        error = self._failing or too_late(self._run, why)
        for job in jobs:
            kind = "plain checkpoint" if job.plain else "milestone"
            self.complaints.lost(error, f"a {kind} ({job.snapshot.ticket.because})")
        _settle(jobs, "failed", error)


def _settle(jobs: list[Job], status: Status, error: ArchiverError | None = None) -> None:
    for job in jobs:
        job.snapshot.ticket.settle(status, error=error)
