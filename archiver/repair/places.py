"""Where missing and late results belong: one pass over the items, led by what the dialect found wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from archiver.transcripts.conversations import Conversations
from archiver.transcripts.dialect import Call, Dialect, Facts, Problem, ToolResult


@dataclass(slots=True)
class Place:
    """The end of one response and its results: `after` is its last item, `target` the next user message.

    Items that are linked by ids get an item of their own behind `after`; others are added to `target`.
    """

    after: int
    linked: bool
    target: int | None = None
    unanswered: list[Call] = field(default_factory=list)
    moved: list[tuple[Call, Any, bool]] = field(default_factory=list)
    """Late results: their calls, what they hold, and whether it is an error."""
    message: str | None = None
    answering: bool = False

    @property
    def own_item(self) -> bool:
        """True when the results need a new item."""
        return self.linked or self.target is None


@dataclass(slots=True)
class Plan:
    """What to do at which item, by its index."""

    drop: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Results to drop, as the number of times for each call id: the last ones in the item go."""
    behind: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))
    """Places whose results get a new item behind this one."""
    into: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))
    """Places whose results are added to this one."""
    sound: set[int] = field(default_factory=set)
    dangling: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Ids that an item links to and that no item has."""
    gone: dict[str, str | None] = field(default_factory=dict)
    """Ids of items of which nothing is left, with the ids of their parents."""
    note: set[int] = field(default_factory=set)
    """Items before which the lost beginning has to be spoken for."""

    def dropped(self, index: int, item: Any, dialect: Dialect) -> Any | None:
        """The item without the results that have to go; None when nothing is left of it."""
        for call_id, times in self.drop.get(index, {}).items():
            held = sum(result.call_id == call_id for result in dialect.facts(item).results)
            for occurrence in range(held - 1, held - 1 - times, -1):
                item = dialect.without_result(item, call_id, occurrence)
                if item is None:
                    return None
        return item


def plan(items: Iterable[Any], dialect: Dialect, problems: Sequence[Problem]) -> Plan:
    """Decide where each of the `problems` is mended; reads every item once."""
    made = Plan()
    unanswered: set[tuple[int, str]] = set()
    late: set[str] = set()
    for problem in problems:
        _take(problem, made, unanswered, late)
    if unanswered or made.drop:
        for place in _Finder(made, dialect, unanswered, late).places(items):
            if place.own_item:
                made.behind[place.after].append(place)
            elif place.target is not None:
                made.into[place.target].append(place)
    return made


def _take(problem: Problem, made: Plan, unanswered: set[tuple[int, str]], late: set[str]) -> None:
    call_id = problem.call_id or ""
    if problem.code == "unanswered_call":
        unanswered.add((problem.item, call_id))
    elif problem.code in ("orphan_result", "duplicate_result", "misplaced_result"):
        made.drop[problem.item][call_id] += 1
        if problem.code == "misplaced_result":
            late.add(call_id)
    elif problem.code in ("empty_text", "bad_text"):
        made.sound.add(problem.item)
    elif problem.code == "dangling_parent" and problem.ref is not None:
        made.dangling[problem.item].append(problem.ref)
    elif problem.code == "bad_order":
        made.note.add(problem.item)


class _Finder:
    """Follows the responses of each conversation as the dialect's judge does."""

    def __init__(
        self, made: Plan, dialect: Dialect, unanswered: set[tuple[int, str]], late: set[str]
    ) -> None:
        self._plan = made
        self._dialect = dialect
        self._unanswered = unanswered
        self._late = late
        self._now: dict[str | None, Place] = {}
        self._wanted: list[Place] = []
        self._called: dict[str, tuple[Call, Place]] = {}
        self._homes: set[str] = set()
        self._conversations = Conversations()

    def places(self, items: Iterable[Any]) -> Iterator[Place]:
        """The places that calls without a result, or with a late one, belong to."""
        for index, item in enumerate(items):
            facts = self._dialect.facts(item)
            own, parent = self._dialect.link(item)
            conversation = self._conversations.of(facts, own, parent)
            if facts.role == "assistant":
                self._response(index, facts, conversation, linked=own is not None)
            elif facts.role in ("user", "tool"):
                self._answer(index, item, facts, conversation)
        seen: set[int] = set()
        for place in self._wanted:
            if id(place) not in seen and (place.unanswered or place.moved):
                seen.add(id(place))
                yield place

    def _response(self, index: int, facts: Facts, conversation: str | None, *, linked: bool) -> None:
        place = self._now.get(conversation)
        goes_on = place is not None and (
            not place.answering or (facts.message is not None and facts.message == place.message)
        )
        if place is None or not goes_on:
            place = self._now[conversation] = Place(index, linked)
        place.after, place.target = index, None
        place.message = facts.message
        place.answering = False
        for call in facts.calls:
            if (index, call.id) in self._unanswered:
                place.unanswered.append(call)
                self._wanted.append(place)
            elif call.id in self._late and call.id not in self._homes:
                # The first call counts: the same line may stand in the file again.
                self._homes.add(call.id)
                self._called[call.id] = (call, place)
                self._wanted.append(place)

    def _answer(self, index: int, item: Any, facts: Facts, conversation: str | None) -> None:
        kept = self._kept(index, item)
        place = self._now.get(conversation)
        if place is not None:
            place.answering = True
            if kept and place.target is None:
                place.target = index
            if facts.results:
                place.after = index
        for result in facts.results if index in self._plan.drop else ():
            if result.call_id in self._called and self._is_late(index, result):
                call, home = self._called.pop(result.call_id)
                content = self._dialect.result_content(item, result.call_id)
                home.moved.append((call, content, result.is_error))

    def _kept(self, index: int, item: Any) -> bool:
        if index not in self._plan.drop or self._plan.dropped(index, item, self._dialect) is not None:
            return True
        own, parent = self._dialect.link(item)
        if own is not None:
            self._plan.gone[own] = parent
        return False

    def _is_late(self, index: int, result: ToolResult) -> bool:
        return self._plan.drop[index][result.call_id] > 0
