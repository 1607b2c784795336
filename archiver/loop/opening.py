"""Begin a run, or take it over where it was left: what is in the spool, then the claim, then the effects."""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import deciding, gate, layout, position, records, restore, saved, withheld
from archiver.effect_names import name_of
from archiver.errors import (
    AWAY,
    ArchiverError,
    NeedsDecisionError,
    NoSuchRunError,
    RefusedError,
    StaleCheckpointError,
    StaleWriterError,
    StoreUnreachableError,
    UsageError,
)
from archiver.freshness import Current
from archiver.ledger import Ledger, merged
from archiver.loop.left import demand_left
from archiver.loop.state import State
from archiver.model import Budget, Checkpoint, Effect, utc_text
from archiver.position import Position
from archiver.progress import Silent
from archiver.redact import new_key
from archiver.repair import repair
from archiver.safetext import shorten
from archiver.scratch import Scratch
from archiver.spool import RunSpool, open_spool

if TYPE_CHECKING:
    from archiver.deciding import Outcome
    from archiver.model.record import Decision
    from archiver.redact import Redactor
    from archiver.restored import Restored
    from archiver.setup import Setup
    from archiver.taking_over import Check

log = logging.getLogger("archiver")
_ALWAYS = ("approvals", "budget", gate.EFFECTS)
"""What this module asks itself, or the agent does: who waits for an answer starts the run with it."""
_FLAG = re.compile(r"--(accept|because|resolve)\b")
"""Options of a command that are arguments here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a run is to be opened."""

    task: str
    run: str
    accept: Collection[str] = ()
    resolve: Mapping[str, Outcome] | None = None
    because: str = ""
    check: Check | None = None
    budget: Budget | None = None
    harness: str | None = None
    model: str | None = None
    start_offline: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """Where a run stands."""

    state: State
    place: Position
    spool: RunSpool
    ledger: Ledger
    """Not loaded where the store was away."""
    resumed: bool
    finished: bool
    """Whether the run has succeeded, so that nothing new is done under its id."""
    effects: tuple[Effect, ...]
    decisions: tuple[Decision, ...]
    claim: int | None
    """The number of the record by which the run was taken over."""
    offline: bool
    """Whether the store was away."""
    seconds: float
    """What opening took."""


def open_run(wanted: Wanted, setup: Setup, *, away: ArchiverError | None, now: datetime) -> Opened:
    """The run as it is to go on; `away` is why the store cannot be asked, if that is known already.

    Raises `StoreUnreachableError` where the store is away and the spool does not prove the head, what a
    restore and a claim raise, `BudgetExhaustedError` and `NeedsDecisionError`.
    """
    key = new_key()
    _refuse_credentials(wanted, setup.redactor(key))
    opening = _Opening(wanted, setup, open_spool(setup).of(wanted.run, wanted.task), key, now)
    with _advising():
        if away is None:
            try:
                return opening.online()
            except AWAY as error:
                away = error
        return opening.offline(away)


def _refuse_credentials(wanted: Wanted, redactor: Redactor) -> None:
    """The names of a run stand in clear in the store."""
    layout.encode_run(wanted.run)
    for what, name in (("task", wanted.task), ("run id", wanted.run)):
        if redactor.text(name) != name:
            raise RefusedError(
                f"the {what} holds a credential: {redactor.text(name)}", remedy=f"use another {what}"
            )


