"""Dialect "anthropic-messages": items are message objects `{role, content}` of the Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archiver.transcripts import blocks, sealed
from archiver.transcripts.checks import text_problems, with_sound_text
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Facts, Path, Problem, Results, Role
from archiver.transcripts.pairing import Pairing
from archiver.transcripts.places import at
from archiver.transcripts.typed import typed

_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class AnthropicMessages(DialectDefaults):
    """Anthropic Messages; results stand in the next user message, server tools answer themselves."""

    name = "anthropic-messages"
    results: Results = "together"

    def facts(self, item: Any) -> Facts:
        if not isinstance(item, dict):
            return Facts("meta")
        role = _ROLES.get(item.get("role"), "meta") if isinstance(item.get("role"), str) else "meta"
        said = blocks.said(item.get("content"))
        message, model = item.get("id"), item.get("model")
        return Facts(
            role,
            calls=said.calls,
            results=said.results,
            instruction=typed(said.texts) if role == "user" else "",
            text="\n".join(said.texts) if role == "assistant" else "",
            has_reasoning=said.has_reasoning,
            message=message if isinstance(message, str) and message.startswith("msg_") else None,
            boundary=said.compacted,
            usage=blocks.usage_of(item.get("usage")),
            model=model if isinstance(model, str) else None,
        )

    def opaque(self, path: Path, item: Any = None) -> bool:
        if path == ("id",):
            return item is None or sealed.is_id(at(item, path))
        content = sealed.UNKNOWN if item is None else at(item, ("content",))
        return path[:1] == ("content",) and sealed.in_content(path[1:], content)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        pairing = Pairing()
        found: list[Problem] = []
        first = True
        for index, item in enumerate(items):
            facts = self.facts(item)
            if facts.role not in ("user", "assistant"):
                found.append(Problem("bad_order", index, "the role is neither user nor assistant"))
                continue
            if first and facts.role == "assistant" and not facts.boundary:
                found.append(Problem("bad_order", index, "the conversation starts with the assistant"))
            first = False
            found.extend(text_problems(index, item.get("content"), facts))
            if facts.role == "assistant":
                if facts.boundary:
                    pairing.boundary()
                pairing.called(index, facts.calls, facts.message)
            else:
                pairing.answered(index, facts.results)
        return sorted((*found, *pairing.problems, *pairing.unanswered()), key=lambda problem: problem.item)

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        return _with_content(item, blocks.stub_result(item.get("content"), call_id, text))

    def fold(self, item: Any) -> Any:
        return item

    def without_reasoning(self, item: Any) -> Any | None:
        content = blocks.without_reasoning(item.get("content"))
        return None if content == [] else _with_content(item, content)

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        return item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        return None, None

    def blobs(self, item: Any) -> Iterator[Blob]:
        return blocks.blobs(at(item, ("content",)), ("content",))

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        return blocks.replace_blob(item, path, text)

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        return {"role": "user", "content": blocks.error_blocks(calls, text, is_error)}

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return _with_content(item, blocks.with_results(item.get("content"), calls, text, is_error))

    def result_content(self, item: Any, call_id: str) -> Any:
        return blocks.result_content(item.get("content"), call_id)

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        content = blocks.without_result(item.get("content"), call_id, occurrence)
        return None if content == [] else _with_content(item, content)

    def with_sound_text(self, item: Any) -> Any | None:
        content = with_sound_text(item.get("content"))
        return None if content == [] else _with_content(item, content)

    def user_note(self, text: str, before: Any) -> Any:
        return {"role": "user", "content": text}


def _with_content(item: Any, content: Any) -> Any:
    return item if content is item.get("content") else {**item, "content": content}
