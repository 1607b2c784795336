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
from archiver.errors import StaleWriterError, UsageError
from archiver.loop import writer_exit
from archiver.loop.reach import Reach
from archiver.loop.snapshot import Snapshot, Ticket
from archiver.loop.writer_delivery import Deliverer
from archiver.loop.writer_errors import too_late
from archiver.loop.writer_queue import MAX_WAITING, Job, Queue
from archiver.loop.writer_room import Room
from archiver.loop.writer_sealing import Sealer
from archiver.loop.writer_thread import SealingThread
from archiver.parallel import in_time
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
        room = Room(setup.settings.limits, options)
        self._sealer = Sealer(setup, place, spool, room.options, self._deliver_all)
        self._sealing = SealingThread(
            place.run, self._sealer, Queue(queue, most_bytes), self._changed, self._deliver, room
        )
        self._deliverer = Deliverer(
            setup,
            place.run,
            spool,
            self._sealer.tally,
            self._changed,
            self.reach,
            self._sealing.lose,
            self._sealer.acknowledged,
        )
        writer_exit.watch(self)

    @property
    def place(self) -> Position:
        """Where the next checkpoint goes: after the last one that has a number."""
        self._demand_own_process()
        return self._sealer.place

    @property
    def stale(self) -> StaleWriterError | None:
        """The error of a run that another writer has taken over."""
        return self._sealing.lost

    @property
    def last_seconds(self) -> float | None:
        """How long the last save took in the background, until it was durable."""
        return self._sealing.last_seconds

    @property
    def failures(self) -> Counter[str]:
        """Failed attempts so far, by the class of the error."""
        return self._sealing.complaints.counts + self._deliverer.complaints.counts

    @property
    def waiting(self) -> int:
        """Checkpoints that are not sealed yet, and those that are not in the store yet."""
        return self._sealing.waiting + self._deliverer.waiting

    def submit(self, snapshot: Snapshot) -> None:
        """Have it saved. Waits neither for a disk nor for a network; only where milestones fill the queue.

        A plain snapshot takes the place of a plain one that waits. Where there is no room it waits until the
        sealing thread has made some. While nothing can be sealed at all (no disk and no store), it waits no
        longer than `patience`; then the oldest that waits is given up, for the loop has to go on, and what is
        newest holds the most.
        """
        self._demand_own_process()
        self._sealing.put(Job(snapshot), self.patience)

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
        return self._wait_for(lambda: not self._sealing.waiting, timeout)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was submitted is in the store; whether it is. What failed for good is not."""
        return self._wait_for(lambda: not self.waiting, timeout)

    def fence(self) -> None:
        """See that the run is still this writer's: all numbers are delivered, and the next one is free.

        Raises `StaleWriterError` where it is not, `StoreUnreachableError` and what else delivery raises where
        that cannot be known within `patience`.
        """
        self._demand_open()
        deadline = time.monotonic() + self.patience
        if not self._sealing.numbering.acquire(timeout=self.patience):
            raise too_late(self._run, "a checkpoint was being sealed")
        try:
            self._ask(deadline)
        finally:
            self._sealing.numbering.release()

    def glance(self) -> None:
        """The same without waiting for what is on its way: the first number that may not be there is free.

        Where it is not, it is delivered, or somebody else's: `fence` finds out. Raises as that does.
        """
        self._demand_open()
        # Before the spool is looked into: what has a lower number by then is there, or in the store.
        seq = self._sealer.place.seq
        if not in_time(lambda: self._deliverer.is_first_free(seq), self.patience):
            self.fence()

    def _ask(self, deadline: float) -> None:
        answer = self._deliverer.fence(self._sealer.place.seq)
        try:
            answer.result(max(0.0, deadline - time.monotonic()))
            self.raise_if_stale()  # where what was under way has become a fork, the number after it is free
        except (FutureTimeoutError, CancelledError) as error:
            answer.cancel()
            raise too_late(self._run, "the store did not answer") from error

    def close(self, timeout: float | None = None) -> bool:
        """Save what is queued and end; whether all is in the store. What is in the spool stays there.

        A store that is known to be away is tried once more, and waited for only while it takes what waits.
        What cannot be sealed by then is lost, and logged as an error. May be called again.
        """
        self._demand_own_process()
        self._sealing.close()
        self.end(self.patience if timeout is None else timeout)
        self.raise_if_stale()
        return not self._deliverer.waiting

    def raise_if_stale(self) -> None:
        """`StaleWriterError` once another writer has taken the run over."""
        self._sealing.raise_if_lost()

    def hurry(self, *, deliver: bool = True) -> None:
        """Try at once what waits for a better time."""
        self._sealing.hurry()
        if deliver:
            self._deliverer.hurry()

    def end(self, timeout: float) -> None:
        """As `close`, but raises nothing."""
        deadline = time.monotonic() + timeout
        self.hurry()
        self._sealing.close()
        self._sealing.wait(timeout)
        self._deliverer.wait(max(0.0, deadline - time.monotonic()))
        self._sealing.end()
        self._deliverer.end()
        writer_exit.forget(self)
        if self._deliverer.waiting:
            what = self._deliverer.what_waits()
            log.warning("run %s: in the spool waits: %s; `archiver sync` delivers", self._run, what)

    def _deliver_all(self) -> bool:
        self._deliverer.hurry()
        return self._deliverer.wait(self.patience)

    def _deliver(self, seq: int, ticket: Ticket) -> None:
        self._deliverer.add(seq, ticket)

    def _wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        self._demand_own_process()
        self.raise_if_stale()
        self.hurry()
        with self._changed:
            self._changed.wait_for(
                lambda: self._sealing.lost or self._sealing.ended or done(),
                self.patience if timeout is None else timeout,
            )
            ended = done()
        self.raise_if_stale()
        return ended

    def _demand_own_process(self) -> None:
        """Before any lock: in a child that was forked, another thread's locks are never released."""
        if os.getpid() != self._pid:
            raise UsageError(
                f"run {self._run} was opened by another process, from which this one was forked",
                remedy="open a run of its own in the child, or save in the parent alone",
            )

    def _demand_open(self) -> None:
        self._demand_own_process()
        self._sealing.demand_open()
