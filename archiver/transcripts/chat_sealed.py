"""Which leaves of a Chat Completions message are opaque: ids, signatures, encrypted reasoning, payloads.

As elsewhere, key, container and shape count together: what stands in a text, in the arguments of a call or in
its result is text like any other, whatever it is called.
"""

from __future__ import annotations

import re
from typing import Any, Final

from archiver.transcripts import sealed
from archiver.transcripts.chat_message import data_of
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at
from archiver.transcripts.sealed import UNKNOWN

_SHAPE = re.compile(r"[!-~]+")
"""Of ids too: a proxy hangs a signature of kilobytes on them, which an id's own shape would not allow."""
_IDS: Final = frozenset({("id",), ("tool_call_id",), ("audio", "id")})
_CALL_IDS: Final = frozenset({"id", "call_id", "response_item_id"})
_SEALS: Final = frozenset(
    {"signature", "thought_signature", "thoughtSignature", "thought_signatures", "encrypted_content"}
)
"""What a provider keeps sealed under these keys, in reasoning and in fields of its own."""
_REASONING: Final = frozenset({"thinking_blocks", "reasoning_details", "codex_reasoning_items"})
_PROVIDERS: Final = frozenset({"provider_specific_fields", "extra_content"})
_PAYLOADS: Final = frozenset(
    {
        *(("image_url", "url"), ("image_url",), ("video_url", "url"), ("file", "file_data")),
        *(("file", "file_id"), ("input_audio", "data")),
    }
)


def in_message(path: Path, item: Any) -> bool:
    """True for an opaque leaf of a message; `item` is the message, or `UNKNOWN` where nobody has it."""
    key = path[0] if path else None
    if path in _IDS:
        return _shaped(item, path)
    if key == "tool_calls":
        return _in_call(path[2:]) and _shaped(item, path)
    if key in _REASONING or key in _PROVIDERS:
        return _is_seal(path) and _shaped(item, path)
    if key in ("content", "images"):
        return len(path) > 2 and _in_part(path[2:], UNKNOWN if item is UNKNOWN else at(item, path[:2]))
    return path == ("audio", "data") and item is not UNKNOWN and sealed.is_base64(at(item, path))


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


def _in_part(path: Path, part: Any) -> bool:
    if path == ("signature",):
        return part is UNKNOWN or _shaped(part, path)
    if part is UNKNOWN or path not in _PAYLOADS:
        return False
    value = at(part, path)
    if path == ("file", "file_id"):
        return _shaped(part, path)
    data = data_of(value)[1] if isinstance(value, str) else None
    if data is None and path[0] in ("file", "input_audio"):
        data = value
    return bool(data) and sealed.is_base64(data)


def _shaped(container: Any, path: Path) -> bool:
    if container is UNKNOWN:
        return True
    value = at(container, path)
    return isinstance(value, str) and _SHAPE.fullmatch(value) is not None
