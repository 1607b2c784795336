"""What is wrong with messages of Chat Completions.

Results follow directly on the message with their calls, in any order, before a message of another role. An id
counts within its message only: models use ids again, and the API takes that. A synthetic result only stands
in: a real one that comes before the id is used again takes its place.

Of the ways to be invalid some cannot occur here: the API takes any order of roles, messages have no links, no
version and no reasoning that must have a follower, and what changed in a thought only its provider could say.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from archiver.transcripts import chat_message
from archiver.transcripts.chat_checks import said_problems, seal_problems
from archiver.transcripts.dialect import Facts, Problem
from archiver.transcripts.openai_limits import Pictures
from archiver.transcripts.outcome import is_synthetic
from archiver.transcripts.pairing import DOUBLED

_ENDS: Final = frozenset({"exit", "approval"})
"""Roles by which a harness says that the calls ahead of them stay open: it submitted, or a person decides."""
_ASTRAY: Final = "the result does not follow the message with its call"
_TWICE: Final = "the same call, written twice"
_BY_DESIGN: Final = "the call ahead of it stays open by design, and nothing is to follow"


@dataclass(slots=True)
class _Open:
    """The calls of one message with one id, and the results that came for them, by item."""

    home: int
    asked: list[Any] = field(default_factory=list)
    """What each of them calls: those that say the same are one call, written twice."""
    given: list[int] = field(default_factory=list)
    stand_in: int | None = None
    """The item of a synthetic result, while no real one came."""
    astray: bool = False
    """True where that does not follow directly."""

    @property
    def waits(self) -> bool:
        return len(self.given) < len(self.asked)


class ChatJudge:
    """Takes in the messages of one file in order; memory grows with calls and pictures only."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._home = -1
        self._open: dict[str, _Open] = {}
        self._late: dict[str, _Open] = {}
        """Calls that were not answered in time."""
        self._early: dict[str, int] = {}
        """Results without a call just ahead of a message that may hold it, with their items."""
        self._answered: set[str] = set()
        self._free: set[str] = set()
        """Calls that may be answered here, but need not be."""
        self._exit: Problem | None = None
        """The message just now, of a role by which a harness ends a run."""
        self._previous: Any = None
        self._pictures = Pictures()

    def see(self, index: int, item: Any, facts: Facts) -> None:
        """Take in the next message."""
        if facts.starts:
            self._end()
            return
        self._go_on()
        previous, self._previous = self._previous, item
        if facts.calls and item == previous:
            for call in facts.calls:
                self._found.append(Problem("duplicate_call", index, _TWICE, call.id, again=True))
            return
        if facts.role == "assistant":
            self._close()
            self._call(index, item, facts)
        elif facts.role == "tool":
            for result in facts.results:
                self._result(index, result.call_id, synthetic=is_synthetic(result.text))
        elif facts.role != "meta":
            self._close()
            self._drop_early(kept=())
        self._alone(index, item, facts)

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by item, once all was seen."""
        self._end()
        return sorted(self._found, key=lambda problem: problem.item)

    def _alone(self, index: int, item: Any, facts: Facts) -> None:
        """What there is to say of the message by itself."""
        for problem in said_problems(index, item, facts):
            if problem.code == "bad_role" and isinstance(item, dict) and str(item.get("role")) in _ENDS:
                self._exit = problem
            else:
                self._found.append(problem)
        with suppress(RecursionError):  # what is nested so deeply was told already
            self._found += seal_problems(index, item)
        for path, size in chat_message.pictures(item):
            self._pictures.see(index, path, size)

    def _go_on(self) -> None:
        """Something follows, so what stood here just now ended nothing."""
        if self._exit is not None:
            self._found.append(self._exit)
            self._exit = None

    def _call(self, index: int, item: Any, facts: Facts) -> None:
        self._home = index
        for call in facts.calls:
            if call.answered_elsewhere:
                self._free.add(call.id)
            else:
                said = (call.name, call.arguments)
                self._open.setdefault(call.id, _Open(index)).asked.append(said)
        self._drop_early(kept=self._open)

    def _result(self, index: int, call_id: str, *, synthetic: bool) -> None:
        open_call, late = self._open.get(call_id), self._late.get(call_id)
        waiting = open_call if open_call is not None else late
        if synthetic and waiting is not None and waiting.waits and len(waiting.asked) == 1:
            self._stand_in(index, call_id, waiting)
        elif open_call is not None and open_call.waits:
            self._give(open_call, index, call_id)
            self._answered.add(call_id)
        elif open_call is None and late is not None and late.waits:
            self._give(late, index, call_id)
            self._misplaced(index, call_id, _ASTRAY, late.home)
        elif call_id in self._free:
            self._free.remove(call_id)
            self._answered.add(call_id)
        elif call_id in self._answered:
            self._add("duplicate_result", index, call_id, "the call was answered before")
        elif call_id in self._early:
            self._add("orphan_result", index, call_id, "no call has this id")
        else:
            self._early[call_id] = index

    def _stand_in(self, index: int, call_id: str, call: _Open) -> None:
        if call.stand_in is not None:
            self._add("duplicate_result", index, call_id, "the call was answered before")
            return
        call.stand_in, call.astray = index, call_id not in self._open

    def _give(self, call: _Open, index: int, call_id: str) -> None:
        """A real result came; what stood in for it goes."""
        call.given.append(index)
        if call.stand_in is not None:
            detail = "a synthetic result, and the call has a real one"
            self._add("duplicate_result", call.stand_in, call_id, detail)
            call.stand_in = None

    def _close(self) -> None:
        """No result of the last message can follow directly any more."""
        for call_id, one in self._open.items():
            early = self._early.pop(call_id, None)
            if one.given:
                if early is not None:
                    self._add("duplicate_result", early, call_id, "the call has a result behind it")
                self._doubled(call_id, one)
                continue
            self._give_up(call_id)
            if early is not None:
                self._misplaced(early, call_id, "the result stands ahead of its call", self._home)
                self._give(one, early, call_id)
            if one.waits:
                self._late[call_id] = one
        self._open.clear()

    def _drop_early(self, kept: Any) -> None:
        for call_id in [one for one in self._early if one not in kept]:
            self._add("orphan_result", self._early.pop(call_id), call_id, "no call has this id")

    def _give_up(self, call_id: str) -> None:
        """No result is waited for any more, of a call that was not answered in time."""
        late = self._late.pop(call_id, None)
        if late is None:
            return
        if late.stand_in is not None:
            late.given.append(late.stand_in)
            self._answered.add(call_id)
            if late.astray:
                self._misplaced(late.stand_in, call_id, _ASTRAY, late.home)
        if not late.given:
            self._add("unanswered_call", late.home, call_id, "no result came for this call")
        self._doubled(call_id, late)

    def _doubled(self, call_id: str, calls: _Open) -> None:
        """Tell of calls that share an id; results come in their order, or nobody knows whose they are."""
        asked, given = calls.asked, calls.given
        for number in range(1, len(asked)):
            again = len(given) < len(asked) and asked[number] in asked[:number]
            known = again or len(given) in (0, len(asked))
            self._found.append(
                Problem(
                    "duplicate_call",
                    calls.home,
                    _TWICE if again else "a second call with this id in one message",
                    call_id,
                    beyond=None if known else DOUBLED,
                    occurrence=number,
                    answers=((given[number], 0),) if number < len(given) else (),
                    again=again,
                )
            )

    def _end(self) -> None:
        """Nothing more comes of this conversation."""
        self._ended_by_design()
        self._close()
        self._drop_early(kept=())
        for call_id in list(self._late):
            self._give_up(call_id)
        self._answered.clear()
        self._free.clear()
        self._previous = None
        self._found += self._pictures.over()

    def _ended_by_design(self) -> None:
        """Calls ahead of the word of a harness that the run is over, or that a person decides, stay open."""
        if self._exit is None:
            return
        waiting = [one for one, call in self._open.items() if not call.given and call.stand_in is None]
        for call_id in waiting:
            del self._open[call_id]
        beyond = _BY_DESIGN if waiting else None
        self._found.append(Problem("bad_role", self._exit.item, self._exit.detail, beyond=beyond))
        self._exit = None

    def _misplaced(self, index: int, call_id: str, detail: str, home: int) -> None:
        self._found.append(Problem("misplaced_result", index, detail, call_id, home=home))
        self._answered.add(call_id)

    def _add(self, code: str, index: int, call_id: str, detail: str) -> None:
        self._found.append(Problem(code, index, detail, call_id))  # type: ignore[arg-type]  # a word of the list
