"""What a repair says of each problem: what was done about it, or why it was left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from archiver.transcripts.dialect import SYNTHETIC, Problem

INTERRUPTED: Final = (
    f"{SYNTHETIC}the run was interrupted before a result of this call was recorded, so its outcome is "
    "unknown. Find out what it did before you repeat it.]"
)
"""What an agent reads in place of the result that nobody recorded."""

LOST_BEGINNING: Final = "[synthetic message: the beginning of this conversation was not recorded.]"

_ACTIONS: Final = {
    "unanswered_call": ("answered", "an error result was added: the outcome of the call is unknown"),
    "orphan_result": ("dropped", "the result of a call that is not in the transcript"),
    "duplicate_result": ("dropped", "a second result of one call"),
    "misplaced_result": ("moved", "the result now stands behind its call"),
    "empty_text": ("dropped", "a text without content"),
    "bad_text": ("mended", "lone surrogates became U+FFFD, and NULs in a tool's name went"),
    "bad_name": ("renamed", "the tool has a name that the provider takes"),
    "bad_role": ("mended", "the message got a role that the provider knows, or went"),
    "dangling_parent": ("relinked", "the line now follows the one before it"),
    "parent_cycle": ("relinked", "the line led back to itself, and now follows the one before it"),
    "duplicate_call": ("renamed", "the second call and its result got an id of their own"),
    "duplicate_id": ("renamed", "the second line got an id of its own"),
    "bound_id": ("dropped", "the id, by which the provider would ask for the reasoning that went"),
    "bad_order": ("added", "a message that speaks for the lost beginning"),
    "lone_reasoning": ("dropped", "reasoning without what followed it, which the provider refuses"),
    "foreign_reasoning": ("dropped", "reasoning of another provider, which this one refuses"),
    "changed_reasoning": ("dropped", "reasoning that is not as the provider gave it, which it refuses"),
    "broken_seal": ("dropped", "reasoning whose seal is broken, which the provider refuses"),
    "too_large": ("replaced", "a text says what was here, which the provider refuses"),
    "broken_line": ("dropped", "what cannot be read"),
}

_WRITTEN_TWICE: Final = ("dropped", "the same, written twice")

_BEYOND_REPAIR: Final = {
    "broken_seal": "nobody but the provider could write it again",
    "unanswerable_call": "nothing can stand in for its result",
    "unsupported_version": "a newer release wrote it",
}
DOUBLED: Final = "two calls share one id, and nothing says which the results belong to"
PENDING: Final = "the call waits for a person's approval"


@dataclass(frozen=True, slots=True)
class Action:
    """One problem and what became of it; `item` is the 0-based index before all mending."""

    part: str
    item: int
    code: str
    action: str
    detail: str
    call_id: str | None = None


def done(part: str, problem: Problem, item: int) -> Action:
    """The problem was mended."""
    action, detail = _WRITTEN_TWICE if problem.again else _ACTIONS[problem.code]
    return Action(part, item, problem.code, action, _named(detail, problem), problem.call_id)


def left(part: str, problem: Problem, reason: str, item: int) -> Action:
    """The problem is still there."""
    detail = _named(f"{problem.detail}; {reason}", problem)
    return Action(part, item, problem.code, "left", detail, problem.call_id)


def reason_to_leave(
    problem: Problem, pending: Collection[str], doubled: Collection[str | None]
) -> str | None:
    """Why this problem is left, or None; `doubled` are ids of calls that nobody can tell apart."""
    if problem.code == "unanswered_call" and problem.call_id in pending:
        return PENDING
    if problem.code in ("misplaced_result", "duplicate_result") and problem.call_id in doubled:
        return DOUBLED
    if problem.code == "broken_seal" and problem.loose:
        return None
    return problem.beyond or _BEYOND_REPAIR.get(problem.code)


def _named(detail: str, problem: Problem) -> str:
    named = repr(problem.name) if problem.name is not None else problem.call_id
    return f"{detail} ({named})" if named else detail