class _Opening:
    """The steps of opening one run; `key` is its redaction key, if it is a new one."""

    def __init__(self, wanted: Wanted, setup: Setup, spool: RunSpool, key: bytes, now: datetime) -> None:
        self._wanted, self._setup, self._spool, self._key, self._now = wanted, setup, spool, key, now
        self._began = time.monotonic()
        redactor = functools.cache(lambda: setup.redactor(self._key))
        self._ledger = Ledger(setup, wanted.run, wanted.task, redactor)

    def online(self) -> Opened:
        """What waits in the spool is delivered first: it is what the run goes on from."""
        try:
            self._spool.deliver()
        except StaleWriterError as error:
            log.warning("%s; it is kept in the spool as a fork, and the run goes on from the store", error)
        try:
            with Scratch() as scratch:
                restored = restore.restore(
                    self._wanted.run,
                    replace(self._setup, why=self._wanted.because or self._setup.why),
                    into=scratch.path / "restored",
                    accept=self._wanted.accept,
                    asked=_ALWAYS,
                    workspace=False,  # the run goes on in its own folder
                    current=_current(self._wanted, self._setup),
                    now=self._now,
                )
                state = State.of(restored.state)
        except NoSuchRunError:
            return self._begun()
        _demand_task(self._wanted, restored.state)
        if restored.state.outcome != "succeeded":
            return self._taken_over(restored, state)
        log.warning(
            "run %s succeeded on %s: recorded outputs are given, and nothing is done again; a new run needs "
            "another run_id",
            self._wanted.run,
            utc_text(restored.state.checkpoint_at),
        )
        effects = merged(restored.state.effects, self._ledger.load(), restored.report.decisions)
        place = position.find(self._wanted.run, self._setup, anyone=True)
        return self._opened(state, place, effects, restored.report.decisions, resumed=True, finished=True)

    def _taken_over(self, restored: Restored, state: State) -> Opened:
        """Claim the run, and only then look which effects were begun.

        Whoever wrote it before records an intent first and looks for a claim after, so at least one of the
        two sees the other.
        """
        wanted = self._wanted
        demand_left(wanted.run, wanted.budget or state.budget, state.spend)
        resolve = self._to_decide(restored.state)
        resumed = restored.resume(resolve=resolve, because=wanted.because, check=wanted.check, now=self._now)
        for warning in resumed.warnings:
            log.warning("%s", warning)
        effects = merged(resumed.state.effects, self._ledger.load(), resumed.decisions)
        gate.refuse_undecided(_with_effects(resumed.state, effects))
        place = position.find(wanted.run, self._setup)
        if place.seq != resumed.next_seq:
            raise StaleWriterError(
                f"run {wanted.run} was taken over by somebody else while it was resumed: record "
                f"{place.seq - 1} came after the own claim, {resumed.seq}",
                remedy="look who else resumes it; start it again once that one has ended",
            )
        self._keep_claim(place)
        return self._opened(state, place, effects, resumed.decisions, resumed=True, claim=resumed.seq)

    def _to_decide(self, state: Checkpoint) -> dict[str, Outcome]:
        """What the call says of effects that are undecided still.

        A program that is started again says the same again, of what has been decided or done meanwhile.
        """
        undecided = {name_of(effect.key) for effect in gate.undecided(state)}
        said = deciding.by_name(self._wanted.resolve or {})
        for name in said.keys() - undecided:
            log.info("run %s: nothing is to be decided on effect %s", state.run_id, shorten(name, 80))
        return {name: outcome for name, outcome in said.items() if name in undecided}

    def _keep_claim(self, place: Position) -> None:
        """Have the spool know the own claim too: should the store be away at the next start, it proves it."""
        claim = place.head
        if claim is None:
            return
        try:
            name = layout.record_name(claim.run, claim.seq)
            self._spool.keep(claim, self._setup.store.read(name, limit=records.MAX_RECORD))
        except ArchiverError as error:
            log.warning("run %s could not go on without the store, should it be away: %s", claim.run, error)

    def _begun(self) -> Opened:
        """A run of which the store has no checkpoint."""
        place = position.find(self._wanted.run, self._setup)
        effects = merged((), self._ledger.load())
        state = self._new()
        gate.refuse_undecided(state.maker(effects)())
        return self._opened(state, place, effects)

    def offline(self, away: ArchiverError) -> Opened:
        """From what lies in the spool; without a claim, which nobody would see: what it saves is fenced when
        it is delivered.
        """
        run = self._wanted.run
        proven = self._spool.proven()
        if proven is None or proven.checkpoint is None:
            self._demand_a_start(away)
        log.warning("run %s goes on without the store: %s", run, away)
        if proven is None or proven.checkpoint is None:
            return self._opened(self._new(), Position(run), (), offline=True)
        local = replace(self._setup, store=self._spool.reader())
        with Scratch() as scratch:
            found = saved.fetch(
                proven.checkpoint, local, scratch.path / "bundle", Silent(), proven.bases
            ).checkpoint
            checkpoint = withheld.without_replay(repair(found, scratch)[0])
            checkpoint = gate.with_decisions(checkpoint, proven.decisions)
            state = State.of(checkpoint)
        _demand_task(self._wanted, checkpoint)
        demand_left(run, self._wanted.budget or state.budget, state.spend)
        gate.refuse_undecided(checkpoint)
        place = position.after(proven.head, proven.sha256, local)
        finished = checkpoint.outcome == "succeeded"
        return self._opened(
            state,
            place,
            checkpoint.effects,
            proven.decisions,
            resumed=True,
            finished=finished,
            offline=True,
        )

    def _demand_a_start(self, away: ArchiverError) -> None:
        """That the run may begin anew: it was asked for, and the spool knows of no record of it either."""
        run, head = self._wanted.run, self._spool.head()
        if head is not None:
            raise StoreUnreachableError(
                f"run {run} has record {head.seq}, and what it goes on from is in the store alone: {away}",
                remedy="try again once the store is back",
            ) from away
        if not self._wanted.start_offline:
            raise StoreUnreachableError(
                f"whether there is something to resume of run {run} is not known: {away}",
                remedy='try again once the store is back; offline="start" begins without knowing, and what '
                "is saved then becomes a fork if the store turns out to have the run",
            ) from away

    def _opened(
        self,
        state: State,
        place: Position,
        effects: tuple[Effect, ...],
        decisions: tuple[Decision, ...] = (),
        *,
        resumed: bool = False,
        finished: bool = False,
        claim: int | None = None,
        offline: bool = False,
    ) -> Opened:
        """With the redaction key of the run, or a new one where no bundle holds one any more."""
        self._key = place.redaction_key or self._key
        place = replace(place, redaction_key=self._key)
        seconds = time.monotonic() - self._began if resumed else 0.0
        return Opened(
            state,
            place,
            self._spool,
            self._ledger,
            resumed,
            finished,
            effects,
            decisions,
            claim,
            offline,
            seconds,
        )

    def _new(self) -> State:
        return State(run_id=self._wanted.run, task_id=self._wanted.task, created_at=self._now)


