"""What is wrong with a list of Responses items: pairing by `call_id`, reasoning and what follows it, copies.

A result may stand anywhere behind its call. Pairing starts anew at a compaction: what precedes one the model
never sees again, so a call that stayed open there is no problem. A synthetic result only stands in: a real
one that comes before the id is used again takes its place.

Of the ways to be invalid some cannot occur here: the API takes any order of roles and items have no links and
no version. That reasoning was changed nobody can see who cannot open it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from archiver import jsonio
from archiver.transcripts.dialect import Path, Problem
from archiver.transcripts.openai_limits import Pictures
from archiver.transcripts.outcome import is_synthetic
from archiver.transcripts.pairing import DOUBLED
from archiver.transcripts.responses_bonds import Bonds
from archiver.transcripts.responses_checks import item_problems, text_problems
from archiver.transcripts.responses_edits import blobs
from archiver.transcripts.responses_items import (
    ANSWERS,
    HOSTED,
    REASONING,
    RESULTS,
    TEXTUAL,
    call_id,
    kind_of,
    result_id,
    text_of,
)

_FOLLOWERS = ANSWERS.keys() | HOSTED | {"item_reference"}
"""Beside messages of the model, what can follow reasoning."""
_PICTURE = ANSWERS["computer_call"]
_Pair = tuple[str, str]
"""The kind of a result and its call id: a result of another kind answers nothing."""


class _Given(NamedTuple):
    """A result by the transcript's item, and which of that item's results with its id it is."""

    item: int
    occurrence: int
    synthetic: bool = False


_EARLY: Final = "the result stands ahead of its call"
_ANOTHER: Final = "the call has another result"
_OTHER_KIND: Final = "the result is of another kind than its call takes"


@dataclass(slots=True)
class _Call:
    """One call, which results it takes, and the one that it got."""

    index: int
    occurrence: int
    kinds: tuple[str, ...]
    said: int
    """A digest of the whole item."""
    own: bool
    """True where it has an id of its own beside that of the call."""
    overlaps: bool
    """True where an earlier call with this id was open yet."""
    given: _Given | None = None
    stand_in: _Given | None = None
    """A synthetic result, while no real one came."""
    early: bool = False
    """True where that stands ahead of the call."""


class ItemsJudge:
    """Takes in items in order; memory grows with the number of items since the last compaction."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._calls: dict[str, list[_Call]] = {}
        self._early: dict[_Pair, list[_Given]] = {}
        self._reasoning: list[tuple[int, Any]] = []
        self._hanging: dict[_Pair, list[tuple[int, Any]]] = {}
        """Reasoning ahead of a result without a call: the call was what followed it, or comes later."""
        self._foreign: list[int] = []
        self._ids: dict[str, int] = {}
        """Digests of items of the model by their own ids."""
        self._here: Counter[_Pair] = Counter()
        """How often a kind of item with a call id was seen in the transcript's item of now."""
        self._index = -1
        self._sealed: list[Problem] = []
        self._bonds = Bonds()
        self._pictures = Pictures()
        self._calls_elsewhere = self._results_elsewhere = False
        self.waiting: set[str] = set()
        """Ids of calls for which a person was asked: one that is still open waits, and is no problem."""
        self.takes_readable = True
        """False once it is known that the provider refuses reasoning that can be read."""
        self.knows_by_id = False
        """True where the provider has kept reasoning itself and finds what followed it by its id."""

    def start(self, *, calls_elsewhere: bool, results_elsewhere: bool) -> None:
        """Another list begins; its results may have their calls in what is not here, or its calls theirs."""
        self._end()
        self.boundary(sent=False)
        self._calls_elsewhere = calls_elsewhere
        self._results_elsewhere = results_elsewhere

    def see(self, index: int, item: Any, *, place: Path = (), whole: bool = True) -> None:
        """Take in the next item, at `place` of the transcript's item `index`; it may be the `whole` of it."""
        kind = kind_of(item)
        if index != self._index:
            self._here.clear()
            self._index = index
        for problem in item_problems(index, item):
            (self._sealed if problem.code == "broken_seal" else self._found).append(problem)
        self._bonds.see(index, item, kind)
        if whole:
            self._follow(index, item, kind)
            self._twice(index, item, kind)
        for blob in blobs(item):
            self._pictures.see(index, (*place, *blob.path), len(blob.data))
        if kind in ANSWERS:
            self._call(index, item, kind)
        elif kind in RESULTS:
            self._result(index, item, kind)

    def texts(self, index: int, item: Any) -> None:
        """Look for texts in the transcript's item that have no form in UTF-8."""
        self._found += text_problems(index, item)

    def boundary(self, *, sent: bool) -> None:
        """What the model sees starts anew here; what precedes it may be `sent` again nevertheless."""
        self._orphans()
        if sent:
            self._doubles()
        self._calls.clear()
        self._ids.clear()
        self._reasoning.clear()
        self._hanging.clear()
        self._foreign.clear()
        self._sealed.clear()
        self._bonds = Bonds()
        self._pictures.forget()

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by item, once all was seen."""
        self._end()
        return sorted(self._found, key=lambda problem: problem.item)

    def _follow(self, index: int, item: Any, kind: str) -> None:
        """Reasoning waits for what follows it; that comes from the model, never from others."""
        if kind == REASONING:
            self._reasoning.append((index, item))
            if not self.takes_readable and item.get("content"):
                self._foreign.append(index)
        elif kind in _FOLLOWERS or (kind == "message" and item.get("role") == "assistant"):
            if self.knows_by_id and not item.get("id"):
                self._reasoning = [one for one in self._reasoning if _is_kept_there(one[1])]
                self._alone()
            self._reasoning.clear()
        elif kind == "message":
            self._alone()
        elif kind in RESULTS and not self._takes(pair := (kind, result_id(item, kind))):
            self._hanging.setdefault(pair, []).extend(self._reasoning)
            self._reasoning.clear()
        if kind == "message":
            self.waiting.clear()

    def _takes(self, pair: _Pair) -> bool:
        return any(pair[0] in call.kinds for call in self._calls.get(pair[1], ()))

    def _twice(self, index: int, item: Any, kind: str) -> None:
        """Two items of the model with one id: the API refuses the second, whatever it says."""
        own = item.get("id") if kind == REASONING or kind == "message" or kind in HOSTED else None
        if not isinstance(own, str) or not own:
            return
        if own in self._ids:
            again = self._ids[own] == _digest(item)
            detail = "the same item, written twice" if again else "a second item with this id"
            self._found.append(Problem("duplicate_id", index, detail, ref=own, again=again))
        else:
            self._ids[own] = _digest(item)

    def _call(self, index: int, item: Mapping[str, Any], kind: str) -> None:
        called = call_id(item, kind)
        if item.get("execution") == "server" or not called:
            return
        calls = self._calls.setdefault(called, [])
        self._settle(called, calls)
        overlaps = any(call.given is None for call in calls)
        own = isinstance(item.get("id"), str)
        call = _Call(index, self._count("", called), _answers(kind), _digest(item), own, overlaps)
        calls.append(call)
        for pair in ((answer, called) for answer in call.kinds):
            self._hanging.pop(pair, None)
            if call.given is None and self._early.get(pair):
                self._early[pair].sort(key=lambda one: one.synthetic)  # stable: the first real one, if any is
                early = self._early[pair].pop(0)
                if early.synthetic:
                    call.stand_in, call.early = early, True
                else:
                    call.given = early
                    self._misplaced(early, called, _EARLY, index)

    def _result(self, index: int, item: Mapping[str, Any], kind: str) -> None:
        answered = result_id(item, kind)
        if not answered and kind == ANSWERS["tool_search_call"]:
            return  # the provider searched its own tools
        synthetic = is_synthetic(text_of(item.get("output")))
        given = _Given(index, self._count("result", answered), synthetic)
        takers = [call for call in self._calls.get(answered, ()) if kind in call.kinds]
        waiting = next((call for call in takers if call.given is None), None)
        if waiting is not None and not (synthetic and waiting.stand_in is not None):
            self._give(waiting, given, answered)
        elif takers:
            self._problem("duplicate_result", index, answered, "the call was answered before", given)
        else:
            self._early.setdefault((kind, answered), []).append(given)

    def _give(self, call: _Call, given: _Given, called: str) -> None:
        """Take a result; one that stands in only until a real one comes."""
        if given.synthetic and len(self._calls[called]) == 1:
            call.stand_in = given
            return
        call.given = given
        if call.stand_in is not None:
            detail = "a synthetic result, and the call has a real one"
            self._problem("duplicate_result", call.stand_in.item, called, detail, call.stand_in)
            call.stand_in = None

    def _settle(self, called: str, calls: list[_Call]) -> None:
        """No real result came for these: what stands in is the answer."""
        for call in calls:
            if call.stand_in is not None:
                call.given, call.stand_in = call.stand_in, None
                if call.early:
                    self._misplaced(call.given, called, _EARLY, call.index)

    def _count(self, what: str, own: str) -> int:
        self._here[what, own] += 1
        return self._here[what, own] - 1

    def _end(self) -> None:
        """The list ends: what it still waits for does not come."""
        self._reasoning += [one for places in self._hanging.values() for one in places]
        self._alone()
        self._orphans(mending=True)
        self._doubles()
        for called, calls in () if self._results_elsewhere else self._calls.items():
            self._unanswered(called, calls)
        for index in dict.fromkeys(self._foreign):
            detail = "readable reasoning, which OpenAI does not take back"
            self._problem("foreign_reasoning", index, None, detail)
        self._found += self._bonds.judged(self._sealed)
        self._found += self._pictures.over()

    def _unanswered(self, called: str, calls: list[_Call]) -> None:
        if called in self.waiting or (len(calls) > 1 and any(call.given for call in calls)):
            return  # of calls that share an id it is told which of them that is once they share it no more
        for call in calls:
            if call.given is None:
                code = "unanswerable_call" if _PICTURE in call.kinds else "unanswered_call"
                self._problem(code, call.index, called, "no result came for this call")

    def _doubles(self) -> None:
        """Tell of calls that share an id; results come in their order, or nobody knows whose they are."""
        for called, calls in self._calls.items():
            self._settle(called, calls)
            answered = sum(call.given is not None for call in calls)
            for number, call in enumerate(calls[1:], 1):
                said = any(call.said == one.said for one in calls[:number])
                again = said and (call.own or call.given is None)
                if again and call.given is not None:
                    detail = "the result of a call that was written twice"
                    self._problem("duplicate_result", call.given.item, called, detail, call.given)
                unclear = call.overlaps and 0 < answered < len(calls) and not again
                self._found.append(
                    Problem(
                        "duplicate_call",
                        call.index,
                        "the same call, written twice" if again else "a second call with this id",
                        called,
                        beyond=DOUBLED if unclear else None,
                        occurrence=call.occurrence,
                        answers=() if call.given is None or again else (call.given[:2],),
                        again=again,
                    )
                )

    def _alone(self) -> None:
        for index, _ in () if self._results_elsewhere else self._reasoning:
            self._problem("lone_reasoning", index, None, "nothing of the model follows the reasoning")
        self._reasoning = []

    def _orphans(self, *, mending: bool = False) -> None:
        for (kind, answered), places in () if self._calls_elsewhere else self._early.items():
            calls = self._calls.get(answered, ())
            for given in places:
                waiting = next((call for call in calls if call.given is None), None)
                if any(kind in call.kinds for call in calls):
                    self._problem("duplicate_result", given.item, answered, _ANOTHER, given)
                elif waiting is not None and mending and kind in TEXTUAL and waiting.kinds[0] in TEXTUAL:
                    self._give(waiting, given, answered)
                    self._misplaced(given, answered, _OTHER_KIND, waiting.index)
                elif calls and waiting is None:
                    self._problem("duplicate_result", given.item, answered, _ANOTHER, given)
                else:
                    self._problem("orphan_result", given.item, answered, "no call has this id", given)
        self._early.clear()

    def _misplaced(self, given: _Given, called: str, detail: str, home: int) -> None:
        problem = Problem("misplaced_result", given.item, detail, called, home=home)
        self._found.append(replace(problem, occurrence=given.occurrence))

    def _problem(
        self, code: Any, item: int, called: str | None, detail: str, given: _Given | None = None
    ) -> None:
        occurrence = 0 if given is None else given.occurrence
        self._found.append(Problem(code, item, detail, called, occurrence=occurrence))


def _digest(item: Any) -> int:
    """What tells an item from others, without holding it."""
    try:
        return hash(jsonio.again(item))
    except RecursionError:
        return id(item)


def _is_kept_there(reasoning: Mapping[str, Any]) -> bool:
    """True for reasoning of which only the id is here."""
    held = reasoning.get("encrypted_content") or reasoning.get("content")
    return isinstance(reasoning.get("id"), str) and not held


def _answers(kind: str) -> tuple[str, ...]:
    """The kinds of result that a kind of call takes: Codex answers a local shell as a function."""
    own = ANSWERS[kind]
    return (own, ANSWERS["function_call"]) if kind == "local_shell_call" else (own,)
