"""How a run of an agent ended, and in what two endings differ; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from archiver import jsonio
from archiver.safetext import shorten
from archiver.testing.place import Action

Same = Callable[[Any, Any], bool]
"""Whether two outcomes are the same: that of the uninterrupted run, and another."""
_MAX_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Ending:
    """What is left once an agent has ended."""

    outcome: Any
    actions: tuple[Action, ...]
    runs: Mapping[str, str] = field(default_factory=dict)
    """How each run in the store ended."""
    wrong: tuple[str, ...] = ()
    """What is wrong in the store, whatever other endings are."""


def ending(outcome: Any, actions: Iterable[Action], found: Mapping[str, Any]) -> Ending:
    """`found` is what `standing.look` says."""
    runs: Mapping[str, Mapping[str, Any]] = found["runs"]
    open_ = [
        f"run {run} ended, and nobody knows whether these effects happened: {', '.join(one['undecided'])}"
        for run, one in runs.items()
        if one["undecided"]
    ]
    return Ending(
        outcome,
        tuple(actions),
        {run: one["ended"] for run, one in runs.items()},
        (*found["wrong"], *open_),
    )


def differences(expected: Ending, found: Ending, same: Same | None = None) -> Iterator[str]:
    """In what `found` is not as `expected`, a sentence each; actions in any order."""
    alike = _equal(expected.outcome, found.outcome) if same is None else same(expected.outcome, found.outcome)
    if not alike:
        yield f"the outcome is {_shown(found.outcome)}, uninterrupted it is {_shown(expected.outcome)}"
    yield from _actions(expected.actions, found.actions)
    for run in sorted({*expected.runs, *found.runs}):
        before, now = expected.runs.get(run, "not there"), found.runs.get(run, "not there")
        if before != now:
            yield f"run {run} is {now} in the store, uninterrupted it is {before}"
    yield from (f"in the store: {text}" for text in found.wrong)


def repeated(expected: Ending, found: Ending) -> int:
    """How many replayable actions were done again."""
    usual = Counter(action.key for action in expected.actions if action.replayable)
    done = Counter(action.key for action in found.actions if action.replayable)
    return (done - usual).total()


def _actions(expected: Iterable[Action], found: Iterable[Action]) -> Iterator[str]:
    wanted, done = Counter(map(_line, expected)), Counter(map(_line, found))
    for line in {**wanted, **done}:
        (key, value, replayable), more = line, done[line] - wanted[line]
        what = f"the action {shorten(key, 80)} with {shorten(value, 80)}"
        if not wanted[line]:
            yield f"{what} was done, which it is not uninterrupted"
        elif more < 0:
            yield f"{what} was lost: done {done[line]} times, uninterrupted {wanted[line]}"
        elif more > 0 and not replayable:
            yield f"{what} was done {done[line]} times, uninterrupted {wanted[line]}"


def _line(action: Action) -> tuple[str, str, bool]:
    return action.key, jsonio.canonical(action.value).decode(), action.replayable


def _equal(one: Any, other: Any) -> bool:
    return jsonio.canonical(one) == jsonio.canonical(other)


def _shown(value: Any) -> str:
    return shorten(jsonio.dumps(value).decode(), _MAX_SHOWN)
