"""Where missing and late results belong: one pass over the items, led by what the dialect found wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from archiver.repair.renaming import Taken, line_id
from archiver.transcripts.conversations import Conversations
from archiver.transcripts.dialect import Call, Dialect, Facts, Path, Problem


@dataclass(slots=True)
class Place:
    """The end of one response and its results: `after` is its last item, `target` the next user message.

    Where `apart`, results get items of their own behind `after`; else they are added to `target`.
    """

    after: int
    apart: bool
    target: int | None = None
    unanswered: list[Call] = field(default_factory=list)
    moved: list[tuple[Call, Any, bool]] = field(default_factory=list)
    """Late results: their calls, what they hold, and whether it is an error."""
    message: str | None = None
    answering: bool = False
    closed: bool = False
    """True once what follows can hold no result of this response."""

    @property
    def own_item(self) -> bool:
        """True when the results need a new item."""
        return self.apart or self.target is None


class Renamed(NamedTuple):
    """A call or result that gets a new id, and which of those with the old one it is; None: the call goes."""

    old: str
    occurrence: int
    new: str | None


@dataclass(slots=True)
class Plan:
    """What to do at which item, by its index."""

    drop: dict[int, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    """Results to drop, each by its call id and which of the item's results with that id it is."""
    behind: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))
    """Places whose results get a new item behind this one."""
    into: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))
    """Places whose results are added to this one."""
    sound: set[int] = field(default_factory=set)
    unreasoned: set[int] = field(default_factory=set)
    """Items whose reasoning goes."""
    unsealed: set[int] = field(default_factory=set)
    """Items of whose reasoning that goes of which the seal is destroyed."""
    dangling: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Ids that an item links to and that no item has."""
    gone: dict[str, str | None] = field(default_factory=dict)
    """Ids of items of which nothing is left, with the ids of their parents."""
    cycles: dict[int, str] = field(default_factory=dict)
    """Ids that an item must not link to, though others may."""
    roles: set[int] = field(default_factory=set)
    """Items in a role that nobody knows."""
    ids: dict[int, str | None] = field(default_factory=dict)
    """New ids for items; None where the item goes."""
    unbound: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Ids that an item, or what stands in it, loses."""
    calls: dict[int, list[Renamed]] = field(default_factory=lambda: defaultdict(list))
    results: dict[int, list[Renamed]] = field(default_factory=lambda: defaultdict(list))
    """Calls and results in an item that get a new id."""
    names: dict[str, str] = field(default_factory=dict)
    """New names for tools, everywhere."""
    large: dict[int, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Payloads in an item that a text has to stand for."""
    note: set[int] = field(default_factory=set)
    """Items before which the lost beginning has to be spoken for."""

    def dropped(self, index: int, item: Any, dialect: Dialect) -> Any | None:
        """The item without the results that have to go; None when nothing is left of it."""
        # From the last to the first: one that goes changes the number of those behind it.
        for call_id, occurrence in sorted(self.drop.get(index, ()), key=lambda one: -one[1]):
            item = dialect.without_result(item, call_id, occurrence)
            if item is None:
                return None
        return item


def first(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Those of the `problems` that are mended before the others, which they may have brought about."""
    for codes in _BEFORE:
        if found := [problem for problem in problems if problem.code in codes]:
            return found
    return problems


def plan(items: Iterable[Any], dialect: Dialect, problems: Sequence[Problem]) -> Plan:
    """Decide where each of the `problems` is mended; reads every item once or twice."""
    made = Plan()
    if any(problem.code in ("duplicate_call", "bad_name") for problem in problems):
        _rename(made, problems, Taken(items, dialect))
    unanswered: set[tuple[int, str]] = set()
    homes: Homes = {}
    for problem in problems:
        _take(problem, made, unanswered, homes)
    if unanswered or made.drop:
        for place in _Finder(made, dialect, unanswered, homes).places(items):
            if place.own_item:
                made.behind[place.after].append(place)
            elif place.target is not None:
                made.into[place.target].append(place)
    return made


Homes = dict[tuple[int, str, int], int]
"""For each late result, by its item, its call id and which of those there it is, the item of its call."""
_BEFORE: Final = (("bad_role", "duplicate_id"), ("duplicate_call",))
_UNREASONED: Final = ("lone_reasoning", "foreign_reasoning", "changed_reasoning", "broken_seal")


def _rename(made: Plan, problems: Sequence[Problem], taken: Taken) -> None:
    made.names = taken.names([problem for problem in problems if problem.code == "bad_name"])
    for problem in problems:
        if problem.code == "duplicate_call":
            old = problem.call_id or ""
            new = None if problem.again else taken.call_id(old)
            made.calls[problem.item].append(Renamed(old, problem.occurrence, new))
            for item, occurrence in problem.answers:
                made.results[item].append(Renamed(old, occurrence, new))


def _take(problem: Problem, made: Plan, unanswered: set[tuple[int, str]], homes: Homes) -> None:
    call_id = problem.call_id or ""
    if problem.code == "unanswered_call":
        unanswered.add((problem.item, call_id))
    elif problem.code in ("orphan_result", "duplicate_result", "misplaced_result"):
        made.drop[problem.item].add((call_id, problem.occurrence))
        if problem.home is not None:
            homes[problem.item, call_id, problem.occurrence] = problem.home
    elif problem.code in ("empty_text", "bad_text"):
        made.sound.add(problem.item)
    elif problem.code in _UNREASONED:
        (made.unsealed if problem.code == "broken_seal" else made.unreasoned).add(problem.item)
    elif problem.code in ("bad_role", "bad_order"):
        (made.roles if problem.code == "bad_role" else made.note).add(problem.item)
    elif problem.path is not None:
        made.large[problem.item].append(problem.path)
    elif problem.ref is not None:
        _take_link(problem, problem.ref, made)


def _take_link(problem: Problem, ref: str, made: Plan) -> None:
    if problem.code == "dangling_parent":
        made.dangling[problem.item].append(ref)
    elif problem.code == "parent_cycle":
        made.cycles[problem.item] = ref
    elif problem.code == "bound_id":
        made.unbound[problem.item].add(ref)
    elif problem.code == "duplicate_id":
        made.ids[problem.item] = None if problem.again else line_id(ref, problem.item)


class _Finder:
    """Follows the responses of each conversation as the dialect's judge does."""

    def __init__(
        self,
        made: Plan,
        dialect: Dialect,
        unanswered: set[tuple[int, str]],
        homes: Homes,
    ) -> None:
        self._plan = made
        self._dialect = dialect
        self._unanswered = unanswered
        self._homes = homes
        self._late = {(home, call_id) for (_, call_id, _), home in homes.items()}
        self._now: dict[str | None, Place] = {}
        self._wanted: list[Place] = []
        self._called: dict[tuple[int, str], tuple[Call, Place]] = {}
        self._early: dict[tuple[int, str], tuple[Any, bool]] = {}
        """Results that stand ahead of their calls: what they hold, and whether it is an error."""
        self._conversations = Conversations()

    def places(self, items: Iterable[Any]) -> Iterator[Place]:
        """The places that calls without a result, or with a late one, belong to."""
        for index, item in enumerate(items):
            facts = self._dialect.facts(item)
            own, parent = self._dialect.link(item)
            conversation = self._conversations.of(facts, own, parent)
            if facts.role == "assistant" or (facts.boundary and facts.calls):
                self._response(index, facts, conversation, linked=own is not None)
                if facts.results and index in self._plan.drop:
                    self._kept(index, item)
                    self._moved(index, item, facts)
            elif facts.role != "meta":
                self._answer(index, item, facts, conversation)
        seen: set[int] = set()
        for place in self._wanted:
            if id(place) not in seen and (place.unanswered or place.moved):
                seen.add(id(place))
                yield place

    def _response(self, index: int, facts: Facts, conversation: str | None, *, linked: bool) -> None:
        place = self._now.get(conversation)
        if place is None or not self._goes_on(place, facts):
            apart = linked or self._dialect.results != "together"
            place = self._now[conversation] = Place(index, apart)
        place.after, place.target = index, None
        place.message = facts.message
        place.answering = False
        for call in facts.calls:
            if (index, call.id) in self._unanswered:
                place.unanswered.append(call)
                self._wanted.append(place)
            elif (index, call.id) in self._late:
                self._called[index, call.id] = (call, place)
                self._wanted.append(place)
                if (index, call.id) in self._early:
                    self._move(index, call.id, *self._early[index, call.id])

    def _goes_on(self, place: Place, facts: Facts) -> bool:
        """True for a further piece of the response that `place` is the end of."""
        if self._dialect.results == "next":
            return False
        return not place.answering or (facts.message is not None and facts.message == place.message)

    def _answer(self, index: int, item: Any, facts: Facts, conversation: str | None) -> None:
        kept = self._kept(index, item)
        place = self._now.get(conversation)
        if place is not None and facts.role != "system":
            place.answering = True
            if kept and place.target is None:
                place.target = index
        if place is not None:
            place.closed = place.closed or (self._dialect.results == "next" and not facts.results)
            if facts.results and not place.closed:
                place.after = index
        if index in self._plan.drop:
            self._moved(index, item, facts)

    def _moved(self, index: int, item: Any, facts: Facts) -> None:
        """Take the results that stand here and belong elsewhere to their calls."""
        seen: dict[str, int] = {}
        for result in facts.results:
            call_id = result.call_id
            occurrence = seen[call_id] = seen.get(call_id, -1) + 1
            home = self._homes.get((index, call_id, occurrence))
            if home is not None:
                content = self._dialect.result_content(item, call_id, occurrence)
                self._move(home, call_id, content, result.is_error)

    def _move(self, home: int, call_id: str, content: Any, is_error: bool) -> None:
        """Take a misplaced result to the call in the item `home`, now or once that is reached."""
        if (home, call_id) in self._called:
            call, place = self._called.pop((home, call_id))
            place.moved.append((call, content, is_error))
        else:
            self._early.setdefault((home, call_id), (content, is_error))

    def _kept(self, index: int, item: Any) -> bool:
        if index not in self._plan.drop or self._plan.dropped(index, item, self._dialect) is not None:
            return True
        own, parent = self._dialect.link(item)
        if own is not None:
            self._plan.gone[own] = parent
        return False
