"""Take a restored run over: what is decided, the claim, and what the agent needs to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from archiver import audit, claiming, deciding, gate, ledger, telemetry, withheld
from archiver.claiming import End
from archiver.deciding import Outcome
from archiver.effect_names import name_of
from archiver.errors import NeedsDecisionError, RefusedError, UsageError
from archiver.gate import Effects
from archiver.model import Checkpoint, Effect
from archiver.model.effect_entry import EffectEntry
from archiver.model.record import Decision, Record
from archiver.model.report import RestoreReport
from archiver.record_of import effect_counts
from archiver.safetext import shorten

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Planned:
    """The report of a plan, and what a claim needs besides."""

    report: RestoreReport
    end: End
    past: tuple[Decision, ...]
    """What claims before said of effects, the last word on each."""
    new: tuple[Decision, ...]
    entries: tuple[EffectEntry, ...] = ()
    """What the ledger had of the run."""
    known: tuple[Record, ...] = ()
    """The records of the run up to the checkpoint or beyond, verified."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """Names of effects that the record or the ledger say are to be decided on."""
        return undecided(self.report.record, self.entries)


def undecided(record: Record, entries: Iterable[EffectEntry]) -> tuple[str, ...]:
    """The same of any record. What the ledger says happened needs no decision."""
    entries = tuple(entries)
    names = dict.fromkeys(map(name_of, (*record.effects.undecided, *ledger.begun(entries))))
    return tuple(name for name in names if name not in ledger.happened(entries))


Check = Callable[[Effect], "Outcome | None"]
"""Looks whether an effect happened: `done`, `not-done`, or None where it cannot tell."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that was taken over and goes on."""

    state: Checkpoint
    seq: int
    """The number of the claim."""
    decisions: tuple[Decision, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        return self.state.run_id

    @property
    def task(self) -> str:
        return self.state.task_id

    @property
    def next_seq(self) -> int:
        """The number of the next checkpoint."""
        return self.seq + 1

    @property
    def effects(self) -> Effects:
        """The effects, to be asked before each call that acts on something outside."""
        return Effects(self.state.effects, {one.effect: one for one in self.decisions})


def decide(
    checkpoint: Checkpoint, planned: Planned, resolve: Mapping[str, Outcome]
) -> tuple[Checkpoint, tuple[Decision, ...]]:
    """The checkpoint with what was decided, and the decisions that are about something undecided in it."""
    checkpoint = withheld.without_replay(checkpoint)
    names = _undecided(checkpoint)
    past = tuple(deciding.about(planned.past, names))
    deciding.check_names(resolve, names, past)
    decisions = (*past, *planned.new)
    return gate.with_decisions(checkpoint, decisions), decisions


def _undecided(state: Checkpoint) -> dict[str, None]:
    return dict.fromkeys(name_of(effect.key) for effect in gate.undecided(state))


class Taking:
    """The claim that a restore commits as its last step but one."""

    def __init__(self, planned: Planned, setup: Setup, checkpoint: Checkpoint, now: datetime) -> None:
        self.seq = planned.end.seq + 1
        self.warnings: tuple[str, ...] = ()
        self._planned, self._setup, self._checkpoint, self._now = planned, setup, checkpoint, now

    def commit(self) -> None:
        """Raises what `claiming.claim` raises."""
        _, self.warnings = claiming.claim(
            self._planned.report.record,
            self._planned.end,
            self._setup,
            effects=effect_counts(self._checkpoint),
            decisions=self._planned.new,
            now=self._now,
        )
        _measured(self._planned.report.record)
        known = set(ledger.begun(self._planned.entries))
        entries = ledger.known(self._checkpoint.run_id, self._setup)
        if more := [key for key in ledger.begun(entries) if key not in known]:
            said = (
                "while the run was taken over these effects were begun, and the folder does not have them: "
            )
            self.warnings += (f"{said}{gate.told(more)}; restore again before anything acts",)


@telemetry.span("archiver.resume")
def resume(
    state: Checkpoint,
    report: RestoreReport,
    planned: Planned,
    setup: Setup,
    *,
    resolve: Mapping[str, Outcome],
    because: str,
    check: Check | None,
    now: datetime,
) -> Resumed:
    """Decide on what is undecided in `state`, then claim the run, then look what was begun meanwhile.

    Whoever wrote the run before records an intent first and looks for a claim after, so at least one of the
    two sees the other.
    """
    because = because or setup.why
    end, resolve = planned.end, deciding.by_name(resolve)
    deciding.check_words(resolve, because)
    deciding.check_names(resolve, _undecided(state), report.decisions)
    claiming.check_possible(state.run_id, end, setup, now)
    _, made = words(resolve, because, setup, now)
    state = gate.with_decisions(state, made)
    if check is not None:
        found = _checked(check, state)
        how = f"{because}; found by the precondition check {_name(check)}" if because else ""
        _, more = words(found, how or f"found by the precondition check {_name(check)}", setup, now)
        made = (*made, *more)
        state = gate.with_decisions(state, more)
    gate.refuse_undecided(state)
    setup = replace(setup, why=because)
    said: tuple[str, ...] = ()
    if made:
        effects = {one.effect: one.outcome for one in made}
        said = audit.note(setup, "resolve", run=report.run, seq=report.seq, detail={"effects": effects})
    claimed, warnings = claiming.claim(
        report.record, end, setup, effects=effect_counts(state), decisions=(*planned.new, *made), now=now
    )
    _measured(report.record)
    decisions = (*report.decisions, *made)
    state = with_ledger(state, ledger.known(state.run_id, setup), decisions)
    gate.refuse_undecided(state)
    return Resumed(state, claimed.seq, decisions, (*said, *warnings))


def with_ledger(
    state: Checkpoint, entries: Iterable[EffectEntry], decisions: Iterable[Decision] = ()
) -> Checkpoint:
    """The checkpoint with what the ledger knows of effects besides, and decisions that are made."""
    entries = tuple(entries)
    if not entries:
        return state
    effects = ledger.merged(state.effects, entries, decisions)
    return withheld.without_replay(state.model_copy(update={"effects": effects}))


def _measured(record: Record) -> None:
    """A run goes on from this checkpoint: what it had used is not used again."""
    spend = record.spend
    telemetry.resumed()
    telemetry.replay_avoided(spend.seconds, spend.cost if spend.currency == "USD" else 0.0)


def words(
    resolve: Mapping[str, Outcome], reason: str, setup: Setup, now: datetime
) -> tuple[str, tuple[Decision, ...]]:
    """The reason and the decisions as they are written down and signed, free of credentials."""
    if not resolve and not reason:
        return "", ()
    from archiver.redact import new_key

    session = setup.session
    with session.lock:
        session.redactor = redactor = session.redactor or setup.redactor(new_key())
        reason = redactor.text(deciding.unicode(reason))
        by, _ = audit.who_and_why(setup)
        for name in resolve:
            if redactor.text(name) != name:
                raise RefusedError(
                    "the key of an effect that is to be resolved holds a credential: it cannot be recorded",
                    remedy="restore with --accept effects, and record the effect under another key",
                )
    made = (
        Decision(effect=name, outcome=outcome, by=by, at=now, reason=reason)
        for name, outcome in resolve.items()
    )
    return reason, tuple(made)


def _checked(check: Check, state: Checkpoint) -> dict[str, Outcome]:
    """What the check found out, by the names of effects that are undecided; what it cannot tell stays so."""
    found: dict[str, Outcome] = {}
    for effect in gate.undecided(state):
        answer = _asked(check, effect)
        if answer is None:
            continue
        if answer not in ("done", "not-done"):
            raise UsageError(
                f"the precondition check {_name(check)} answers {answer!r:.80} about "
                f"{gate.told([effect.key])}",
                remedy="it answers `done`, `not-done` or None",
            )
        if found.setdefault(name_of(effect.key), answer) != answer:
            raise NeedsDecisionError(
                f"the precondition check {_name(check)} contradicts itself about {gate.told([effect.key])}",
                remedy="several effects have this key: look yourself, and use --resolve",
            )
    return found


def _asked(check: Check, effect: Effect) -> Any:
    try:
        return check(effect)
    except Exception as error:
        raise NeedsDecisionError(
            f"the precondition check {_name(check)} failed for the effect {gate.told([effect.key])}: "
            f"{type(error).__name__}: {shorten(str(error), 200)}",
            remedy="mend the check, or look yourself and use --resolve",
        ) from error


def _name(check: Check) -> str:
    return str(getattr(check, "__qualname__", None) or type(check).__qualname__)
