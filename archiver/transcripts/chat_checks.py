"""What is wrong with one message of Chat Completions by itself, and the message without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from archiver.transcripts import chat_message, shapes
from archiver.transcripts.chat_message import PROVIDER
from archiver.transcripts.checks import form_problems, is_empty_text, without_surrogates
from archiver.transcripts.dialect import Facts, Problem

_SEALS: Final = frozenset(
    {"signature", "thought_signature", "thoughtSignature", "encrypted_content", "thought_signatures"}
)
_SEALED_PLACES: Final = ("thinking_blocks", "reasoning_details", "codex_reasoning_items")
_HUNG: Final = (PROVIDER, "extra_content")
_OTHER_NAMES: Final = {"model": "assistant", "ai": "assistant", "bot": "assistant", "human": "user"}
"""Roles that mean one of the API's; any other is a line of the harness's own, which no model ever saw."""


def said_problems(index: int, item: Any, facts: Facts) -> Iterator[Problem]:
    """What is wrong with one message, apart from calls and results that miss each other."""
    if not isinstance(item, dict):
        yield Problem("bad_role", index, "this is no message")
        return
    if facts.role == "meta":
        yield Problem("bad_role", index, "the API does not know this role")
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
    """The message without what `said_problems` finds wrong with its texts; None when nothing is left."""
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


def with_sound_role(item: Any) -> Any | None:
    """The message under the API's own name for its role; None for a line that was never sent.

    What calls tools is the model's, and what answers a call is a result, whatever the role says.
    """
    role = item.get("role") if isinstance(item, dict) else None
    if chat_message.role_of(item) != "meta":
        return item
    if not isinstance(item, dict):
        return None
    known = _OTHER_NAMES.get(role.lower()) if isinstance(role, str) else None
    if _listed(item):
        known = "assistant"
    elif isinstance(item.get("tool_call_id"), str):
        known = "tool"
    return {**item, "role": known} if known else None


def seal_problems(index: int, item: Any) -> Iterator[Problem]:
    """Words of a redaction in the place of a signature, or of something encrypted."""
    if not isinstance(item, dict) or item.get("role") != "assistant":
        return
    bare = chat_message.without_reasoning(item)
    if _has_broken_seal(bare):
        yield Problem("broken_seal", index, "what the provider hung on a call is destroyed")
    elif bare is not item and _has_broken_seal(item):
        detail = "what the provider signed or encrypted in its reasoning is destroyed"
        yield Problem("broken_seal", index, detail, loose=True)


def _has_broken_seal(item: dict[str, Any]) -> bool:
    content = item.get("content")
    thoughts = list(filter(chat_message.is_reasoning, content)) if isinstance(content, list) else []
    called = [entry for entry in _listed(item) if isinstance(entry, dict)]
    hung = [one.get(key) for one in (item, *called) for key in _HUNG]
    return any(map(_holds_broken, [*thoughts, *hung, *(item.get(key) for key in _SEALED_PLACES)]))


def _holds_broken(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_broken, value))
    if not isinstance(value, dict):
        return False
    return any(
        any(map(_is_broken, inner if isinstance(inner, list) else [inner]))
        if key in _SEALS or (key == "data" and "type" in value)
        else _holds_broken(inner)
        for key, inner in value.items()
    )


def _is_broken(value: Any) -> bool:
    """True for the word of a redaction; providers take some words of their own in the place of a seal."""
    return isinstance(value, str) and "REDACTED" in value and not shapes.is_sealed(value)


def _has_empty_text(content: Any) -> bool:
    return isinstance(content, list) and any(map(is_empty_text, content))


def _listed(item: dict[str, Any]) -> list[Any]:
    listed = item.get("tool_calls")
    return listed if isinstance(listed, list) else []
