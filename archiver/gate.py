"""The gate of effects: nobody goes on while it is not known whether an unreplayable effect happened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from archiver import jsonio, telemetry
from archiver.effect_names import name_of
from archiver.errors import NeedsDecisionError, RefusedError
from archiver.model import Checkpoint, Effect, Record
from archiver.model.base import JsonValue
from archiver.model.record import Decision
from archiver.model.report import Blocker, OpenEffect
from archiver.redact import contains_placeholder, usable
from archiver.safetext import shorten
from archiver.shellwords import word

EFFECTS = "effects"
"""The word that `accept` takes for effects whose outcome nobody knows."""
_OPEN = ("in_progress", "uncertain")
_MAX_TOLD = 80
"""Characters of a key that a message repeats."""
_MOST_TOLD = 50
"""Keys that a message repeats, and a record lists."""
_MAX_SHOWN = 2000
"""Characters of arguments that a report repeats."""

_REMEDY = (
    "look in the systems they act on, then say what you found: --resolve KEY=done or KEY=not-done, with "
    "--because; --accept effects only hands the checkpoint over to look at, and lets nothing go on"
)


def blockers(
    record: Record, *, accepted: bool, decided: Collection[str] = (), begun: Iterable[str] = ()
) -> Iterator[Blocker]:
    """What stands against going on, unless `accepted`.

    Names in `decided` have been decided on; `begun` are keys of what was begun since the record was made.
    """
    named = dict.fromkeys((*record.effects.undecided, *begun))
    left = [key for key in named if name_of(key) not in decided]
    if left and not accepted:
        counts = record.effects
        more = len(counts.undecided) >= _MOST_TOLD and may_hide(record)
        yield _blocker(left, f"; of {counts.in_progress + counts.uncertain} that are open" if more else "")


def blockers_of(checkpoint: Checkpoint) -> Iterator[Blocker]:
    """The same for an opened checkpoint; nothing that was accepted lets a run go on."""
    left = dict.fromkeys(effect.key for effect in undecided(checkpoint))
    if left:
        yield _blocker(left)


def _blocker(keys: Iterable[str], more: str = "") -> Blocker:
    return Blocker(
        accept=EFFECTS,
        reason=f"nobody knows whether these effects happened: {told(keys)}{more}",
        remedy=_REMEDY,
        exit_code=7,
    )


def told(keys: Iterable[str]) -> str:
    """Keys for a message: long ones cut, those that are no names with their names, and not too many."""
    all_ = list(keys)
    more = f" and {len(all_) - _MOST_TOLD} more" if len(all_) > _MOST_TOLD else ""
    return ", ".join(map(_told, all_[:_MOST_TOLD])) + more


def _told(key: str) -> str:
    shown = shorten(key, _MAX_TOLD) or "one whose key is blank"
    name = name_of(key)
    return shown if name == key else f"{shown} ({name})"


def may_hide(record: Record) -> bool:
    """Whether effects may be undecided that the record does not name: it lists some, and is no judge of
    those whose arguments were redacted.
    """
    return record.effects.in_progress + record.effects.uncertain > len(record.effects.undecided)


def hidden(record: Record, replaced: bool) -> Iterator[str]:
    """What a plan says of effects that the restore may refuse though the record does not name them.

    Records of earlier releases do not count those whose arguments were redacted; `replaced` says that earlier
    checkpoints of the run replaced something.
    """
    open_ = record.effects.in_progress + record.effects.uncertain - len(record.effects.undecided)
    if open_ > 0 and (record.findings or replaced):
        yield (
            f"{open_} more effects are open and may be done again, unless their arguments held credentials: "
            "those would be refused as undecided once the bundle is open"
        )


def undecided(checkpoint: Checkpoint) -> tuple[Effect, ...]:
    """Effects that cannot be done again and of which nobody knows whether they happened."""
    return tuple(effect for effect in checkpoint.effects if _is_open(effect) and not effect.replayable)


def open_effects(checkpoint: Checkpoint) -> tuple[OpenEffect, ...]:
    """The same for the report: what is known of each, and the flag that decides on it."""
    return tuple(
        OpenEffect(
            key=effect.key,
            tool=effect.tool,
            arguments=_json(effect.arguments),
            status=effect.status,
            at=effect.at,
            result="" if effect.result is None else _json(effect.result),
            resolve=f"--resolve {word(name_of(effect.key))}",
        )
        for effect in undecided(checkpoint)
    )


def _json(value: JsonValue) -> str:
    return shorten(jsonio.dumps(value).decode(), _MAX_SHOWN)


def refuse_undecided(checkpoint: Checkpoint) -> None:
    """Raise `NeedsDecisionError` while an effect is undecided."""
    left = undecided(checkpoint)
    if not left:
        return
    lost = [effect.key for effect in left if contains_placeholder(effect.arguments)]
    why = f"; what cannot be run again, because its arguments held credentials: {told(lost)}" if lost else ""
    error = NeedsDecisionError(
        f"nobody knows whether these effects of run {checkpoint.run_id} happened: "
        f"{told(dict.fromkeys(effect.key for effect in left))}{why}",
        remedy=_REMEDY,
    )
    error.details = {
        "run": checkpoint.run_id,
        "blockers": [blocker.document() for blocker in blockers_of(checkpoint)],
        "undecided": [one.document() for one in open_effects(checkpoint)],
    }
    raise error


def with_decisions(checkpoint: Checkpoint, decisions: Iterable[Decision]) -> Checkpoint:
    """The checkpoint in which what was undecided has the status that was decided.

    Done: confirmed, with a result that nobody knows. Not done: proposed, so it may be done.
    """
    by_name = {decision.effect: decision for decision in decisions}
    effects = tuple(
        _with(effect, by_name[name_of(effect.key)])
        if _is_open(effect) and not effect.replayable and name_of(effect.key) in by_name
        else effect
        for effect in checkpoint.effects
    )
    return checkpoint.model_copy(update={"effects": effects}) if by_name else checkpoint


def _with(effect: Effect, decision: Decision) -> Effect:
    status = "confirmed" if decision.outcome == "done" else "proposed"
    return effect.model_copy(update={"status": status, "result": None})


def _is_open(effect: Effect) -> bool:
    return effect.status in _OPEN


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do about an effect: `act`, or take the recorded `result` in its place."""

    act: bool
    result: JsonValue = None
    decision: Decision | None = None
    """Whose word it is that the effect happened; its result is then not known."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a restored run, to be asked before each tool call that acts on something outside."""

    effects: tuple[Effect, ...]
    decisions: Mapping[str, Decision] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def __len__(self) -> int:
        return len(self.effects)

    @property
    def undecided(self) -> tuple[Effect, ...]:
        """Those a person or a precondition check has to decide on."""
        return tuple(effect for effect in self.effects if _is_open(effect) and not effect.replayable)

    def outcome(self, key: str, arguments: JsonValue = None, *, in_hand: bool = False) -> Answer:
        """What to do about the effect `key`, which is to be done with these arguments.

        A confirmed one is not done again: the recorded result stands for it. One that is proposed, or may be
        done again, or is not known here, is done. Where several have one key the most cautious answer counts.
        `in_hand`: these are only what to compare; whoever asks has the arguments with all credentials.
        Raises `RefusedError` where the same key has other arguments, `RedactedValueError` where redaction
        took something out of what is needed, `NeedsDecisionError` where nobody knows whether it happened.
        """
        known = [effect for effect in self.effects if effect.key == key]
        for effect in known:
            _demand_same(effect, arguments)
        if any(_is_open(effect) and not effect.replayable for effect in known):
            raise NeedsDecisionError(
                f"nobody knows whether the effect {told([key])} happened, and it cannot be done again",
                remedy="look in the system it acts on, and say what you found with --resolve",
            )
        confirmed = [effect for effect in known if effect.status == "confirmed"]
        if confirmed:
            result = usable(confirmed[-1].result, f"the recorded result of the effect {told([key])}")
            telemetry.duplicate_prevented()
            return Answer(False, result, self.decisions.get(name_of(key)))
        for effect in () if in_hand else known:
            usable(effect.arguments, f"an argument of the effect {told([key])}")
        return Answer(True)


def _demand_same(effect: Effect, arguments: JsonValue) -> None:
    if jsonio.canonical(effect.arguments) == jsonio.canonical(arguments):
        return
    usable(effect.arguments, f"an argument of the effect {told([effect.key])}")
    raise RefusedError(
        f"the effect {told([effect.key])} was recorded with other arguments than it is to be done with now",
        remedy="a key stands for one effect: give another effect another key",
    )
