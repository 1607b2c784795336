"""The parts of the state compared: plan, effects, evidence, results, spend, artifacts, environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from archiver import jsonio
from archiver.model import (
    Approval,
    Artifact,
    Checkpoint,
    Effect,
    Evidence,
    Frozen,
    Plan,
    Spend,
    Step,
    SubtaskResult,
)
from archiver.model.difference import (
    ArtifactChanges,
    Change,
    EffectChange,
    EffectChanges,
    EffectSeen,
    EvidenceChanges,
    PlanChanges,
    ResultChange,
    ResultChanges,
    SpendChange,
)

FIELDS: Final = (
    "task_id", "user_id", "objective", "iteration", "turn", "phase", "outcome", "note", "created_at",
    "budget", "summary",
)  # fmt: skip
"""Fields of a checkpoint that are compared as they are."""
_TOLD_ELSEWHERE: Final = ("age", "approvals", "budget")
"""Probes that hold nothing of the world: the time of a checkpoint, its questions, its budget and spend."""
DIALECT: Final = "transcript.dialect"

T = TypeVar("T", bound=Frozen)
_Key = tuple[Hashable, int]
"""An id, and which of several with the same id it is."""


def fields(before: Checkpoint, after: Checkpoint) -> tuple[Change, ...]:
    """The plain fields that have another value."""
    only = set(FIELDS)
    old, new = before.document(include=only), after.document(include=only)
    old[DIALECT], new[DIALECT] = before.transcript.dialect, after.transcript.dialect
    return tuple(changes(old, new, (*FIELDS, DIALECT)))


def changes(old: dict[str, Any], new: dict[str, Any], names: Iterable[str]) -> Iterator[Change]:
    """Values that are not the same, by name."""
    for name in names:
        if not same(old.get(name), new.get(name)):
            yield Change(name=name, before=old.get(name), after=new.get(name))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1, 1.0 and true are three."""
    return jsonio.canonical(one) == jsonio.canonical(other)


def plan(before: Plan, after: Plan) -> PlanChanges:
    """Steps by id."""
    old_done, old_left = _by(before.completed, _id), _by(before.remaining, _id)
    new_done, new_left = _by(after.completed, _id), _by(after.remaining, _id)
    old, new = {**old_left, **old_done}, {**new_left, **new_done}
    asked_old, asked_new = _by(before.pending_approvals, _id), _by(after.pending_approvals, _id)
    return PlanChanges(
        completed=tuple(step for key, step in new_done.items() if key not in old_done),
        reopened=tuple(step for key, step in new_left.items() if key in old_done and key not in new_done),
        added=tuple(step for key, step in new_left.items() if key not in old),
        removed=tuple(step for key, step in old.items() if key not in new),
        reworded=(*_reworded(old, new), *_reworded(asked_old, asked_new)),
        reordered=_reordered(old_done, new_done)
        or _reordered(old_left, new_left)
        or _reordered(asked_old, asked_new),
        asked=tuple(one for key, one in asked_new.items() if key not in asked_old),
        answered=tuple(one for key, one in asked_old.items() if key not in asked_new),
    )


def effects(before: Sequence[Effect], after: Sequence[Effect]) -> EffectChanges:
    """Effects by key, without what they were given and what came of them."""
    old, new = _by(before, _key), _by(after, _key)
    changed = []
    for key, effect in new.items():
        if key in old and effect != old[key]:
            fields = tuple(name for name in _changed(old[key], effect) if name != "status")
            changed.append(
                EffectChange(
                    key=effect.key,
                    tool=effect.tool,
                    before=old[key].status,
                    after=effect.status,
                    fields=fields,
                )
            )
    return EffectChanges(
        new=tuple(_seen(effect) for key, effect in new.items() if key not in old),
        changed=tuple(changed),
        gone=tuple(_seen(effect) for key, effect in old.items() if key not in new),
    )


def evidence(before: Sequence[Evidence], after: Sequence[Evidence]) -> EvidenceChanges:
    """Evidence is new or gone; there is nothing that it could be changed by."""
    old, new = _by(before, _text), _by(after, _text)
    return EvidenceChanges(
        new=tuple(one for key, one in new.items() if key not in old),
        gone=tuple(one for key, one in old.items() if key not in new),
    )


