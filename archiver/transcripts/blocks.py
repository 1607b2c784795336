"""Content blocks of Anthropic messages: what they say, and edits that copy on write.

Shapes as in the Messages API reference (platform.claude.com/docs/en/api/messages). A *message* is
`{"role": …, "content": str | [block, …]}`; a *content* is its second value. Nothing here changes an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from archiver.transcripts.dialect import Blob, Call, Path, ToolResult, Usage
from archiver.transcripts.places import put

CLIENT_CALL = "tool_use"
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
REASONING = frozenset({"thinking", "redacted_thinking"})
_BLOB_BLOCKS = frozenset({"image", "document"})


class Said(NamedTuple):
    """What a content says: client and server calls, results of client calls, its texts, and reasoning."""

    calls: tuple[Call, ...] = ()
    results: tuple[ToolResult, ...] = ()
    texts: tuple[str, ...] = ()
    has_reasoning: bool = False
    compacted: bool = False


def said(content: Any) -> Said:
    """Read a content; unknown blocks and wrong shapes say nothing, but a result without an id stays one."""
    if isinstance(content, str):
        return Said(texts=(content,))
    if not isinstance(content, list):
        return Said()
    calls: list[Call] = []
    results: list[ToolResult] = []
    texts: list[str] = []
    kinds = set()
    for block in content:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if not isinstance(kind, str):
            continue
        kinds.add(kind)
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind == "tool_result":
            results.append(_result(block))
        elif (kind == CLIENT_CALL or kind in SERVER_CALLS) and _id(block.get("id")):
            calls.append(_call(block, elsewhere=kind != CLIENT_CALL))
    return Said(
        tuple(calls), tuple(results), tuple(texts), not REASONING.isdisjoint(kinds), "compaction" in kinds
    )


def _call(block: dict[str, Any], *, elsewhere: bool) -> Call:
    name = block.get("name")
    return Call(block["id"], name if isinstance(name, str) else "", block.get("input"), elsewhere)


def _result(block: dict[str, Any]) -> ToolResult:
    call_id = _id(block.get("tool_use_id"))
    return ToolResult(call_id, joined_text(block.get("content")), block.get("is_error") is True)


def _id(value: Any) -> str:
    """An id; what is no text is none, and is written as the empty id that no call has."""
    return value if isinstance(value, str) else ""


def has_result(content: Any) -> bool:
    """True when a content holds a result of a client call."""
    return isinstance(content, list) and any(map(_is_result, content))


def joined_text(content: Any) -> str:
    """The text of a content, blocks joined by line ends; what is not text is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


