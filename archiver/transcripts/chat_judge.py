"""What is wrong with messages of Chat Completions.

Results follow directly on the message with their calls, in any order, before a message of another role. An id
counts within its message only: models use ids again, and the API takes that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from archiver.transcripts import chat_message
from archiver.transcripts.checks import form_problems, is_empty_text, without_surrogates
from archiver.transcripts.dialect import Facts, Problem


@dataclass(slots=True)
class _Open:
    """How often an id stands among the calls of the last message, and how many results came for it."""

    asked: int = 0
    given: int = 0


class ChatJudge:
    """Takes in the messages of one file in order; memory grows with the number of calls only."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._home = -1
        self._open: dict[str, _Open] = {}
        self._late: dict[str, int] = {}
        """Calls that were not answered in time, with the items they stand in."""
        self._early: dict[str, int] = {}
        """Results without a call just ahead of a message that may hold it, with their items."""
        self._answered: set[str] = set()
        self._free: set[str] = set()
        """Calls that may be answered here, but need not be."""

    def see(self, index: int, item: Any, facts: Facts) -> None:
        """Take in the next message."""
        if facts.starts:
            self._end()
            return
        if facts.role == "assistant":
            self._close()
            self._call(index, facts)
        elif facts.role == "tool":
            for result in facts.results:
                self._result(index, result.call_id)
        elif facts.role != "meta":
            self._close()
            self._drop_early(kept=())
        self._found += _said_problems(index, item, facts)

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by item, once all was seen."""
        self._end()
        return sorted(self._found, key=lambda problem: problem.item)

    def _call(self, index: int, facts: Facts) -> None:
        self._home = index
        for call in facts.calls:
            if call.answered_elsewhere:
                self._free.add(call.id)
                continue
            if call.id in self._open:
                self._add("duplicate_call", index, call.id, "a second call with this id in one message")
            self._open.setdefault(call.id, _Open()).asked += 1
        self._drop_early(kept=self._open)

    def _result(self, index: int, call_id: str) -> None:
        open_call = self._open.get(call_id)
        if open_call is not None and open_call.given < open_call.asked:
            open_call.given += 1
            self._answered.add(call_id)
        elif open_call is None and call_id in self._late:
            detail = "the result does not follow the message with its call"
            self._misplaced(index, call_id, detail, self._late.pop(call_id))
        elif call_id in self._free:
            self._free.remove(call_id)
            self._answered.add(call_id)
        elif call_id in self._answered:
            self._add("duplicate_result", index, call_id, "the call was answered before")
        elif call_id in self._early:
            self._add("orphan_result", index, call_id, "no call has this id")
        else:
            self._early[call_id] = index

    def _close(self) -> None:
        """No result of the last message can follow directly any more."""
        for call_id, one in self._open.items():
            early = self._early.pop(call_id, None)
            if one.given:
                if early is not None:
                    self._add("duplicate_result", early, call_id, "the call has a result behind it")
            elif early is not None:
                self._misplaced(early, call_id, "the result stands ahead of its call", self._home)
            else:
                self._give_up(call_id)
                self._late[call_id] = self._home
        self._open.clear()

    def _drop_early(self, kept: Any) -> None:
        for call_id in [one for one in self._early if one not in kept]:
            self._add("orphan_result", self._early.pop(call_id), call_id, "no call has this id")

    def _give_up(self, call_id: str) -> None:
        """No result is waited for any more, of a call that was not answered in time."""
        if (home := self._late.pop(call_id, None)) is not None:
            self._add("unanswered_call", home, call_id, "no result came for this call")

    def _end(self) -> None:
        """Nothing more comes of this conversation."""
        self._close()
        self._drop_early(kept=())
        for call_id in list(self._late):
            self._give_up(call_id)
        self._answered.clear()
        self._free.clear()

    def _misplaced(self, index: int, call_id: str, detail: str, home: int) -> None:
        self._found.append(Problem("misplaced_result", index, detail, call_id, home=home))
        self._answered.add(call_id)

    def _add(self, code: str, index: int, call_id: str, detail: str) -> None:
        self._found.append(Problem(code, index, detail, call_id))  # type: ignore[arg-type]  # a word of the list


def _said_problems(index: int, item: Any, facts: Facts) -> Iterator[Problem]:
    """What is wrong with one message by itself."""
    if not isinstance(item, dict):
        yield Problem("bad_order", index, "this is no message")
        return
    if facts.role == "meta" and not chat_message.says_nothing(item):
        yield Problem("bad_order", index, "the API does not know this role")
    elif facts.role != "tool" and chat_message.says_nothing(item):
        yield Problem("empty_text", index, "the message has no content")
    elif facts.role == "tool" and item.get("content") in (None, []):
        yield Problem("empty_text", index, "the result has no content")
    elif item.get("tool_calls") == []:
        yield Problem("empty_text", index, "the list of calls is empty")
    elif facts.role != "tool" and _has_empty_text(item.get("content")):
        yield Problem("empty_text", index, "a text part is empty or only white space")
    if any(not isinstance(entry, dict) or not entry.get("id") for entry in _listed(item)):
        yield Problem("unanswerable_call", index, "a call has no id", "")
    yield from form_problems(index, item, facts)


def with_sound_text(item: Any) -> Any | None:
    """The message without what `ChatJudge` finds wrong with its texts; None when nothing would be left."""
    if not isinstance(item, dict):
        return without_surrogates(item)
    role, made = chat_message.role_of(item), item
    if role == "tool":
        made = {**item, "content": ""} if item.get("content") in (None, []) else item
    elif chat_message.says_nothing(item):
        return None
    elif _has_empty_text(item.get("content")):
        made = {**item, "content": [part for part in item["content"] if not is_empty_text(part)] or None}
    if made.get("tool_calls") == []:
        made = {key: value for key, value in made.items() if key != "tool_calls"}
    return without_surrogates(made)


def _has_empty_text(content: Any) -> bool:
    return isinstance(content, list) and any(map(is_empty_text, content))


def _listed(item: dict[str, Any]) -> list[Any]:
    listed = item.get("tool_calls")
    return listed if isinstance(listed, list) else []
