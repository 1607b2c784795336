"""What the ledger and a checkpoint say together of each effect. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from archiver.effect_names import name_of
from archiver.model import Effect, utc_text
from archiver.model.effect_entry import EffectEnd, EffectEntry
from archiver.model.record import Decision

_OPEN = ("in_progress", "uncertain")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One intent of one writer, and what came of it as far as the store knows."""

    said: EffectEntry
    """The intent; the outcome where the intent is not there."""
    intent: str
    begun: datetime
    outcomes: tuple[EffectEntry, ...] = ()

    @property
    def status(self) -> EffectEnd | None:
        """None while nobody has said what came of it. That it happened outweighs that it did not."""
        found = {one.status for one in self.outcomes}
        return "confirmed" if "confirmed" in found else "not-done" if found else None

    @property
    def confirmed(self) -> EffectEntry | None:
        """The outcome that counts: of those that say it happened, one that saw it, with its result."""
        done = [one for one in self.outcomes if one.status == "confirmed"]
        return min(done, key=lambda one: (bool(one.by), one.at), default=None)


def attempts_of(entries: Iterable[EffectEntry]) -> dict[str, tuple[Attempt, ...]]:
    """The attempts at each effect, by its key, in their order."""
    intents = {one.id: one for one in entries if one.part == "intent"}
    outcomes: defaultdict[str, list[EffectEntry]] = defaultdict(list)
    for one in entries:
        if one.part == "outcome" and one.intent is not None:
            outcomes[one.intent].append(one)
    found: defaultdict[str, list[Attempt]] = defaultdict(list)
    for intent in {**intents, **outcomes}:
        ends = tuple(outcomes.get(intent, ()))
        said = intents.get(intent) or ends[0]
        found[said.key].append(Attempt(said, intent, said.begun or said.at, ends))
    return {
        key: tuple(sorted(attempts, key=lambda one: (one.said.attempt, one.begun)))
        for key, attempts in found.items()
    }


def merged(
    state: Iterable[Effect], entries: Iterable[EffectEntry], decisions: Iterable[Decision] = ()
) -> tuple[Effect, ...]:
    """The effects of a checkpoint with all that the ledger knows besides; `decisions` are those of claims.

    What either says happened, happened. An attempt without an outcome is `in_progress` if it may be done
    again, else `uncertain`, whatever an older checkpoint says of it; one that ended, or that somebody decided
    was not done, is `proposed`.
    """
    attempts = attempts_of(tuple(entries))
    by_name = {decision.effect: decision for decision in decisions}
    of_state: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in state:
        of_state[effect.key].append(effect)
    made: list[Effect] = []
    for key, effects in of_state.items():
        known = attempts.get(key)
        made += [_one(effects, known, by_name)] if known else effects
    later = [one for key, one in attempts.items() if key not in of_state]
    made += [_one((), one, by_name) for one in sorted(later, key=lambda one: one[0].begun)]
    return tuple(made)


def begun(entries: Iterable[EffectEntry]) -> tuple[str, ...]:
    """Keys of effects that cannot be done again, were begun, and of which the ledger has no end."""
    return tuple(
        key
        for key, attempts in attempts_of(tuple(entries)).items()
        if any(one.status is None and not one.said.replayable for one in attempts)
        and not any(one.status == "confirmed" for one in attempts)
    )


def happened(entries: Iterable[EffectEntry]) -> frozenset[str]:
    """Names of effects of which the ledger says that they happened."""
    return frozenset(name_of(one.key) for one in entries if one.status == "confirmed")


def undecided(attempts: Sequence[Attempt], decision: Decision | None) -> tuple[Attempt, ...]:
    """Those without an outcome, unless somebody decided on them."""
    if decision is not None and not is_spent(decision, attempts):
        return ()
    return tuple(one for one in attempts if one.status is None)


def is_spent(decision: Decision, attempts: Iterable[Attempt]) -> bool:
    """Whether the ledger has what was decided: then it says nothing of an attempt that came after."""
    return any(
        one.by == decision.by and one.decided is not None and utc_text(one.decided) == utc_text(decision.at)
        for attempt in attempts
        for one in attempt.outcomes
    )


def _one(
    effects: Sequence[Effect], attempts: tuple[Attempt, ...], decisions: Mapping[str, Decision]
) -> Effect:
    done = next((one.confirmed for one in reversed(attempts) if one.confirmed is not None), None)
    if done is not None:
        return effect_of(done, "confirmed")
    said = [one for one in effects if one.status == "confirmed"]
    if said:
        return said[-1]
    decision = decisions.get(name_of(attempts[-1].said.key))
    left = undecided(attempts, decision)
    decided = decision is not None and any(one.status is None for one in attempts) and not left
    if decided and decision is not None and decision.outcome == "done":
        return effect_of(attempts[-1].said, "confirmed")
    known = {utc_text(one.begun) for one in attempts}
    # Begun without the store, so that the ledger cannot know what came of it.
    lone = [
        one for one in effects if one.status in _OPEN and (one.at is None or utc_text(one.at) not in known)
    ]
    for one in lone:
        if not one.replayable or not left:
            return one
    if not left:
        return effect_of(attempts[-1].said, "proposed")
    firm = [one for one in left if not one.said.replayable]
    return effect_of(firm[-1].said, "uncertain") if firm else effect_of(left[-1].said, "in_progress")


def effect_of(entry: EffectEntry, status: str) -> Effect:
    """What an intent or outcome is about, with this status, as a checkpoint has it."""
    return Effect.model_validate(
        {
            "key": entry.key,
            "tool": entry.tool,
            "arguments": entry.arguments,
            "result": entry.result if status == "confirmed" else None,
            "status": status,
            "replayable": entry.replayable,
            "at": entry.begun or entry.at,
        }
    )


def unspent(decisions: Iterable[Decision], entries: Iterable[EffectEntry]) -> tuple[Decision, ...]:
    """Those that the ledger does not have as outcomes: these alone say something of what is undecided now."""
    attempts = {name_of(key): found for key, found in attempts_of(tuple(entries)).items()}
    return tuple(one for one in decisions if not is_spent(one, attempts.get(one.effect, ())))
