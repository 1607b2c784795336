"""The thread that has the spool delivered, and looks for a competing claim when an effect asks for it."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from archiver import layout
from archiver.errors import (
    AWAY,
    ArchiverError,
    ObjectNotFoundError,
    StaleWriterError,
    StoreDeniedError,
)
from archiver.loop.reach import BRIEF, Reach
from archiver.loop.snapshot import Status, Ticket
from archiver.loop.writer_errors import Complaints, as_error, gone_stale
from archiver.loop.writer_sealing import Tally
from archiver.spool import RunSpool
from archiver.spool.entry import Entry

if TYPE_CHECKING:
    from archiver.setup import Setup

log = logging.getLogger("archiver")

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
"""Seconds between attempts at a store that is away: doubled each time, between these."""


class Pace:
    """When to try again what failed."""

    def __init__(self) -> None:
        self.next = 0.0
        """On the monotonic clock; 0: now."""
        self._pause = FIRST_PAUSE

    def failed(self) -> None:
        """Wait a while, and longer each time; not all writers of a fleet as long as the others."""
        self.next = time.monotonic() + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def now(self) -> None:
        """Try at once, and soon again."""
        self.next, self._pause = 0.0, FIRST_PAUSE

    def wait(self) -> float:
        """Seconds until it is time."""
        return max(0.0, self.next - time.monotonic())


@dataclass(slots=True)
class Fence:
    """Somebody wants to know whether the run is still this writer's, and whose answer may come too late."""

    seq: int
    """The number that must be free."""
    answer: Future[None] = field(default_factory=Future)


