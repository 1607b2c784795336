"""Marks by which messages of Chat Completions are known, and files that hold many conversations of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from archiver.transcripts.chat_message import PROVIDER, REASONING_KEYS, REASONING_PARTS, ROLES
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at

_OWN_KEYS: Final = frozenset(
    {"tool_calls", "function_call", "refusal", "audio", "annotations", *REASONING_KEYS}
)
"""Keys that no other provider's messages have."""
_KEYS: Final = _OWN_KEYS | {
    *("role", "content", "name", "tool_call_id", "cache_control", PROVIDER, "extra_content", "images"),
    *("finish_reason", "tool_name", "parsed", "prefix", "partial", "weight"),
}
_OWN_PARTS: Final = frozenset({"image_url", "input_audio", "file", "refusal", "video_url"})
_PARTS: Final = _OWN_PARTS | {"text", *REASONING_PARTS}
_OWN_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_OWN_OPTIONS: Final = frozenset(
    {
        *("max_completion_tokens", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs"),
        *("response_format", "parallel_tool_calls", "functions", "function_call", "stream_options"),
        *("reasoning_effort", "modalities"),
    }
)
_OTHERS: Final = frozenset({"anthropic_version", "system", "max_tokens_to_sample", "stop_sequences", "input"})
_PLACES: Final[tuple[Path, ...]] = (("messages",), ("traj",), ("request", "messages"), ("body", "messages"))
"""Where the lines of a log, or recorded trajectories, keep their messages."""


def shown(values: Sequence[Any], container: Any) -> bool:
    """True for messages that are those of Chat Completions and show it, or whose container does."""
    if not values or not all(map(_message, values)) or sum(map(_is_known, values)) * 2 <= len(values):
        return False
    return any(map(_marked, values)) or _asks(container)


def nested(values: Sequence[Any]) -> Path | None:
    """Where each of these values holds a conversation of its own; None unless most do and show it."""
    if not all(isinstance(value, dict) for value in values):
        return None
    for path in _PLACES:
        lists = [(value, at(value, path)) for value in values]
        held = [(value, found) for value, found in lists if isinstance(found, list)]
        if len(held) * 2 < len(values) or not all(_message(one) for _, found in held for one in found):
            continue
        for value, found in held:
            if shown(found, value) or shown(found, at(value, path[:-1])):
                return path
    return None


def _message(value: Any) -> bool:
    """True for what the API, or a server that is compatible with it, could take or give as a message."""
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        return False
    role, content = value.get("role"), value.get("content")
    if not isinstance(role, str):
        return False
    if isinstance(content, list):
        if not all(isinstance(part, dict) and _kind(part) in _PARTS for part in content):
            return False
    elif not isinstance(content, str | None):
        return False
    listed = value.get("tool_calls") or []
    if not isinstance(listed, list) or not all(map(_call, listed)):
        return False
    return role != "tool" or isinstance(value.get("tool_call_id"), str)


def _is_known(value: dict[str, Any]) -> bool:
    """True for what the API takes; a file may hold some that it does not, but not mostly."""
    given = value.get("content") is not None or value["role"] in ("assistant", "tool", "function")
    return value["role"] in ROLES and given


def _call(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return False
    called = value.get("function") or value.get("custom")
    return isinstance(called, dict) and isinstance(called.get("name"), str)


def _marked(value: dict[str, Any]) -> bool:
    """True for a message that no other provider's API has in this form."""
    if value["role"] in _OWN_ROLES or not _OWN_KEYS.isdisjoint(value):
        return True
    content = value.get("content")
    return isinstance(content, list) and any(_kind(part) in _OWN_PARTS for part in content)


def _kind(part: dict[str, Any]) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def _asks(container: Any) -> bool:
    """True for the body of a request to Chat Completions, or a log with the response to one."""
    if not isinstance(container, Mapping):
        return False
    kinds = (container.get("object"), at(container, ("response", "object")))
    if any(isinstance(kind, str) and kind.startswith("chat.completion") for kind in kinds):
        return True
    tools = container.get("tools")
    tools = tools if isinstance(tools, list) else []
    if not _OWN_OPTIONS.isdisjoint(container) or any(
        isinstance(at(tool, ("function",)), dict) for tool in tools
    ):
        return True
    model = container.get("model")
    others = not _OTHERS.isdisjoint(container) or any(
        isinstance(tool, dict) and "input_schema" in tool for tool in tools
    )
    return isinstance(model, str) and "claude" not in model and not others