def usage_of(usage: Any) -> Usage | None:
    """Tokens of a response: `tokens_in` were not read from the cache, `tokens_cached` were."""
    if not isinstance(usage, dict):
        return None
    get = usage.get
    return Usage(
        _count(get("input_tokens")) + _count(get("cache_creation_input_tokens")),
        _count(get("output_tokens")),
        _count(get("cache_read_input_tokens")),
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def blobs(content: Any, base: Path) -> Iterator[Blob]:
    """Base64 images and documents, also inside results; `base` is the path of `content`."""
    if not isinstance(content, list):
        return
    for index, block in enumerate(content):
        kind = _kind(block)
        place = (*base, index)
        if kind in _BLOB_BLOCKS:
            yield from _source_blobs(block.get("source"), (*place, "source"))
        elif kind == "tool_result":
            yield from blobs(block.get("content"), (*place, "content"))


def _source_blobs(source: Any, place: Path) -> Iterator[Blob]:
    if not isinstance(source, dict):
        return
    data, media = source.get("data"), source.get("media_type")
    if source.get("type") == "base64" and isinstance(data, str):
        yield Blob((*place, "data"), media if isinstance(media, str) else "application/octet-stream", data)
    elif source.get("type") == "content":
        yield from blobs(source.get("content"), (*place, "content"))


def replace_blob(item: Any, path: Path, text: str) -> Any:
    """The item with the block around `path` (`…, "source", "data"`) replaced by a text block."""
    return put(item, path[:-2], {"type": "text", "text": text})


def stub_result(content: Any, call_id: str, text: str) -> Any:
    """The content with what that call's result holds replaced by `text`; the same object if there is none."""
    return _changed(content, lambda block: {**block, "content": text} if _answers(block, call_id) else block)


def without_reasoning(content: Any) -> Any:
    """The content without reasoning blocks; the same object if there are none."""
    if not isinstance(content, list):
        return content
    kept = [block for block in content if _kind(block) not in REASONING]
    return content if len(kept) == len(content) else kept


def with_results(content: Any, calls: Sequence[Call], text: Any, is_error: bool = True) -> Any:
    """The content with (error) results for `calls` behind its leading results, before everything else."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    if isinstance(content, list):
        blocks = list(content)
    held = {_id(block.get("tool_use_id")) for block in blocks if isinstance(block, dict)}
    due = [call for call in calls if call.id not in held]
    if not due:
        return content
    leading = 0
    while leading < len(blocks) and _is_result(blocks[leading]):
        leading += 1
    return [*blocks[:leading], *error_blocks(due, text, is_error), *blocks[leading:]]


def result_content(content: Any, call_id: str, occurrence: int) -> Any:
    """What the `occurrence`-th (0-based) result of that call holds, as it stands; "" where there is none."""
    places = _places(content, lambda block: _answers(block, call_id))
    return content[places[occurrence]].get("content", "") if occurrence < len(places) else ""


def without_result(content: Any, call_id: str, occurrence: int) -> Any:
    """The content without the `occurrence`-th (0-based) result of that call, or the same object."""
    if not isinstance(content, list):
        return content
    places = _places(content, lambda block: _answers(block, call_id))
    if occurrence >= len(places):
        return content
    gone = places[occurrence]
    return [*content[:gone], *content[gone + 1 :]]


def renamed_call(content: Any, call_id: str, new_id: str | None, occurrence: int) -> Any:
    """The content with another id for one of the client calls with that id, or without that call."""
    places = _places(content, lambda block: _kind(block) == CLIENT_CALL and _id(block.get("id")) == call_id)
    if occurrence >= len(places):
        return content
    place = places[occurrence]
    new = [] if new_id is None else [{**content[place], "id": new_id}]
    return [*content[:place], *new, *content[place + 1 :]]


def renamed_result(content: Any, call_id: str, new_id: str, occurrence: int) -> Any:
    """The content with another id for one of the results of that call, or the same object."""
    places = _places(content, lambda block: _answers(block, call_id))
    if occurrence >= len(places):
        return content
    place = places[occurrence]
    return [*content[:place], {**content[place], "tool_use_id": new_id}, *content[place + 1 :]]


def renamed_tool(content: Any, names: Mapping[str, str]) -> Any:
    """The content with other names for the tools it calls; a name that is no text counts as the empty one."""

    def change(block: Any) -> Any:
        if _kind(block) != CLIENT_CALL and _kind(block) not in SERVER_CALLS:
            return block
        name = block.get("name")
        new = names.get(name if isinstance(name, str) else "")
        return block if new is None else {**block, "name": new}

    return _changed(content, change)


def _places(content: Any, wanted: Callable[[Any], bool]) -> list[int]:
    return [
        index for index, block in enumerate(content if isinstance(content, list) else ()) if wanted(block)
    ]


def error_blocks(calls: Sequence[Call], text: Any, is_error: bool = True) -> list[dict[str, Any]]:
    """One (error) result a call."""
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}
        for call in calls
    ]


def _changed(content: Any, change: Any) -> Any:
    if not isinstance(content, list):
        return content
    blocks = [change(block) for block in content]
    return (
        content if all(new is old or new == old for new, old in zip(blocks, content, strict=True)) else blocks
    )


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _answers(block: Any, call_id: str) -> bool:
    return _is_result(block) and _id(block.get("tool_use_id")) == call_id
