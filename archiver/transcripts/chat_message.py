"""Messages of Chat Completions: what they say, and edits that copy on write.

Shapes as in the Chat Completions reference (platform.openai.com/docs/api-reference/chat) and as servers that
are compatible with it add to them (DeepSeek, OpenRouter, LiteLLM). A *message* is an object with `role` and
`content`: text, a list of parts, or null. Nothing here changes an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from archiver import jsonio
from archiver.transcripts import sealed
from archiver.transcripts.checks import is_empty_text
from archiver.transcripts.dialect import Blob, Call, Path, Role, ToolResult
from archiver.transcripts.outcome import failed
from archiver.transcripts.places import at, put

ROLES: Final[dict[Any, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
REASONING_KEYS: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "codex_reasoning_items",
)
REASONING_PARTS: Final = frozenset({"thinking", "redacted_thinking"})
PROVIDER: Final = "provider_specific_fields"

_LEGACY: Final = "function_call:"
"""Begins what stands for the id that the older `function_call` does not have; the name follows."""
_SERVER_CALL: Final = "srvtoolu_"
"""Begins ids of calls that the provider answered itself, which a proxy shows among the others."""
_DATA_URL = re.compile(r"data:([!-+\--~]{0,200}?)(?:;[!-+\--~]{1,200}?)?;base64,", re.IGNORECASE)
_CALLED: Final = ("function", "custom")
_PART_LISTS: Final = ("content", "images")
_URLS: Final[tuple[Path, ...]] = (
    ("image_url", "url"),
    ("image_url",),
    ("video_url", "url"),
    ("file", "file_data"),
)
_SHOWN: Final[tuple[Path, ...]] = (*_URLS, ("input_audio", "data"))


def role_of(item: Any) -> Role:
    """The role of a message; `meta` for one that the API does not know, and for what is no message."""
    role = item.get("role") if isinstance(item, dict) else None
    return ROLES.get(role, "meta") if isinstance(role, str) else "meta"


def texts(content: Any) -> tuple[str, ...]:
    """The texts of a content, refusals among them."""
    if isinstance(content, str):
        return (content,)
    found = []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get(kind) if kind in ("text", "refusal") else None
        if isinstance(text, str):
            found.append(text)
    return tuple(found)


def calls(item: dict[str, Any]) -> tuple[Call, ...]:
    """The calls of a message; one without an id is none, because nothing could answer it."""
    listed = item.get("tool_calls")
    found = [_call(entry) for entry in listed] if isinstance(listed, list) else []
    legacy = item.get("function_call")
    if not found and isinstance(legacy, dict) and isinstance(legacy.get("name"), str):
        found = [Call(_LEGACY + legacy["name"], legacy["name"], arguments(legacy.get("arguments")))]
    return tuple(call for call in found if call is not None)


def _call(entry: Any) -> Call | None:
    own = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(own, str) or not own:
        return None
    kind = "custom" if isinstance(entry.get("custom"), dict) else "function"
    called = entry.get(kind)
    called = called if isinstance(called, dict) else {}
    name = called.get("name")
    said = called.get("input") if kind == "custom" else arguments(called.get("arguments"))
    return Call(own, name if isinstance(name, str) else "", said, own.startswith(_SERVER_CALL))


def arguments(text: Any) -> Any:
    """The arguments of a call as an object, or as they stand where they are no JSON of one."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return text
    try:
        value = jsonio.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def result(item: Any) -> ToolResult | None:
    """The result that a message is, if it is one; without an id it answers the empty one, that of no call."""
    if role_of(item) != "tool":
        return None
    name, own = item.get("name"), item.get("tool_call_id")
    if item["role"] == "function":
        own = _LEGACY + name if isinstance(name, str) else None
    text = "\n".join(texts(item.get("content")))
    return ToolResult(own if isinstance(own, str) else "", text, failed(text))


def renamed_call(
    item: dict[str, Any], call_id: str, new_id: str | None, occurrence: int
) -> dict[str, Any] | None:
    """The message with another id for one of its calls with that id, or without that call.

    A message of which every call was written before is a copy, and None.
    """
    listed = item.get("tool_calls")
    places = [
        place
        for place, entry in enumerate(listed if isinstance(listed, list) else ())
        if isinstance(entry, dict) and entry.get("id") == call_id
    ]
    if not isinstance(listed, list) or occurrence >= len(places):
        return item
    place = places[occurrence]
    new = [] if new_id is None else [{**listed[place], "id": new_id}]
    made = [*listed[:place], *new, *listed[place + 1 :]]
    return {**item, "tool_calls": made} if made else None


