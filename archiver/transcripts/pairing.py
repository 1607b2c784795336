"""Which calls are answered: one judge for a conversation, fed message by message.

The rule is that of the Messages API: all calls of a response are answered together, each once, in the next
user message. Items that belong to one message (adjacent ones of the same side, or pieces with one message
id) are judged as one. An id names one call. Of two calls with one id it is known whose a result is where the
first was answered before the second was made, or where each has one: then they stand in order.

A synthetic result only stands in: the call waits on, and a real result that comes later takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from archiver.transcripts.dialect import Call, Problem, ToolResult
from archiver.transcripts.outcome import is_synthetic

DOUBLED: Final = "two calls share one id, and nothing says which the results belong to"
_PROVIDERS: Final = "the provider itself answers it, under that id"


@dataclass(slots=True)
class _Asked:
    """A call: where it stands, what it says, whose id it has, and the results that came for it."""

    item: int
    occurrence: int
    line: int
    """Its line's id as a number, 0 for none."""
    said: int
    elsewhere: bool
    first: _Asked | None = None
    """The call before it with the same id."""
    together: bool = False
    """True when that had no result yet."""
    beside: bool = False
    """True when it stands in the same response."""
    answers: tuple[tuple[int, int], ...] = ()
    more: tuple[_Asked, ...] = ()
    """Calls with its id that were made while it was open."""


class _StandIn(NamedTuple):
    """A synthetic result: where it stands, the line it is on, and whether it came too late itself."""

    item: int
    occurrence: int
    line: int
    late: bool