class Deliverer:
    """Delivers whenever there is something, in its own thread; all of it may be called from any thread."""

    def __init__(
        self,
        setup: Setup,
        run: str,
        spool: RunSpool,
        tally: Tally,
        changed: threading.Condition,
        reach: Reach,
        stale: Callable[[StaleWriterError], None],
        stored: Callable[[int, str], None] = lambda _seq, _bundle: None,
    ) -> None:
        """`changed` is notified of all that happens, `reach` told of the store, and in the own thread `stale`
        who lost the run and `stored` which number came into the store, and the name of its bundle.
        """
        self._setup, self._run, self._spool, self._tally = setup, run, spool, tally
        self._changed, self._reach, self._stale, self._stored = changed, reach, stale, stored
        self._attempts = self._failed_one = 0
        """How many were begun, and which of them was the last to fail."""
        self._moved = 0.0
        """When the store took an entry last."""
        self.complaints = Complaints(run)
        self._tickets: dict[int, Ticket | None] = {entry.seq: None for entry in spool.entries()}
        self._forks_before = frozenset(fork.path for fork in spool.forks())
        self._others = bool(spool.effects())
        """Whether effects wait in the spool."""
        self._fences: deque[Fence] = deque()
        self._pace = Pace()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="archiver-deliver", daemon=True)
        self._thread.start()

    def add(self, seq: int, ticket: Ticket) -> None:
        """One more is in the spool."""
        with self._changed:
            self._tickets[seq] = ticket
            if ticket.awaited:
                self._pace.now()
            self._changed.notify_all()

    def put_aside(self, name: str, sealed: bytes) -> None:
        """Keep an effect in the spool, durable when this returns; raises what `RunSpool.add_effect` does."""
        self._spool.add_effect(name, sealed)
        with self._changed:
            self._others = True
            self._changed.notify_all()

    def hurry(self) -> None:
        """Try at once, whatever failed a moment ago."""
        with self._changed:
            self._pace.now()
            self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait until the spool is empty, or an attempt that begins from now on fails; whether it is empty.

        A store that is known to be away is waited for only as long as it takes one entry after the other.
        """
        begun = time.monotonic()
        with self._changed:
            before = self._attempts
            briefly = self._reach.away
            while self.waiting and not self._ended and self._failed_one <= before:
                until = begun + timeout
                if briefly:
                    until = min(until, max(begun, self._moved) + BRIEF)
                if (left := until - time.monotonic()) <= 0:
                    break
                self._changed.wait(left)
            return not self.waiting

    def fence(self, seq: int) -> Future[None]:
        """Deliver all, then see that the number is free; the answer is an error where that is not so."""
        fence = Fence(seq)
        with self._changed:
            self._fences.append(fence)
            if self._ended:
                fence.answer.cancel()
            self._changed.notify_all()
        return fence.answer

    def is_first_free(self, seq: int) -> bool:
        """Whether the store has no record of the oldest number that waits, or of `seq` where none does."""
        first = min((entry.seq for entry in self._spool.entries()), default=seq)
        return self._is_free(first) and not self._lost()

    def stage(self, name: str, total: int | None = None) -> None:  # noqa: ARG002 - as of a `Progress`
        """The next entry is sent: the one before it is there."""
        with self._changed:
            self._moved = time.monotonic()
            self._changed.notify_all()

    def advance(self, count: int) -> None:
        """How much of it was read to be sent says nothing of the store."""

    def end(self) -> None:
        """Do nothing more; what is under way goes on."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Checkpoints in the spool that are not in the store; effects that wait count as one."""
        return len(self._tickets) + self._others

    def what_waits(self) -> str:
        """The same in words."""
        count = len(self._tickets)
        checkpoints = f"{count} checkpoint{'' if count == 1 else 's'}" if count else ""
        return " and ".join(filter(None, (checkpoints, "effects" if self._others else "")))

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._ended or self._fences or self._is_time()):
                    self._changed.wait(self._pace.wait() if self.waiting else None)
                if self._ended:
                    break
                fence = self._fences.popleft() if self._fences else None
            if fence is None or fence.answer.set_running_or_notify_cancel():
                self._try(fence)
        with self._changed:
            for fence in self._fences:
                fence.answer.cancel()

    def _is_time(self) -> bool:
        return bool(self.waiting) and not self._pace.wait()

    def _try(self, fence: Fence | None) -> None:
        """Deliver, and answer; whatever goes wrong, this thread goes on."""
        self._attempts += 1
        try:
            self._deliver()
            if fence is not None:
                self._demand_free(fence.seq)
        except Exception as error:
            ours = as_error(error, "the delivery of the spool")
            self._failed(ours)
            if fence is not None:
                fence.answer.set_exception(ours)
        else:
            self._pace.now()
            self._reach.answered()
            if fence is not None:
                fence.answer.set_result(None)

    def _deliver(self) -> None:
        try:
            if not self._tally.counted:
                self._count()
            with self._changed:
                self._others = False
            for warning in self._spool.deliver(progress=self, told=self._told).warnings:
                log.warning("run %s: %s", self._run, warning)
            self.complaints.worked()
        except StaleWriterError as error:
            self._stale(error)  # before anybody can see that nothing waits any more
            raise
        finally:
            self._settle()

    def _told(self, entry: Entry) -> None:
        if entry.kind == "checkpoint" and entry.meta.bundle is not None:
            self._stored(entry.seq, entry.meta.bundle.name)

    def _count(self) -> None:
        try:
            self._tally.count(self._setup, self._run)
        except StoreDeniedError:
            self._tally.counted = True  # who may not list goes by what was written from here

    def _demand_free(self, seq: int) -> None:
        if not self._is_free(seq):
            raise gone_stale(self._run, seq)

    def _is_free(self, seq: int) -> bool:
        try:
            self._setup.store.head(layout.record_name(self._run, seq))
        except ObjectNotFoundError:
            return True
        return False

    def _failed(self, error: ArchiverError) -> None:
        if isinstance(error, AWAY):
            self._reach.missed()
        with self._changed:
            self._pace.failed()
            self._failed_one = self._attempts
            self._changed.notify_all()
            tickets = [ticket for ticket in self._tickets.values() if ticket is not None]
        if isinstance(error, StaleWriterError):
            self._stale(error)
            return
        self.complaints.failed(error, f"{len(tickets)} checkpoints of this process wait in the spool")
        for ticket in tickets:
            ticket.settle("spooled", error=error)

    def _settle(self) -> None:
        """Tell the tickets what the spool has done with theirs."""
        with self._changed:
            asked = tuple(self._tickets)  # what comes while the spool is looked through may not be seen in it
        left = {entry.seq: entry.kind for entry in self._spool.entries()}
        effects = bool(self._spool.effects())
        forks = self._lost()
        told: list[tuple[Ticket, Status]] = []
        with self._changed:
            self._others = self._others or effects
            for seq in asked:
                ticket = self._tickets[seq]
                if seq not in left:
                    del self._tickets[seq]
                elif left[seq] == "skipped":
                    self._tickets[seq] = None
                else:
                    continue
                if ticket is not None:
                    gone: Status = "failed" if seq in forks else "stored"
                    told.append((ticket, "replaced" if seq in left else gone))
            self._changed.notify_all()
        for ticket, status in told:
            lost = gone_stale(self._run, ticket.seq or 0) if status == "failed" else None
            ticket.settle(status, error=lost)
        if forks:
            self._stale(gone_stale(self._run, min(forks)))

    def _lost(self) -> frozenset[int]:
        """Numbers that became forks since this process began, whoever has delivered them."""
        return frozenset(fork.seq for fork in self._spool.forks() if fork.path not in self._forks_before)