def renamed_tool(item: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The message with other names for the tools that it calls, or of which it is a result."""
    made = item
    for path in _named(item):
        new = names.get(at(item, path))
        if new is not None:
            made = put(made, path, new)
    return made


def _named(item: dict[str, Any]) -> Iterator[Path]:
    """Where a message holds the name of a tool as a text."""
    listed = item.get("tool_calls")
    called = range(len(listed) if isinstance(listed, list) else 0)
    places: list[Path] = [("tool_calls", place, kind, "name") for place in called for kind in _CALLED]
    places.append(("function_call", "name"))
    if role_of(item) == "tool":
        places += [("name",), ("tool_name",)]
    for path in places:
        if isinstance(at(item, path), str):
            yield path


def answer(call: Call, text: str) -> dict[str, Any]:
    """A new message that answers a call."""
    if call.id.startswith(_LEGACY):
        return {"role": "function", "name": call.id.removeprefix(_LEGACY), "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def has_reasoning(item: dict[str, Any]) -> bool:
    """True for a message that holds reasoning, in plain or sealed."""
    if any(item.get(key) for key in REASONING_KEYS):
        return True
    content = item.get("content")
    return isinstance(content, list) and any(map(is_reasoning, content))


def without_reasoning(item: dict[str, Any]) -> dict[str, Any]:
    """The message without reasoning and without a proxy's copies of it; the same object if there is none."""
    if not has_reasoning(item):
        return item
    made = {key: value for key, value in item.items() if key not in REASONING_KEYS}
    copies = made.get(PROVIDER)
    if isinstance(copies, dict) and any(key in copies for key in REASONING_KEYS):
        made[PROVIDER] = {key: value for key, value in copies.items() if key not in REASONING_KEYS}
    content = made.get("content")
    if isinstance(content, list):
        made["content"] = [part for part in content if not is_reasoning(part)]
    return made


def is_reasoning(part: Any) -> bool:
    """True for a part of a content that is reasoning."""
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and kind in REASONING_PARTS


def says_nothing(item: dict[str, Any]) -> bool:
    """True for a message that its provider would refuse because nothing is in it."""
    if item.get("tool_calls") or item.get("function_call") or item.get("refusal") or item.get("audio"):
        return False
    content = item.get("content")
    if isinstance(content, list):
        return all(map(is_empty_text, content))
    return content is None or (isinstance(content, str) and not content.strip())


def blobs(item: Any) -> Iterator[Blob]:
    """Images, audio and files that stand in a message as base64."""
    if not isinstance(item, dict):
        return
    for key in _PART_LISTS:
        parts = item.get(key)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, dict):
                yield from _in_part(part, (key, index))
    data = at(item, ("audio", "data"))
    if sealed.is_base64(data) and data:
        yield Blob(("audio", "data"), "application/octet-stream", data)


def _in_part(part: dict[str, Any], place: Path) -> Iterator[Blob]:
    for path in _URLS:
        found = at(part, path)
        if isinstance(found, str):
            media, data = data_of(found)
            if data is None and path[0] == "file" and sealed.is_base64(found):  # some leave the rest out
                data = found
            if data:
                yield Blob((*place, *path), media, data)
    sound = part.get("input_audio")
    if isinstance(sound, dict) and isinstance(sound.get("data"), str):
        kind = sound.get("format")
        yield Blob((*place, "input_audio", "data"), f"audio/{kind}", sound["data"])


def pictures(item: Any) -> Iterator[tuple[Path, int]]:
    """Where a message holds the base64 of something that is no text, and how much that is."""
    content = item.get("content") if isinstance(item, dict) else None
    for index, part in enumerate(content if isinstance(content, list) else ()):
        for path in _SHOWN if isinstance(part, dict) else ():
            found = at(part, path)
            held = path[0] in ("file", "input_audio")
            if isinstance(found, str) and (held or found.startswith("data:")):
                yield ("content", index, *path), len(found)


def data_of(url: str) -> tuple[str, str | None]:
    """The media type of a data URL and its base64 text, or None where it is none."""
    found = _DATA_URL.match(url)
    if found is None:
        return "application/octet-stream", None
    return found[1] or "application/octet-stream", url[found.end() :]


def replace_blob(item: dict[str, Any], path: Path, text: str) -> Any:
    """The message with the part around a payload replaced by a text part; spoken words by the text."""
    return (
        put(item, path, text) if path[0] == "audio" else put(item, path[:2], {"type": "text", "text": text})
    )