@contextmanager
def _advising() -> Iterator[None]:
    """What stands against a resume is answered by arguments here, where the advice is for a command."""
    try:
        yield
    except (StaleCheckpointError, NeedsDecisionError) as error:
        blockers = error.details.get("blockers")
        words = [str(one["accept"]) for one in blockers] if isinstance(blockers, list) else []
        said = [f"accept={[word for word in words if word != gate.EFFECTS]}"] if words else []
        if gate.EFFECTS in words:
            said = ['resolve={KEY: "done" or "not-done"}, because=…, or check=FUNCTION']
        if said:
            error.remedy = f"{error.remedy}; in a program: archiver.run(…, {said[0]})"
        raise
    except UsageError as error:
        error.remedy = _FLAG.sub(r"`\1`", error.remedy or "") or None
        raise


def _current(wanted: Wanted, setup: Setup) -> Current:
    """What the run goes on with: as this call says, else as the settings do."""
    known = setup.settings.freshness
    return Current(
        harness=wanted.harness or known.harness,
        model=wanted.model or known.model,
        prompt=known.prompt_file,
        tools=known.tools_file,
    )


def _demand_task(wanted: Wanted, found: Checkpoint) -> None:
    if found.task_id != wanted.task:
        raise UsageError(
            f"run {wanted.run} belongs to task {found.task_id}, not to {wanted.task}",
            remedy="give the other task's run another run_id",
        )


def _with_effects(checkpoint: Checkpoint, effects: tuple[Effect, ...]) -> Checkpoint:
    return withheld.without_replay(checkpoint.model_copy(update={"effects": effects}))
