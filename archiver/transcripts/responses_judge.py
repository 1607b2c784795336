"""What is wrong with a list of Responses items: pairing by `call_id`, reasoning and what follows it, texts.

A result may stand anywhere behind its call. Pairing starts anew at a compaction: what precedes one the model
never sees again, so a call that stayed open there is no problem.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import Any

from archiver.transcripts.checks import sound
from archiver.transcripts.dialect import Problem
from archiver.transcripts.responses_items import (
    ANSWERS,
    HOSTED,
    REASONING,
    RESULTS,
    SEALED,
    call_id,
    kind_of,
    result_id,
)
from archiver.transcripts.responses_sealed import is_broken

_FOLLOWERS = ANSWERS.keys() | HOSTED | {"item_reference"}
"""Beside messages of the model, what can follow reasoning."""
_PICTURE = "computer_call"
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_Pair = tuple[str, str]
"""The kind of a result and its call id: a result of another kind answers nothing."""


class ItemsJudge:
    """Takes in items in order; memory grows with the number of calls since the last compaction."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._called: dict[_Pair, int] = {}
        self._open: dict[str, int] = {}
        self._answered: set[str] = set()
        self._early: dict[_Pair, list[int]] = {}
        self._reasoning: list[int] = []
        self._hanging: dict[_Pair, list[int]] = {}
        """Reasoning ahead of a result without a call: the call was what followed it, or comes later."""
        self._foreign: list[int] = []
        self._broken = array("Q")
        self._calls_elsewhere = self._results_elsewhere = False
        self.waiting: set[str] = set()
        """Ids of calls for which a person was asked: one that is still open waits, and is no problem."""
        self.takes_readable = True
        """False once it is known that the provider refuses reasoning that can be read."""

    def start(self, *, calls_elsewhere: bool, results_elsewhere: bool) -> None:
        """Another list begins; its results may have their calls in what is not here, or its calls theirs."""
        self._end()
        self.boundary()
        self._calls_elsewhere = calls_elsewhere
        self._results_elsewhere = results_elsewhere

    def see(self, index: int, item: Any, *, whole: bool = True) -> None:
        """Take in the next item, which stands in the transcript's item `index`, and is the `whole` of it."""
        kind = kind_of(item)
        if whole:
            self._follow(index, item, kind)
        if kind in SEALED and is_broken(item.get("encrypted_content")):
            self._broken.append(index)
        if kind in ANSWERS:
            self._call(index, item, kind)
        elif kind in RESULTS:
            self._result(index, item, kind)

    def texts(self, index: int, item: Any) -> None:
        """Look for texts in the transcript's item that have no form in UTF-8."""
        try:
            if not sound(item):
                self._problem("bad_text", index, None, "a text holds a lone surrogate")
        except RecursionError:
            self._problem("bad_text", index, None, "the item is nested too deeply")

    def boundary(self) -> None:
        """What the model sees starts anew here."""
        self._orphans()
        self._called.clear()
        self._open.clear()
        self._answered.clear()
        self._reasoning.clear()
        self._hanging.clear()
        self._foreign.clear()
        del self._broken[:]

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by item, once all was seen."""
        self._end()
        return sorted(self._found, key=lambda problem: problem.item)

    def _follow(self, index: int, item: Any, kind: str) -> None:
        """Reasoning waits for what follows it; that comes from the model, never from others."""
        if kind == REASONING:
            self._reasoning.append(index)
            if not self.takes_readable and item.get("content"):
                self._foreign.append(index)
        elif kind in _FOLLOWERS or (kind == "message" and item.get("role") == "assistant"):
            self._reasoning.clear()
        elif kind == "message":
            self._alone()
        elif kind in RESULTS and (pair := (kind, result_id(item, kind))) not in self._called:
            self._hanging.setdefault(pair, []).extend(self._reasoning)
            self._reasoning.clear()
        if kind == "message":
            self.waiting.clear()

    def _call(self, index: int, item: Mapping[str, Any], kind: str) -> None:
        called = call_id(item, kind)
        if item.get("execution") == "server" or not called:
            return
        self._name(index, item, called)
        pairs = [(answer, called) for answer in _answers(kind)]
        if any(pair in self._called for pair in pairs):
            self._problem("duplicate_call", index, called, "a second call with this id")
            return
        self._called.update(dict.fromkeys(pairs, index))
        for pair in pairs:
            self._hanging.pop(pair, None)
        early = [place for pair in pairs for place in self._early.pop(pair, ())]
        for place in early[:1]:
            detail = "the result stands ahead of its call"
            self._found.append(Problem("misplaced_result", place, detail, called, home=index))
            self._answered.add(called)
        for place in early[1:]:
            self._problem("duplicate_result", place, called, "the call has another result")
        if not early:
            self._open[called] = index

    def _name(self, index: int, item: Mapping[str, Any], called: str) -> None:
        name = item.get("name")
        if not isinstance(name, str) or _TOOL_NAME.fullmatch(name):
            return
        mendable = _TOOL_NAME.fullmatch(name.replace("\0", "")) is not None
        detail = "the name of the tool holds NUL" if mendable else "the tool has a name the provider refuses"
        self._problem("bad_text", index, None if mendable else called, detail)

    def _result(self, index: int, item: Mapping[str, Any], kind: str) -> None:
        answered = result_id(item, kind)
        if not answered and kind == ANSWERS["tool_search_call"]:
            return  # the provider searched its own tools
        if (kind, answered) not in self._called:
            self._early.setdefault((kind, answered), []).append(index)
        elif answered in self._answered:
            self._problem("duplicate_result", index, answered, "the call was answered before")
        else:
            self._answered.add(answered)
            self._open.pop(answered, None)

    def _end(self) -> None:
        """The list ends: what it still waits for does not come."""
        self._reasoning += [index for places in self._hanging.values() for index in places]
        self._alone()
        self._orphans()
        for called, index in () if self._results_elsewhere else self._open.items():
            if called not in self.waiting:
                picture = (ANSWERS[_PICTURE], called) in self._called
                code = "unanswerable_call" if picture else "unanswered_call"
                self._problem(code, index, called, "no result came for this call")
        for index in dict.fromkeys(self._foreign):
            self._problem(
                "foreign_reasoning", index, None, "readable reasoning, which OpenAI does not take back"
            )
        if self._broken:
            detail = f"what the provider encrypted is destroyed in {len(self._broken)} items"
            self._problem("broken_seal", self._broken[0], None, detail)

    def _alone(self) -> None:
        for index in () if self._results_elsewhere else self._reasoning:
            self._problem("lone_reasoning", index, None, "nothing of the model follows the reasoning")
        self._reasoning = []

    def _orphans(self) -> None:
        for (_, answered), places in () if self._calls_elsewhere else self._early.items():
            for index in places:
                self._problem("orphan_result", index, answered, "no call has this id")
        self._early.clear()

    def _problem(self, code: Any, item: int, called: str | None, detail: str) -> None:
        self._found.append(Problem(code, item, detail, called))


def _answers(kind: str) -> tuple[str, ...]:
    """The kinds of result that a kind of call takes: Codex answers a local shell as a function."""
    own = ANSWERS[kind]
    return (own, ANSWERS["function_call"]) if kind == "local_shell_call" else (own,)
