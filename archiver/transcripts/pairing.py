"""Which calls are answered: one judge for a conversation, fed message by message.

The rule is that of the Messages API: all calls of a response are answered together, each once, in the next
user message. Items that belong to one message (adjacent ones of the same side, or pieces with one message
id) are judged as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from archiver.transcripts.dialect import Call, Problem, ToolResult

DOUBLED: Final = "two calls share one id, and nothing says which the results belong to"


class Pairing:
    """Calls and results of one conversation in their order; memory grows with the number of calls only.

    `line` names the line a piece stands on, where a format has names for lines: a line that was written twice
    says what it says once.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._called: dict[str, str | None] = {}
        self._open: dict[str, int] = {}
        self._late: dict[str, int] = {}
        self._answered: dict[str, str | None] = {}
        self._excused: dict[str, int] = {}
        self._group: str | None = None
        self._answering = False

    def called(self, item: int, calls: Sequence[Call], group: str | None, line: str | None = None) -> None:
        """A piece of a model response; pieces of one response carry the same `group`, if they have one."""
        if self._answering and (group is None or group != self._group):
            self._late.update(self._open)
            self._open.clear()
        self._answering = False
        self._group = group
        for call in calls:
            if call.id in self._called:
                if line is None or self._called[call.id] != line:
                    detail = "a second call with this id"
                    self.problems.append(Problem("duplicate_call", item, detail, call.id, beyond=DOUBLED))
                continue
            self._called[call.id] = line
            if not call.answered_elsewhere:
                self._open[call.id] = item

    def answered(self, item: int, results: Sequence[ToolResult], line: str | None = None) -> None:
        """A piece of a user message, with or without results."""
        self._answering = True
        for result in results:
            self._result(item, result.call_id, line)

    def _result(self, item: int, call_id: str, line: str | None) -> None:
        if call_id in self._answered:
            if line is None or self._answered[call_id] != line:
                self._problem("duplicate_result", item, call_id, "the call was answered before")
            return
        if call_id in self._late:
            detail = "the result is not in the next user message"
            self.problems.append(Problem("misplaced_result", item, detail, call_id, home=self._late[call_id]))
        elif call_id not in self._open and call_id not in self._excused:
            self._problem("orphan_result", item, call_id, "no call has this id")
            return
        for waiting in (self._open, self._late, self._excused):
            waiting.pop(call_id, None)
        self._answered[call_id] = line

    def boundary(self) -> None:
        """What the model sees starts anew: calls still open before it are history."""
        self._excused.update(self._open)
        self._excused.update(self._late)
        self._open.clear()
        self._late.clear()
        self._group = None
        self._answering = False

    def unanswered(self) -> list[Problem]:
        """The calls that no result came for."""
        return [
            Problem("unanswered_call", item, "no result came for this call", call_id)
            for call_id, item in (*self._late.items(), *self._open.items())
        ]

    def _problem(self, code: str, item: int, call_id: str, detail: str) -> None:
        self.problems.append(Problem(code, item, detail, call_id))  # type: ignore[arg-type]  # a word of the list
