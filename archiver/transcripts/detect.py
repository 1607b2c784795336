"""Which dialect values are in, by what they hold; a file's name counts for nothing.

A dialect has to be shown by marks of its own. What could as well be another provider's is `opaque`: read as
the wrong dialect, a transcript would lose calls that nobody saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from archiver.transcripts import chat_detect, responses_detect
from archiver.transcripts.blocks import CLIENT_CALL, REASONING, SERVER_CALLS
from archiver.transcripts.dialect import Path

CLAUDE_CODE: Final = "claude-code"
ANTHROPIC: Final = "anthropic-messages"
OPENAI_CHAT: Final = "openai-chat"
OPENAI_RESPONSES: Final = "openai-responses"
CODEX: Final = "codex"
OPAQUE: Final = "opaque"

_SESSION_KEYS: Final = ("sessionId", "session_id", "uuid", "parentUuid")
_MARKED_LINES: Final = {"summary": "leafUuid", "file-history-snapshot": "snapshot"}
_SESSION_LINES: Final = frozenset(
    {
        *("agent-name", "ai-title", "attachment", "custom-title", "last-prompt", "mode", "permission-mode"),
        *("pr-link", "progress", "queue-operation", "rate_limit_event", "result", "stream_event", "system"),
    }
)
_MESSAGE_KEYS: Final = frozenset(
    {
        *("role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage"),
        *("container", "context_management", "diagnostics"),
    }
)
_OWN_BLOCKS: Final = frozenset({CLIENT_CALL, "tool_result", "compaction", *REASONING, *SERVER_CALLS})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
"""Words for roles in the APIs of providers."""
_COMMON_BLOCKS: Final = frozenset(
    {"text", "image", "document", "search_result", "container_upload", "fallback"}
)


def of_lines(values: Sequence[Any]) -> str:
    """The dialect of the lines of a JSONL file, from its first ones."""
    if not values:
        return OPAQUE
    seen = [_claude_line(value) for value in values]
    if None not in seen and sum(map(bool, seen)) * 2 >= len(seen):
        return CLAUDE_CODE
    return CODEX if responses_detect.is_rollout(values) else of_messages(values, None)


def _claude_line(value: Any) -> bool | None:
    """True for a line of Claude Code, None for one that shows that the file is not Claude Code's."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if kind in ("user", "assistant"):
        message = value.get("message")
        if not isinstance(message, dict):
            return False
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str | list):
            return None
        # In another role than the line's type says it may be a harness's own; it is not told by such a line.
        return message["role"] == kind and any(key in value for key in _SESSION_KEYS)
    if kind in _MARKED_LINES:
        return _MARKED_LINES[kind] in value
    return kind in _SESSION_LINES and any(key in value for key in _SESSION_KEYS[:2])


def of_messages(values: Sequence[Any], container: Any) -> str:
    """The dialect of the elements of a messages array; `container` is the object that holds the array."""
    if responses_detect.shown(values, container):
        return OPENAI_RESPONSES
    if chat_detect.shown(values, container):
        return OPENAI_CHAT
    strange = [value for value in values if not _message(value)]
    if not values or len(strange) * 2 >= len(values) or not all(map(_misnamed, strange)):
        return OPAQUE
    values = [value for value in values if _message(value)]
    asks = _names_claude(container) or (_claude_request(container) and not strange)
    marked = asks or any(_marked(value) for value in values)
    if strange and not marked:
        return OPAQUE
    anybodys = _plain(values) and not (isinstance(container, Mapping) and "model" in container)
    return ANTHROPIC if marked or anybodys else OPAQUE


def of_conversations(values: Sequence[Any]) -> tuple[str, Path]:
    """The dialect of lines or elements that hold a conversation each, and where in them its messages are."""
    for dialect, nested in ((OPENAI_RESPONSES, responses_detect.nested), (OPENAI_CHAT, chat_detect.nested)):
        found = nested(values)
        if found is not None:
            return dialect, found
    return OPAQUE, ()


def _plain(values: Sequence[Any]) -> bool:
    """True for messages that say nothing but who says what: they mean the same to every provider."""
    roles = [value["role"] for value in values if value.keys() == {"role", "content"}]
    return len(roles) == len(values) and "user" in roles and "assistant" in roles


def _message(value: Any) -> bool:
    """True for what the Messages API could take or give as a message."""
    if not isinstance(value, dict) or not value.keys() <= _MESSAGE_KEYS:
        return False
    content = value.get("content")
    if value.get("role") not in ("user", "assistant") or not isinstance(content, str | list):
        return False
    return isinstance(content, str) or all(map(_block, content))


def _misnamed(value: Any) -> bool:
    """True for a message in a role that is nobody's: of a harness, or of another word for a role."""
    role = value.get("role") if isinstance(value, dict) else None
    if not isinstance(role, str) or role in _ROLES:
        return False
    return _message({**value, "role": "user"})


def _block(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        return False
    if kind in ("image", "document"):
        return isinstance(block.get("source"), dict)
    return kind in _OWN_BLOCKS or kind in _COMMON_BLOCKS or kind.endswith("_tool_result")


def _marked(value: Any) -> bool:
    """True for a message that no other provider's API has in this form."""
    content = value["content"]
    if isinstance(content, str):
        return False
    return any(
        block["type"] in _OWN_BLOCKS or block["type"] in ("image", "document") or "cache_control" in block
        for block in content
    )


def _claude_request(container: Any) -> bool:
    if not isinstance(container, Mapping):
        return False
    return "system" in container or _names_claude(container)  # other APIs have the prompt in a message


def _names_claude(container: Any) -> bool:
    if not isinstance(container, Mapping):
        return False
    model = container.get("model")
    return "anthropic_version" in container or (isinstance(model, str) and "claude" in model)
