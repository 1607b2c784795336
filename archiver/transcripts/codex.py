"""Dialect "codex": items are the lines of a rollout, the file that Codex keeps of a session.

What the model sees are the `response_item` lines behind the last compaction, and what that left of those
before it. Other lines are carried as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from archiver.transcripts import codex_events, codex_judge, codex_lines, responses_edits
from archiver.transcripts.codex_judge import RolloutJudge
from archiver.transcripts.dialect import Blob, Call, Facts, Path, Problem
from archiver.transcripts.places import at, put
from archiver.transcripts.responses_dialect import ResponsesDialect
from archiver.transcripts.responses_judge import ItemsJudge

_OPENAI = "openai"


class Codex(ResponsesDialect):
    """Codex sessions, enveloped and flat."""

    name = "codex"
    no_image = ""

    def places(self, item: Any) -> Sequence[Path]:
        return codex_lines.places(item)

    def facts(self, item: Any) -> Facts:
        return codex_lines.facts(item)

    def opaque(self, path: Path, item: Any = None) -> bool:
        return codex_lines.opaque(path, item)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        judge, rollout = ItemsJudge(), RolloutJudge()
        for index, item in enumerate(items):
            rollout.see(index, item)
            judge.texts(index, item)
            provider = codex_lines.provider(item)
            if provider is not None:
                judge.takes_readable = provider != _OPENAI
            event = codex_lines.event_of(item)
            if event is not None and (call := codex_events.asked(event)):
                judge.waiting.add(call)
            whole = not codex_lines.is_compaction(item)
            if not whole:
                judge.boundary(sent=False)
            for place in self.places(item):
                judge.see(index, at(item, place), place=place, whole=whole)
        return sorted((*rollout.problems(), *judge.problems()), key=lambda problem: problem.item)

    def fold(self, item: Any) -> Any:
        event = codex_lines.event_of(item)
        if event is None:
            return item
        folded = codex_events.fold(event)
        return item if folded is event else {**item, "payload": folded}

    def blobs(self, item: Any) -> Iterator[Blob]:
        payload = codex_lines.payload_of(item)
        if payload is None or item["type"] == "compacted":
            yield from super().blobs(item)
        elif item["type"] in ("response_item", "event_msg"):
            find = codex_events.blobs if item["type"] == "event_msg" else responses_edits.blobs
            for blob in find(payload):
                yield replace(blob, path=("payload", *blob.path))

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        event = codex_lines.event_of(item)
        if event is None:
            return super().replace_blob(item, path, text)
        return put(item, ("payload",), codex_events.without_blob(event, path[1:], text))

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        answer = responses_edits.answer(calls[0], text, is_error=is_error, local_shell="function_call_output")
        return _line(answer, after)

    def user_note(self, text: str, before: Any) -> Any:
        """What a lost beginning needs here: the head of the session, or in a flat file what was said."""
        if codex_lines.payload_of(before) is not None:
            return codex_judge.head(text, before)
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def numbered(self, item: Any, before: Any) -> Any:
        return codex_judge.numbered(item, before)


def _line(item: dict[str, Any], after: Any) -> Any:
    """A line for a new item, at the time of the line before it; flat if that one is."""
    if codex_lines.payload_of(after) is None:
        return item
    line = {"timestamp": after.get("timestamp"), "type": "response_item", "payload": item}
    return codex_judge.numbered(line, after)
