"""Which leaves of a Chat Completions message are opaque: ids, signatures, encrypted reasoning, payloads.

As elsewhere, key, container and shape count together: what stands in a text, in the arguments of a call or in
its result is text like any other, whatever it is called.
"""

from __future__ import annotations

from typing import Any, Final

from archiver.transcripts import shapes
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at
from archiver.transcripts.sealed import UNKNOWN

_IDS: Final = frozenset({("id",), ("tool_call_id",), ("audio", "id")})
_CALL_IDS: Final = frozenset({"id", "call_id", "response_item_id"})
_SEALS: Final = frozenset(
    {"signature", "thought_signature", "thoughtSignature", "thought_signatures", "encrypted_content"}
)
"""What a provider keeps sealed under these keys, in reasoning and in fields of its own."""
_SEALED_KEYS: Final = _SEALS | {"data"}
_REASONING: Final = frozenset({"thinking_blocks", "reasoning_details", "codex_reasoning_items"})
_PROVIDERS: Final = frozenset({"provider_specific_fields", "extra_content"})
_PAYLOADS: Final = frozenset(
    {
        *(("image_url", "url"), ("image_url",), ("video_url", "url"), ("file", "file_data")),
        ("input_audio", "data"),
    }
)
_FILE: Final = ("file", "file_id")


def in_message(path: Path, item: Any) -> bool:
    """True for an opaque leaf of a message; `item` is the message, or `UNKNOWN` where nobody has it."""
    key = path[0] if path else None
    if path in _IDS:
        return _shaped(item, path)
    if item is not UNKNOWN and not _is_assistant(item):  # only the provider seals, and only what it said
        return key == "content" and _in_content(path, item)
    if key == "tool_calls":
        return _in_call(path[2:]) and _shaped(item, path)
    if key in _REASONING or key in _PROVIDERS:
        return _is_seal(path) and _shaped(item, path)
    if key in ("content", "images"):
        return _in_content(path, item) or _is_thought(path, item)
    return path == ("audio", "data") and item is not UNKNOWN and shapes.is_media(at(item, path))


def in_exchange(path: Path, value: Any) -> bool:
    """True for an opaque leaf of what stands around messages: its own id, and the response in a log."""
    if path == ("id",):
        return _shaped(value, path)
    start = 1 if path[:1] == ("response",) else 0
    if path[start:] == ("id",):
        return _shaped(value, path)
    if path[start : start + 1] != ("choices",) or path[start + 2 : start + 3] != ("message",):
        return False
    return in_message(path[start + 3 :], UNKNOWN if value is UNKNOWN else at(value, path[: start + 3]))


def _in_call(path: Path) -> bool:
    """In one call: its ids, and what a provider hangs on it."""
    if len(path) == 1:
        return path[0] in _CALL_IDS
    providers = path[1:] if path[:1] == ("function",) else path
    return providers[:1] != () and providers[0] in _PROVIDERS and _is_seal(providers)


def _is_seal(path: Path) -> bool:
    named = [step for step in path if isinstance(step, str)]
    in_reasoning = not _REASONING.isdisjoint(named)
    return len(path) > 1 and (named[-1] in _SEALS or (in_reasoning and named[-1] in ("data", "id")))


def _is_assistant(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "assistant"


def _in_content(path: Path, item: Any) -> bool:
    """In a part of a content: media in base64, and the id of a file."""
    if item is UNKNOWN:
        return False
    if path[2:] == _FILE:
        return shapes.is_id(at(item, path))
    return path[2:] in _PAYLOADS and shapes.is_media(at(item, path))


def _is_thought(path: Path, item: Any) -> bool:
    """True for the signature of a thought in a content."""
    if path[2:] != ("signature",):
        return False
    return item is UNKNOWN or (at(item, (*path[:2], "type")) == "thinking" and shapes.is_blob(at(item, path)))


def _shaped(container: Any, path: Path) -> bool:
    """True for an id, or a seal, by the name of its key; only the place counts where nobody has the value."""
    if container is UNKNOWN:
        return True
    value = at(container, path)
    name = next(step for step in reversed(path) if isinstance(step, str))
    return shapes.is_blob(value) if name in _SEALED_KEYS else shapes.is_id(value)
