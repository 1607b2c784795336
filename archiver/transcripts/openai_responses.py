"""Dialect "openai-responses": items are those of OpenAI's Responses API, in a list, a body or JSON lines.

A file of many lists (lines that are requests, responses or both) is one stream: an item that is an array
holds what stands around the items of one list, and those follow it. See `nested`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from archiver.transcripts import responses_body, responses_edits, sealed
from archiver.transcripts.dialect import Call, Facts, Path, Problem
from archiver.transcripts.responses_dialect import ResponsesDialect
from archiver.transcripts.responses_items import SEALED, facts_of, kind_of
from archiver.transcripts.responses_judge import ItemsJudge
from archiver.transcripts.responses_sealed import in_item
from archiver.transcripts.typed import typed


class OpenAIResponses(ResponsesDialect):
    """Responses items; what a tool gave stands anywhere behind its call."""

    name = "openai-responses"

    def places(self, item: Any) -> Sequence[Path]:
        return ((),) if isinstance(item, dict) else ()

    def facts(self, item: Any) -> Facts:
        if isinstance(item, list):
            return responses_body.facts(item)
        return facts_of(item, typed)

    def opaque(self, path: Path, item: Any = None) -> bool:
        if item is None:
            return in_item(path, sealed.UNKNOWN)
        if isinstance(item, dict) and kind_of(item):
            return in_item(path, item)
        shell = item if isinstance(item, list) else [item]
        return responses_body.opaque(path if shell is item else (0, *path), shell)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        judge = ItemsJudge()
        judge.knows_by_id = True
        for index, item in enumerate(items):
            judge.texts(index, item)
            if isinstance(item, list):
                judge.start(
                    calls_elsewhere=responses_body.goes_on(item),
                    results_elsewhere=responses_body.is_response(item),
                )
            elif kind_of(item) in SEALED - {"reasoning"}:
                # What precedes a compaction may be left out of a request, so nothing in it is missed.
                judge.boundary(sent=True)
                judge.see(index, item)
            else:
                judge.see(index, item)
        return judge.problems()

    def fold(self, item: Any) -> Any:
        return item

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        return responses_edits.answer(calls[0], text, is_error=is_error)

    def user_note(self, text: str, before: Any) -> Any:
        content = [{"type": "input_text", "text": text}]
        return {"type": "message", "role": "user", "content": content}