def results(before: Sequence[SubtaskResult], after: Sequence[SubtaskResult]) -> ResultChanges:
    """Results of sub-tasks by key, and the files that all of them name."""
    old, new = _by(before, _key), _by(after, _key)
    old_files = dict.fromkeys(file for one in before for file in one.files)
    new_files = dict.fromkeys(file for one in after for file in one.files)
    return ResultChanges(
        new=tuple(one.key for key, one in new.items() if key not in old),
        changed=tuple(
            ResultChange(key=one.key, fields=found)
            for key, one in new.items()
            if key in old and (found := tuple(_changed(old[key], one)))
        ),
        gone=tuple(one.key for key, one in old.items() if key not in new),
        files_new=tuple(file for file in new_files if file not in old_files),
        files_gone=tuple(file for file in old_files if file not in new_files),
    )


def spend(before: Spend, after: Spend) -> SpendChange | None:
    """How much more was used; None where nothing was."""
    if before == after:
        return None
    one_currency = before.currency == after.currency
    return SpendChange(
        tokens_in=after.tokens_in - before.tokens_in,
        tokens_out=after.tokens_out - before.tokens_out,
        tokens_cached=after.tokens_cached - before.tokens_cached,
        cost=_difference(before.cost, after.cost) if one_currency else None,
        currency=after.currency,
        currency_before=None if one_currency else before.currency,
        seconds=_difference(before.seconds, after.seconds),
        iterations=after.iterations - before.iterations,
    )


def artifacts(before: Sequence[Artifact], after: Sequence[Artifact]) -> ArtifactChanges:
    """Artifacts by digest."""
    old, new = _by(before, _digest), _by(after, _digest)
    return ArtifactChanges(
        new=tuple(one for key, one in new.items() if key not in old),
        gone=tuple(one for key, one in old.items() if key not in new),
        described=tuple(one.sha256 for key, one in new.items() if key in old and one != old[key]),
    )


def environment(before: Checkpoint, after: Checkpoint) -> tuple[Change, ...]:
    """Workspace, versions and probes, each value by the names that lead to it."""
    old, new = _environment(before), _environment(after)
    return tuple(changes(old, new, sorted({*old, *new})))


def _environment(checkpoint: Checkpoint) -> dict[str, Any]:
    found = checkpoint.environment.document()
    probes = found.pop("probes")
    workspace = checkpoint.workspace.document()
    git = workspace.pop("git") or {}
    return {
        **{f"workspace.{name}": value for name, value in workspace.items()},
        **{f"workspace.git.{name}": value for name, value in git.items()},
        **found,
        **{f"probes.{name}": value for name, value in probes.items() if name not in _TOLD_ELSEWHERE},
    }


def _by(found: Iterable[T], key: Callable[[T], Hashable]) -> dict[_Key, T]:
    """By key, and where several have the same by which of them it is."""
    seen: Counter[Hashable] = Counter()
    by: dict[_Key, T] = {}
    for one in found:
        name = key(one)
        by[name, seen[name]] = one
        seen[name] += 1
    return by


def _reordered(old: dict[_Key, T], new: dict[_Key, T]) -> bool:
    return [key for key in old if key in new] != [key for key in new if key in old]


def _reworded(old: dict[_Key, T], new: dict[_Key, T]) -> Iterator[Change]:
    for key, one in new.items():
        if key in old and one != old[key]:
            yield Change(name=str(key[0]), before=old[key].document(), after=one.document())


def _changed(old: Frozen, new: Frozen) -> Iterator[str]:
    one, other = old.document(), new.document()
    return (name for name in other if not same(one[name], other[name]))


def _difference(before: float, after: float) -> float:
    """Rounded to what is sure of it: sums of money and time are no binary fractions."""
    return round(after - before, 9)


def _seen(effect: Effect) -> EffectSeen:
    return EffectSeen(key=effect.key, tool=effect.tool, status=effect.status)


def _id(one: Step | Approval) -> str:
    return one.id


def _key(one: Effect | SubtaskResult) -> str:
    return one.key


def _digest(one: Artifact) -> str:
    return one.sha256


def _text(one: Evidence) -> bytes:
    return jsonio.canonical(one.document())
