"""Which leaves of an Anthropic message are opaque: signatures, encrypted reasoning, ids, base64 files.

A leaf is opaque by its key, its container and its shape together. A tool's input or output may well hold a
key named `signature` or `id`, and what stands there is text like any other.
"""

from __future__ import annotations

import re
from typing import Any, Final

from archiver.transcripts import shapes
from archiver.transcripts.blocks import CLIENT_CALL, SERVER_CALLS
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at

UNKNOWN: Final = object()
"""Stands for an item that the caller did not give."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]*+=*+[\r\n]*+")
_ID = re.compile(r"[A-Za-z0-9_.:@/\-]{1,200}")
_ENCRYPTED: Final = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
_ID_KEYS: Final = frozenset({"id", "tool_use_id", "file_id", "tool_id"})


def in_content(path: Path, content: Any) -> bool:
    """True for an opaque leaf of a content; `path` starts with the index of a block.

    With `UNKNOWN` as content key and place decide, and what they cannot tell is not opaque.
    """
    if len(path) < 2 or not isinstance(path[0], int):
        return False
    if content is UNKNOWN:
        return _in_block(path[1:], UNKNOWN, UNKNOWN)
    block = at(content, path[:1])
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and _in_block(path[1:], block, kind)


def is_id(value: Any) -> bool:
    """True for text that has the shape of an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def is_base64(value: Any) -> bool:
    """True for text that is base64, line ends allowed."""
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


def _in_block(path: Path, block: Any, kind: Any) -> bool:
    key = path[0]
    if len(path) == 1:
        return _own_key(key, kind) and _shaped(block, path)
    if key == "source":
        return kind in ("image", "document") and _in_source(path[1:], at(block, ("source",)))
    if key == "content" and kind != CLIENT_CALL:
        inner = UNKNOWN if block is UNKNOWN else at(block, ("content",))
        return _in_result(path[1:], inner, kind)
    if key == "citations":
        return len(path) == 3 and path[2] in _ENCRYPTED and _shaped(block, path)
    return path in (("caller", "tool_id"), ("container", "id")) and _shaped(block, path)


def _own_key(key: object, kind: Any) -> bool:
    """True where a block of that kind keeps opaque text right under `key`."""
    if kind is UNKNOWN:
        return key in ("signature", "data", "id", "tool_use_id")
    if key == "signature":
        return bool(kind == "thinking")
    if key == "data":
        return bool(kind == "redacted_thinking")
    if key == "id":
        return kind == CLIENT_CALL or kind in SERVER_CALLS
    if key == "tool_use_id":
        return bool(kind.endswith("tool_result"))
    return key in _ENCRYPTED and kind in ("compaction", "web_search_result")


def _in_source(path: Path, source: Any) -> bool:
    """In an image or document: base64 text and file ids; a source of type text is text."""
    if not isinstance(source, dict):
        return False
    if path == ("data",):
        return source.get("type") == "base64" and _shaped(source, path)
    if path == ("file_id",):
        return source.get("type") == "file" and _shaped(source, path)
    return path[:1] == ("content",) and _picture(path[1:], source.get("content"))


def _picture(path: Path, content: Any) -> bool:
    return (
        len(path) > 2
        and path[1] == "source"
        and at(content, (path[0], "type")) in ("image", "document")
        and _in_source(path[2:], at(content, path[:2]))
    )


def _in_result(path: Path, content: Any, kind: Any) -> bool:
    """In a result: pictures, and encrypted fields where the provider itself wrote the result."""
    if content is UNKNOWN:
        return False
    if kind == "tool_result" or not kind.endswith("_tool_result"):
        return _picture(path, content)
    if path[-1] in _ENCRYPTED:
        return _shaped(content, path)
    return _picture(path, content) or (
        path == ("content", "source", "data") and _in_source(("data",), at(content, path[:-1]))
    )


def _shaped(container: Any, path: Path) -> bool:
    if container is UNKNOWN:
        return True
    value = at(container, path)
    if path[-1] in _ID_KEYS:
        return is_id(value)
    if path[0] == "data" and len(path) == 1 and container.get("type") == "base64":
        return shapes.is_media(value)
    return shapes.is_blob(value)
