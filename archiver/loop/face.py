"""A run inside the loop of an agent: steps, checkpoints, effects, spend, an end."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, get_args

from archiver import policy
from archiver.audit import Session, note_session
from archiver.errors import (
    ArchiverError,
    RedactedValueError,
    UsageError,
)
from archiver.gate import told
from archiver.loop import demands, given, writer_exit
from archiver.loop.ending import End, note_of, outcome_of
from archiver.loop.facts import Facts
from archiver.loop.left import Left
from archiver.loop.rewinding import rewound, ring, state_at
from archiver.loop.snapshot import Ticket
from archiver.loop.state import Said
from archiver.model import JsonValue, Record, SubtaskResult
from archiver.parallel import in_time
from archiver.redact import contains_placeholder, usable
from archiver.safetext import shorten
from archiver.tagging import after_save

if TYPE_CHECKING:
    from archiver.loop.effects import EffectBook, EffectCall
    from archiver.loop.opening import Opened
    from archiver.loop.saving import Saver
    from archiver.setup import Setup

log = logging.getLogger("archiver")
Args = ParamSpec("Args")
T = TypeVar("T")
_around: ContextVar[frozenset[tuple[int, str]]] = ContextVar("archiver_steps", default=frozenset())
"""The steps that the code which asks is within, each with the run that it is of."""
_COUNTED: Final = ("tokens_in", "tokens_out", "tokens_cached", "cost", "iterations")


class Run(Facts):
    """What `archiver.run` opens; safe to share between threads, not with a child of a fork.

    By default nothing that goes wrong with a save is raised here: it is logged, and tried again. Always
    raised are `StaleWriterError` (somebody else has taken the run over) and `EffectNotRecordedError`; with
    `strict` whatever keeps a checkpoint from being stored is.
    """

    def __init__(
        self, opened: Opened, setup: Setup, saver: Saver, book: EffectBook, *, strict: bool = False
    ) -> None:
        self.resumed = opened.resumed
        """Whether there was something to go on with."""
        self._setup, self._saver, self._book, self._strict = setup, saver, book, strict
        self._spool, self._writer = opened.spool, saver.writer
        self._replays, self._replayed = opened.finished, 0
        saver.ended = "succeeded" if opened.finished else None
        self._claim, self._opening_seconds = opened.claim, opened.seconds
        self._began = time.monotonic()
        self._steps: dict[str, threading.Lock] = {}
        self._pid, self._noted = os.getpid(), False

    def __repr__(self) -> str:
        return f"<Run {self.id}, {self.outcome}, record {self.seq}>"

    def ring(self) -> tuple[Record, ...]:
        """Records of the newest checkpoints, those that `rewind` can go back to, the newest first.

        What waits is saved first. Raises what reading the store raises.
        """
        self._check()
        self._writer.flush(self._saver.patience)
        return ring(self.id, self._setup)

    # --- the loop -----------------------------------------------------------------------------------------

    def step(self, key: str, work: Callable[Args, T], /, *args: Args.args, **kwargs: Args.kwargs) -> T:
        """The recorded output of a completed sub-task, or what `work` gives now, which is then recorded.

        Either way it is the JSON form: tuples are lists. `NotSerialisableError` for an output that has none.
        """
        demands.function("work of a step", work)
        with self.inside(key), self._steps.setdefault(key, threading.Lock()):
            known, value = self.recorded(key)
            output: T = value if known else self.record(key, work(*args, **kwargs))
            return output

    @contextmanager
    def inside(self, key: str) -> Iterator[None]:
        """Within the step; `UsageError` for a key that is none, and for a step that is within itself."""
        demands.name("key of a step", key)
        around = _around.get()
        if (id(self), key) in around:
            raise UsageError(
                f"step {shorten(key, 80)} is asked for within itself, and would wait for itself for ever",
                remedy="give the inner step a key of its own",
            )
        token = _around.set(around | {(id(self), key)})
        try:
            yield
        finally:
            _around.reset(token)

    def recorded(self, key: str) -> tuple[bool, Any]:
        """Whether the step is completed, and its output; one that held a credential has to be done again."""
        self._check()
        found = self._result(key)
        if found is None:
            self._saver.demand_open(f"step {shorten(key, 80)}")
            return False, None
        try:
            value = given.json_of(usable(found.output, f"the recorded output of step {key}"))
        except RedactedValueError as error:
            log.warning("step %s is done again: %s", shorten(key, 80), error)
            return False, None
        self._replayed += 1
        return True, value

    def _result(self, key: str) -> SubtaskResult | None:
        results = self._state.results
        found = results.get(key)
        if found is None and any(map(contains_placeholder, results)):
            # The run was resumed, and the keys that it was resumed with are redacted.
            found = results.get(self._setup.redactor(self._writer.place.redaction_key or b"").text(key))
        return found

    def record(self, key: str, output: Any) -> Any:
        """Record the output of a step as completed, and return its JSON form."""
        value = given.json_of(output)
        result = SubtaskResult(key=key, output=given.json_of(value), completed_at=datetime.now(UTC))
        with self._saver.lock:
            # A new mapping: another thread may be going through the one before.
            self._state.results = {**self._state.results, key: result}
            ticket = self._saver.offer(milestone=f"step {key}")
        self._saver.settle(ticket)
        return value

    def checkpoint(
        self,
        messages: Iterable[Any] | None = None,
        *,
        phase: str | None = None,
        note: str | None = None,
        plan: given.PlanLike | None = None,
        evidence: given.EvidenceLike | Iterable[given.EvidenceLike] = (),
        milestone: str = "",
        waiting: bool = False,
        force: bool = False,
    ) -> Ticket:
        """Say what the run is now; the policy has it saved, or not, and the ticket tells why.

        `messages` is the whole conversation; what is left out stays as it was said last. `milestone` names
        what was reached, `waiting` that the run is about to wait, `force` has it saved whatever the policy
        says. The call takes a snapshot; redaction, sealing and the store are the background writer's, except
        for a profile, or a reason, that asks to wait: then for `run.patience` at most.
        """
        call = self.understand(
            messages,
            phase=phase,
            note=note,
            plan=plan,
            evidence=evidence,
            milestone=milestone,
            waiting=waiting,
            force=force,
        )
        return call if isinstance(call, Ticket) else self.carry_out(call)

    def understand(
        self,
        messages: Iterable[Any] | None,
        *,
        phase: str | None,
        note: str | None,
        plan: given.PlanLike | None,
        evidence: given.EvidenceLike | Iterable[given.EvidenceLike],
        milestone: str,
        waiting: bool,
        force: bool,
    ) -> Said | Ticket:
        """The snapshot of what a call of `checkpoint` says; the ticket of one that will not be saved.

        The only part that has to be done where the loop waits: afterwards it may change what it gave.
        """
        self._check()
        if self._replays:
            return Ticket("skipped", f"run {self.id} has succeeded before")
        self._saver.demand_open("a checkpoint")
        try:
            demands.texts(phase=phase, note=note, milestone=milestone)
            return Said(
                messages=None if messages is None else given.messages_of(messages),
                plan=None if plan is None else given.plan_of(plan),
                evidence=() if evidence is None else given.evidence_of(evidence),
                phase=phase,
                note=note,
                milestone=milestone or "",
                waiting=waiting,
                force=force,
            )
        except ArchiverError as error:
            if self._strict:
                raise
            log.error("a checkpoint of run %s could not be taken: %s", self.id, error)  # noqa: TRY400
            ticket = Ticket("waiting", "it could not be taken")
            ticket.settle("failed", error=error)
            return ticket

    def carry_out(self, said: Said) -> Ticket:
        """Have it saved, as far as the policy asks for that."""
        with self._saver.lock:
            self._saver.demand_open("a checkpoint")
            moved = said.change(self._state)
            ticket = self._saver.offer(
                phase_changed=moved,
                proved=policy.proves(said.evidence),
                milestone=said.milestone,
                waiting=said.waiting,
                forced=said.force,
            )
        return self._saver.settle(ticket)

    def pause(self, messages: Iterable[Any] | None = None, **said: Any) -> Ticket:
        """Save before a wait that this process need not survive, whatever the policy says; as `checkpoint`.

        Returns once it is stored, or after `run.patience` once it is in the spool.
        """
        return self.checkpoint(messages, **{**said, "waiting": True, "force": True})

    def effect(
        self,
        tool: str,
        *,
        key: str,
        arguments: JsonValue = None,
        replayable: bool = False,
        not_done_on: tuple[type[BaseException], ...] = (),
        unrecorded: Literal["refuse", "do"] = "refuse",
    ) -> EffectCall:
        """One action on something outside, done at most once: intent first, then it, then its outcome.

        A key that is confirmed already gives its recorded result, and the block of the `with` is not run.
        See `archiver.loop.effects`.
        """
        self._check()
        demands.effect(tool, key, not_done_on, unrecorded)
        if not self._book.knows(key):
            self._saver.demand_open(f"effect {told([key])}")
        return self._book.effect(
            tool,
            key=key,
            arguments=arguments,
            replayable=replayable,
            not_done_on=not_done_on,
            unrecorded=unrecorded,
        )

    def spend(
        self,
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
        usd: float = 0.0,
        iterations: int = 0,
    ) -> Left:
        """Count what was used; returns what is left of the budget. Wall-clock time counts by itself."""
        self._check()
        more = given.spend_of(
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tokens_cached=tokens_cached,
            cost=usd,
            iterations=iterations,
        )
        with self._saver.lock:
            before = self._state.spend
            sums = {name: getattr(before, name) + getattr(more, name) for name in _COUNTED}
            self._state.spend = given.spend_of(**{**dict(before), **sums})
            self._saver.unsaved = True
            return self.left

    def rewind(self, to: int, *, because: str = "") -> list[Any]:
        """Go on from checkpoint `to` under a new number; returns its conversation.

        What came after stays in the store, to be looked into; what was not saved yet is saved first. Effects
        and spend stay as they are now: they happened. Saved before it returns. Raises what reading checkpoint
        `to` raises, and what keeps the new one from being saved.
        """
        self._check()
        demands.number("to", to)
        demands.texts(because=because)
        self._saver.demand_open("a rewind")
        self._saver.save_rest("before a rewind")
        self._writer.flush(self._saver.patience)
        then = state_at(self.id, to, self._setup)
        said = f"rewound to checkpoint {to}"
        with self._saver.lock:
            self._saver.demand_open("a rewind")
            self._saver.state = rewound(self._state, then, f"{said}: {because}" if because else said)
            ticket = self._saver.submit(said)
        ticket.wait(self._saver.patience)
        self._writer.raise_if_stale()
        if not ticket.saved:
            raise ticket.error or self._saver.late(ticket)
        return self.messages

    # --- the end ------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was saved so far is in the store; False if it is not by then. In seconds."""
        self._check()
        return self._writer.flush(self._saver.patience if timeout is None else timeout)

    def finish(self, outcome: End, *, note: str | None = None) -> Ticket:
        """End the run with this outcome; the last checkpoint is saved before it returns.

        A run that has succeeded is not gone on with: opened again, it gives its recorded outputs and results.
        One that failed or was cancelled goes on when it is opened again.
        """
        self._check()
        demands.one_of("outcome", outcome, get_args(End))
        demands.texts(note=note)
        with self._saver.lock:
            if self._saver.ended == outcome:
                return Ticket("skipped", f"run {self.id} has {outcome} before")
            self._saver.demand_open("an end")
            self._state.outcome = outcome
            self._state.note = self._state.note if note is None else note
            self._saver.ended = outcome
            ticket = self._saver.offer(final=True)
        if outcome == "succeeded" and (open_ := self._book.undecided):
            log.warning(
                "run %s has succeeded, though nobody knows whether these effects happened: %s",
                self.id,
                told(one.key for one in open_),
            )
        return self._saver.settle(ticket)

    def close(self) -> None:
        """Save what was said since the last checkpoint, and end the background writer; may be repeated.

        The run goes on when it is opened again, unless it has succeeded.
        """
        if os.getpid() != self._pid:
            return
        self._saver.closed = True
        try:
            going_on = not self.finished and self._writer.stale is None
            if going_on and (ticket := self._saver.save_rest("the run is closed")) is not None:
                self._saver.settle(ticket)
        finally:
            if self._writer.stale is None:
                self._book.close()
            writer_exit.forget(self._saver)
            stored = self._writer.close(self._saver.patience)
            if self.finished:
                self._spool.finish()
            if stored:
                self._tag()
            self._note_session(local=not stored)

    def _tag(self) -> None:
        """As its own sweeper, give what is stored the classes it should have; no reason to raise either."""
        patience, seq = self._saver.patience, self._writer.place.seq
        try:
            for warning in in_time(lambda: after_save(self._setup, self.id, seq - 1), patience):
                log.warning("%s", warning)
        except ArchiverError as error:
            log.warning("the classes of run %s were not looked at: %s", self.id, error)

    def _note_session(self, *, local: bool) -> None:
        """Write down once what the session came to; what is wrong with that is no reason to raise."""
        if self._noted or self._replays:
            return
        self._noted = True
        tally = self._saver.tally
        session = Session(
            seconds=time.monotonic() - self._began,
            restore_seconds=self._opening_seconds,
            checkpoints=tally.saved,
            create_seconds=tally.seconds,
            slowest_create=tally.slowest,
            failed=tally.failed,
            duplicates_prevented=self._book.prevented,
            steps_replayed=self._replayed,
        )
        for warning in note_session(self._setup, self.id, session, claim=self._claim, local=local):
            log.warning("%s", warning)

    def leave(self, error: BaseException | None) -> None:
        """Leave the block of the `with`, by an error or without; a second error does not hide the first."""
        try:
            outcome = outcome_of(error)
            if not (outcome is None or self.finished or self._saver.closed or self._writer.stale):
                self.finish(outcome, note=note_of(error))
        except ArchiverError as problem:
            log.error("run %s ended with an error, and could not be saved: %s", self.id, problem)  # noqa: TRY400
        try:
            self.close()
        except ArchiverError as problem:
            if error is None:
                raise
            log.error("run %s could not be closed: %s", self.id, problem)  # noqa: TRY400

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise UsageError(
                f"run {self.id} belongs to process {self._pid}, not to its child {os.getpid()}",
                remedy="open a run of its own in the child, or do its saves in the parent",
            )
        self._writer.raise_if_stale()
        self._saver.demand_unclosed()
