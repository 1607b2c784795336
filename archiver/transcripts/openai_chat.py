"""Dialect "openai-chat": items are message objects of Chat Completions, in a list, a body or JSON lines.

A file of many conversations (lines that are request bodies, recorded trajectories) is one stream: an item
that is an array holds what stands around the messages of one, and those follow it. See `nested`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archiver.transcripts import chat_exchange, chat_message, chat_sealed
from archiver.transcripts.chat_checks import with_sound_role, with_sound_text
from archiver.transcripts.chat_judge import ChatJudge
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Facts, Path, Problem, Results
from archiver.transcripts.outcome import failed
from archiver.transcripts.sealed import UNKNOWN
from archiver.transcripts.typed import typed


class OpenAIChat(DialectDefaults):
    """Chat Completions; each result is a message of its own, next to the message with its call."""

    name = "openai-chat"
    results: Results = "next"

    def facts(self, item: Any) -> Facts:
        if isinstance(item, list):
            return chat_exchange.facts(item)
        role = chat_message.role_of(item)
        if role == "meta":
            return Facts("meta")
        if role == "tool":
            result = chat_message.result(item)
            return Facts("tool", results=(result,) if result else ())
        texts = chat_message.texts(item.get("content"))
        if role == "user":
            return Facts("user", instruction=typed(texts))
        if role == "system":
            return Facts("system", text="\n".join(texts))
        refusal = item.get("refusal")
        said = (*texts, refusal) if isinstance(refusal, str) and refusal else texts
        calls = chat_message.calls(item)
        reasoning = chat_message.has_reasoning(item)
        # DeepSeek and Kimi refuse a message with calls whose reasoning is gone or is another.
        return Facts(
            "assistant",
            calls=calls,
            text="\n".join(said),
            has_reasoning=reasoning,
            bound=reasoning and bool(calls),
        )

    def opaque(self, path: Path, item: Any = None) -> bool:
        known = UNKNOWN if item is None else item
        if path and path[0] == 0:
            inner = item[0] if isinstance(item, list) and item else UNKNOWN
            return chat_sealed.in_exchange(path[1:], inner)
        if isinstance(item, dict) and "role" not in item:
            return chat_sealed.in_exchange(path, item)
        return chat_sealed.in_message(path, known)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        judge = ChatJudge()
        for index, item in enumerate(items):
            judge.see(index, item, self.facts(item))
        return judge.problems()

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        result = chat_message.result(item)
        if result is None or result.call_id != call_id or item.get("content") == text:
            return item
        return {**item, "content": text}

    def fold(self, item: Any) -> Any:
        copies = item.get(chat_message.PROVIDER) if isinstance(item, dict) else None
        if not isinstance(copies, dict) or not copies:
            return item
        if any(value is not None and item.get(key) != value for key, value in copies.items()):
            return item
        return {key: value for key, value in item.items() if key != chat_message.PROVIDER}

    def without_reasoning(self, item: Any) -> Any | None:
        if not isinstance(item, dict):
            return item
        made = chat_message.without_reasoning(item)
        return None if made is not item and chat_message.says_nothing(made) else made

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        return item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        return None, None

    def blobs(self, item: Any) -> Iterator[Blob]:
        return chat_message.blobs(item)

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        return chat_message.replace_blob(item, path, text)

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        if isinstance(text, dict):  # a result that stood at a wrong place comes back as the message it was
            return text
        return chat_message.answer(calls[0], f"Error: {text}" if is_error and not failed(text) else text)

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return item

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        result = chat_message.result(item)
        return item if result is not None and result.call_id == call_id else ""

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        result = chat_message.result(item)
        return None if result is not None and result.call_id == call_id and not occurrence else item

    def with_sound_text(self, item: Any) -> Any | None:
        return with_sound_text(item)

    def user_note(self, text: str, before: Any) -> Any:
        return {"role": "user", "content": text}

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        return (
            chat_message.renamed_call(item, call_id, new_id, occurrence) if isinstance(item, dict) else item
        )

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        result = chat_message.result(item)
        if result is None or result.call_id != call_id or occurrence:
            return item
        return {**item, "tool_call_id": new_id}

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        return chat_message.renamed_tool(item, names) if isinstance(item, dict) else item

    def with_sound_role(self, item: Any) -> Any | None:
        return with_sound_role(item)
