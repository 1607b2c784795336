"""What is wrong with a rollout as a file: its head, the number of each line, the form in which it is kept.

Codex skips a line that it cannot read, so a torn one costs only itself, and takes the first `session_meta`
that it comes to for the session, wherever that stands (`RolloutRecorder` in its source). Where a number is
not beyond the one before, what it shows of a session stops (openai/codex#35746, #41566).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

from archiver.transcripts import codex_lines
from archiver.transcripts.dialect import Problem

_MODES: Final = frozenset({"legacy", "paginated"})
_HEADS: Final = uuid.UUID("5d0f6c53-8c4e-5a1b-9a57-2b7c0f1d9e31")
_NUMBER: Final = "ordinal"


class RolloutJudge:
    """Takes in the lines of one file in order, and keeps nothing of them."""

    def __init__(self) -> None:
        self._enveloped = self._headed = False
        self._mode: Problem | None = None
        self._last: int | None = None
        self._behind = 0
        self._first_behind: tuple[int, str] = (0, "")

    def see(self, index: int, item: Any) -> None:
        """Take in the next line."""
        payload = codex_lines.payload_of(item)
        if payload is None:
            return
        self._enveloped = True
        if item["type"] == "session_meta" and not self._headed:
            self._headed = True
            mode = payload.get("history_mode")
            if mode is not None and (not isinstance(mode, str) or mode not in _MODES):
                detail = "the history of this session is kept in a form that is not known yet"
                self._mode = Problem("unsupported_version", index, detail)
        self._number(index, item.get(_NUMBER))

    def _number(self, index: int, number: Any) -> None:
        """In a file whose lines have numbers each has one beyond that of the line before; gaps are fine."""
        own = number if type(number) is int else None
        if self._last is not None and (own is None or own <= self._last):
            self._first_behind = self._first_behind if self._behind else (index, str(number))
            self._behind += 1
            self._last += 1
        else:
            self._last = own

    def problems(self) -> Iterator[Problem]:
        """What is wrong, once all was seen."""
        if self._enveloped and not self._headed:
            yield Problem("bad_order", 0, "no line says which session this is, and Codex opens none without")
        if self._mode is not None:
            yield self._mode
        if self._behind:
            index, number = self._first_behind
            detail = f"{self._behind} lines have a number that is not beyond the one before"
            yield Problem("dangling_parent", index, detail, ref=f"{_NUMBER} {number}")


def numbered(item: Any, before: Any) -> Any:
    """The line with a number beyond that of the line before, if that has one."""
    last = before.get(_NUMBER) if codex_lines.payload_of(before) is not None else None
    if type(last) is not int or codex_lines.payload_of(item) is None:
        return item
    own = item.get(_NUMBER)
    if type(own) is int and own > last:
        return item
    if _NUMBER in item:
        return {**item, _NUMBER: last + 1}
    stamp = {"timestamp": item["timestamp"]} if "timestamp" in item else {}
    return {**stamp, _NUMBER: last + 1, **item}


def head(text: str, first: dict[str, Any]) -> dict[str, Any]:
    """A head for a file that lost its own, ahead of its `first` line; `text` says what it is.

    The id of the session is a new one: only the name of its file still says the old one.
    """
    at = first.get("timestamp")
    folder = codex_lines.facts(first).cwd
    payload = {
        "id": str(uuid.uuid5(_HEADS, repr(first))),
        "timestamp": at,
        "cwd": folder or ".",
        "originator": text,
        "cli_version": "0.0.0",
        "source": "unknown",
    }
    line: dict[str, Any] = {"timestamp": at}
    if type(first.get(_NUMBER)) is int:
        line[_NUMBER] = first[_NUMBER] - 1
    return {**line, "type": "session_meta", "payload": payload}