class Pairing:
    """Calls and results of one conversation in their order; memory grows with the number of calls only.

    `line` names the line a piece stands on, where a format has names for lines: a line that was written twice
    says what it says once.
    """

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._asked: dict[str, _Asked] = {}
        self._again: list[tuple[str, _Asked]] = []
        self._open: dict[str, int] = {}
        self._late: dict[str, int] = {}
        self._answered: dict[str, int] = {}
        """Of each answered call, the line of its first result."""
        self._excused: dict[str, int] = {}
        self._stand_ins: dict[str, _StandIn] = {}
        """Of calls that wait on, the synthetic results that were given."""
        self._early: dict[str, Problem] = {}
        """Results whose call had not come, as the problem that they are unless it does."""
        self._group: str | None = None
        self._answering = False

    def called(self, item: int, calls: Sequence[Call], group: str | None, line: str | None = None) -> None:
        """A piece of a model response; pieces of one response carry the same `group`, if they have one."""
        if self._answering and (group is None or group != self._group):
            self._late.update(self._open)
            self._open.clear()
        self._answering = False
        self._group = group
        seen: dict[str, int] = {}
        for call in calls:
            occurrence = seen[call.id] = seen.get(call.id, -1) + 1
            one = _Asked(item, occurrence, hash(line or 0), _said(call), call.answered_elsewhere)
            self._call(call.id, one, self._asked.get(call.id))

    def _call(self, call_id: str, one: _Asked, before: _Asked | None) -> None:
        if before is not None:
            self._settle(call_id)
            if any(_same_line(one, twin) for twin in (before, *before.more)):
                return
            one.first = before
            one.together = call_id not in self._answered
            one.beside = call_id in self._open
            self._again.append((call_id, one))
            if one.together or one.elsewhere:
                before.more += (one,)
                return
        self._asked[call_id] = one
        self._answered.pop(call_id, None)
        if not one.elsewhere:
            self._open[call_id] = one.item

    def answered(self, item: int, results: Sequence[ToolResult], line: str | None = None) -> None:
        """A piece of a user message, with or without results."""
        self._answering = True
        seen: dict[str, int] = {}
        for result in results:
            occurrence = seen[result.call_id] = seen.get(result.call_id, -1) + 1
            self._given(item, result, hash(line or 0), occurrence)

    def _given(self, item: int, result: ToolResult, line: int, occurrence: int) -> None:
        """A result: one that stands in is kept until the end, or until the real one comes."""
        call_id = result.call_id
        waits = call_id in self._open or call_id in self._late
        stand_in = self._stand_ins.get(call_id)
        if waits and is_synthetic(result.text):
            if stand_in is None:
                late = call_id not in self._open
                self._stand_ins[call_id] = _StandIn(item, occurrence, line, late)
            elif not line or stand_in.line != line or stand_in.item == item:
                detail = "the call was answered before"
                self._problem("duplicate_result", item, call_id, detail, occurrence)
            return
        if waits and stand_in is not None:
            del self._stand_ins[call_id]
            detail = "a synthetic result, and the real one came after it"
            self._problem("duplicate_result", stand_in.item, call_id, detail, stand_in.occurrence)
        self._result(item, call_id, line, occurrence)

    def _settle(self, call_id: str) -> None:
        """No real result came: what stands in is the answer."""
        stand_in = self._stand_ins.pop(call_id, None)
        if stand_in is not None:
            if stand_in.late:
                self._misplaced(stand_in.item, call_id, stand_in.occurrence)
            self._answer(stand_in.item, call_id, stand_in.line, stand_in.occurrence)

    def _answer(self, item: int, call_id: str, line: int, occurrence: int) -> None:
        for waiting in (self._open, self._late, self._excused):
            waiting.pop(call_id, None)
        self._answered[call_id] = line
        asked = self._asked.get(call_id)
        if asked is not None:
            asked.answers = ((item, occurrence),)

    def _misplaced(self, item: int, call_id: str, occurrence: int) -> None:
        detail, home = "the result is not in the next user message", self._late[call_id]
        problem = Problem("misplaced_result", item, detail, call_id, home=home, occurrence=occurrence)
        self._problems.append(problem)

    def _result(self, item: int, call_id: str, line: int, occurrence: int) -> None:
        asked = self._asked.get(call_id)
        if call_id in self._answered:
            first = asked.answers[0][0] if asked and asked.answers else item
            if not line or self._answered[call_id] != line or first == item:
                self._again_answered(item, call_id, occurrence, asked)
            return
        if call_id in self._late:
            self._misplaced(item, call_id, occurrence)
        elif call_id not in self._open and call_id not in self._excused:
            self._orphan(item, call_id, occurrence)
            return
        self._answer(item, call_id, line, occurrence)

    def _again_answered(self, item: int, call_id: str, occurrence: int, asked: _Asked | None) -> None:
        """A further result: of the next call with this id, or of none."""
        twin = next((one for one in asked.more if not one.answers), None) if asked else None
        if twin is None:
            self._problem("duplicate_result", item, call_id, "the call was answered before", occurrence)
        else:
            twin.answers = ((item, occurrence),)

    def strayed(self, item: int, results: Sequence[ToolResult]) -> None:
        """Results in a piece of a model response, where none belongs."""
        seen: dict[str, int] = {}
        for result in results:
            occurrence = seen[result.call_id] = seen.get(result.call_id, -1) + 1
            asked = self._asked.get(result.call_id)
            if result.call_id in self._answered:
                detail = "the call was answered before"
                self._problem("duplicate_result", item, result.call_id, detail, occurrence)
            elif asked is None or asked.elsewhere:
                self._orphan(item, result.call_id, occurrence)
            else:
                self._open.pop(result.call_id, None)
                self._late[result.call_id] = asked.item
                self._given(item, result, 0, occurrence)

    def _orphan(self, item: int, call_id: str, occurrence: int) -> None:
        """A result of no call so far; the first of its id is that of a call that comes yet, if one does."""
        self._problem("orphan_result", item, call_id, "no call has this id", occurrence)
        if call_id not in self._asked:
            self._early.setdefault(call_id, self._problems[-1])

    def _claim_early(self) -> None:
        """A result that stands ahead of a call without one is the result of that call."""
        for call_id, orphan in self._early.items():
            home = self._open.get(call_id, self._late.get(call_id))
            if home is None:
                continue
            detail = "the result stands ahead of its call"
            moved = replace(orphan, code="misplaced_result", detail=detail, home=home)
            self._problems[self._problems.index(orphan)] = moved
            self._answer(orphan.item, call_id, 0, orphan.occurrence or 0)

    def boundary(self) -> None:
        """What the model sees starts anew: calls before it are history, and those still open stay so."""
        self._excused.update(self._open)
        self._excused.update(self._late)
        self._open.clear()
        self._late.clear()
        self._stand_ins.clear()
        self._early.clear()
        self._asked.clear()
        self._again.clear()
        self._group = None
        self._answering = False

    def problems(self) -> list[Problem]:
        """What is wrong with results, once all was seen; to be asked before anything else is."""
        for call_id in list(self._stand_ins):
            self._settle(call_id)
        self._claim_early()
        return self._problems

    def unanswered(self) -> list[Problem]:
        """The calls that no result came for."""
        return [
            Problem("unanswered_call", item, "no result came for this call", call_id)
            for call_id, item in (*self._late.items(), *self._open.items())
        ]

    def doubled(self) -> list[Problem]:
        """The calls that have the id of another one, each with its own results."""
        return [_doubled(call_id, one, one.first) for call_id, one in self._again if one.first is not None]

    def _problem(self, code: Any, item: int, call_id: str, detail: str, occurrence: int) -> None:
        self._problems.append(Problem(code, item, detail, call_id, occurrence=occurrence))


def paired(pairing: Pairing) -> list[Problem]:
    """Everything that one conversation's calls and results miss."""
    return [*pairing.problems(), *pairing.doubled(), *pairing.unanswered()]


def _same_line(one: _Asked, other: _Asked) -> bool:
    """True for a call on a line that was written twice."""
    return one.line != 0 and one.line == other.line and one.item != other.item


def _doubled(call_id: str, one: _Asked, first: _Asked) -> Problem:
    again = not one.answers and one.said == first.said and (one.beside or not one.together)
    alone = not any(twin.answers for twin in (first, *first.more))
    known = again or not one.together or alone or all(twin.answers for twin in (first, *first.more))
    beyond = _PROVIDERS if one.elsewhere else None if known else DOUBLED
    return Problem(
        "duplicate_call",
        one.item,
        "the same call, written twice" if again else "a second call with this id",
        call_id,
        beyond=beyond,
        occurrence=one.occurrence,
        answers=one.answers,
        again=again and not one.elsewhere,
    )


def _said(call: Call) -> int:
    """What a call says, as a number."""
    given: Any = call.arguments
    if isinstance(given, dict):
        given = tuple((key, value if isinstance(value, str) else repr(value)) for key, value in given.items())
    try:
        return hash((call.name, given))
    except TypeError:
        return hash((call.name, repr(given)))
