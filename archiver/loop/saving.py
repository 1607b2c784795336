"""Which calls are saved, and how long a call waits for that: between the face of a run and its writer."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from archiver import policy
from archiver.errors import ArchiverError, RunFinishedError, StoreUnreachableError, UsageError
from archiver.loop.reach import BRIEF
from archiver.loop.snapshot import Hold, Snapshot, Ticket
from archiver.policy import Moment, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from archiver.loop.state import State
    from archiver.loop.writer import Writer
    from archiver.model import Effect, Outcome

log = logging.getLogger("archiver")


class Tally:
    """What the saves of a session came to."""

    def __init__(self) -> None:
        self.saved = self.failed = 0
        self.seconds = self.slowest = 0.0
        """From the snapshot to being durable, of all together and of the slowest."""
        self._lock = threading.Lock()

    def watch(self, ticket: Ticket) -> Callable[[], None]:
        """Counts the ticket once, when it is durable or given up."""
        began, open_ = time.monotonic(), True

        def told() -> None:
            nonlocal open_
            with self._lock:
                if open_ and ticket.saved:
                    open_, took = False, time.monotonic() - began
                    self.saved, self.seconds = self.saved + 1, self.seconds + took
                    self.slowest = max(self.slowest, took)
                elif open_ and ticket.status == "failed":
                    open_, self.failed = False, self.failed + 1

        return told


class Saver:
    """Counts calls, asks the policy, takes snapshots; `lock` guards the state that it takes them of."""

    def __init__(
        self,
        state: State,
        writer: Writer,
        *,
        rules: Policy,
        strict: bool,
        patience: float,
        captures: bool = False,
    ) -> None:
        """`captures`: whether the folder of the run is saved with it."""
        self.state, self.writer = state, writer
        self.lock = threading.RLock()
        self.patience = patience
        """Seconds that a call waits for the store."""
        self.unsaved = False
        """Whether anything was said since the last snapshot."""
        self.ended: Outcome | None = None
        """How the run has ended: here, or before it was opened."""
        self.closed = False
        self.effects: Callable[[], tuple[Effect, ...]] = tuple
        """What each snapshot says of effects."""
        self._rules, self._strict, self._captures = rules, strict, captures
        self._began = time.monotonic()
        self._saved_at: float | None = None
        self.tally = Tally()
        self._unsealed = False
        """Whether one was waited for in vain that was not even sealed, and none was since."""
        self._calls = self._acted = 0

    def demand_unclosed(self) -> None:
        """`UsageError` once the run is closed."""
        if self.closed:
            raise UsageError(
                f"run {self.state.run_id} is closed", remedy="use it within its block, or open it again"
            )

    def demand_open(self, what: str) -> None:
        """`RunFinishedError` for something new in a run that has ended, `UsageError` once it is closed."""
        self.demand_unclosed()
        if self.ended is not None:
            raise RunFinishedError(
                f"run {self.state.run_id} has ended with the outcome {self.ended}: {what} comes too late",
                remedy="give a new run another run_id",
            )

    def offer(self, **moment: Any) -> Ticket:
        """Have the policy decide on the state as it is now; to be called with the lock."""
        self._calls += 1
        self.unsaved = True
        now = time.monotonic()
        decision = policy.decide(
            self._rules,
            Moment(
                seconds=now - self._began,
                calls=self._calls,
                since_save=None if self._saved_at is None else now - self._saved_at,
                effects=self._acted,
                size=len(self.state.messages),
                last_save=self.writer.last_seconds,
                **moment,
            ),
        )
        if not decision.save:
            return Ticket("skipped", decision.because)
        return self.submit(decision.because, plain=decision.plain, awaited=decision.wait)

    def submit(self, because: str, *, plain: bool = False, awaited: bool = True) -> Ticket:
        """Take a snapshot and give it to the writer; to be called with the lock."""
        ticket = Ticket("waiting", because, awaited=awaited or self._strict)
        if self._captures and self.state.workspace.path:
            ticket.hold = Hold()
        make = self.state.maker(self.effects())
        ticket.listen(self.tally.watch(ticket))
        ticket.listen(lambda: self._told(ticket))
        self._saved_at = time.monotonic()
        self.unsaved, self._acted = False, 0
        self.writer.submit(Snapshot(make, len(self.state.messages), plain, ticket))
        return ticket

    def save_rest(self, because: str) -> Ticket | None:
        """Have what was said since the last snapshot saved; None where nothing was."""
        with self.lock:
            return self.submit(because) if self.unsaved else None

    def settle(self, ticket: Ticket) -> Ticket:
        """Wait for one that is to be durable before its call returns; not to be called with the lock.

        Where the folder of the run is saved too, wait at least until it was read: what the run does next
        belongs to the next checkpoint.

        While the store is away the spool is as durable as it gets: once an attempt at the store has failed,
        or has taken all of the patience, calls no longer wait for it. Raises `StaleWriterError`, and where
        the run is strict what keeps it from being stored.
        """
        self._wait(ticket)
        if ticket.awaited:
            self.writer.raise_if_stale()
            replaced = ticket.status == "replaced" and ticket.error is None  # by one that has it all
            if self._strict and ticket.status != "stored" and not replaced:
                raise ticket.error or self.late(ticket)
        return ticket

    def late(self, ticket: Ticket) -> StoreUnreachableError:
        """The error of one that is not where it was waited for."""
        number = "a checkpoint" if ticket.seq is None else f"checkpoint {ticket.seq}"
        kept = "is kept in the spool: `archiver sync` delivers it once the store answers"
        return StoreUnreachableError(
            f"{number} of run {self.state.run_id} was not in the store after {self.patience:.0f} s",
            remedy=f"it {kept}"
            if ticket.saved
            else "it is still tried; look at the log for what holds it up",
        )

    def _wait(self, ticket: Ticket) -> None:
        deadline = time.monotonic() + self.patience
        if ticket.awaited:
            self._wait_told(ticket)
        if ticket.hold is not None and not ticket.hold.wait(max(0.0, deadline - time.monotonic())):
            log.warning(
                "run %s: its folder was not read within %.0f s; the run goes on, and files of this "
                "checkpoint may be newer than its conversation",
                self.state.run_id,
                self.patience,
            )

    def _wait_told(self, ticket: Ticket) -> None:
        patience = min(BRIEF, self.patience) if self._unsealed else self.patience
        if self.writer.reach.away:
            ticket.wait(patience)
        else:
            ticket.wait_told(patience)
            if ticket.status == "spooled":
                self.writer.reach.missed()
        self._unsealed = ticket.status == "waiting"

    def _told(self, ticket: Ticket) -> None:
        if ticket.saved:
            self._unsealed = False

    def acted(self, effect: Effect) -> None:
        """An effect has changed: after one that cannot be done again the next call is saved."""
        with self.lock:
            self.unsaved = True
            self._acted += effect.status == "confirmed" and not effect.replayable

    def begin(self) -> None:
        """Have a record of the run before its first intent: without one nobody could find the intent."""
        if self.writer.place.head is None:
            with self.lock:
                ticket = self.submit("before the first effect")
            self._wait(ticket)
            self.writer.raise_if_stale()

    # --- at the end of a program that does not close the run ------------------------------------------------

    def hurry(self) -> None:
        """Have what was said since the last snapshot saved; for `writer_exit`, which ends the writer then."""
        if self.lock.acquire(timeout=self.patience):
            try:
                if self.ended is None:
                    self.save_rest("the program ends")
            except ArchiverError as error:
                log.error("run %s: what was said last is not saved: %s", self.state.run_id, error)  # noqa: TRY400
            finally:
                self.lock.release()

    def end(self, timeout: float) -> None:
        """Nothing is left to do: what was submitted is the writer's."""
