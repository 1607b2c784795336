"""Which leaves of a Responses item are opaque: what is encrypted, ids, base64 files.

A leaf is opaque by its key, its container and its shape together, as in `sealed`: a tool's input or output
may hold a key named `id` or `encrypted_content`, and what stands there is text like any other.
"""

from __future__ import annotations

import re
from typing import Any, Final

from archiver.transcripts import sealed
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at
from archiver.transcripts.responses_edits import blobs, data_url
from archiver.transcripts.responses_items import KINDS, kind_of

_ENCRYPTED: Final = "encrypted_content"
_IDS: Final = frozenset({"id", "call_id", "approval_request_id", "container_id", "previous_response_id"})
_PART_IDS: Final = frozenset({"file_id", "container_id", "encrypted_content"})
_PASSED_ON: Path = ("internal_chat_message_metadata_passthrough", "turn_id")
_SEALED: Final = re.compile(r"[!-~]{32,}")
"""Encrypted content as providers write it, and never shorter than that."""


def in_item(path: Path, item: Any) -> bool:
    """True for an opaque leaf of a Responses item; with `UNKNOWN` as item the key alone decides."""
    if item is sealed.UNKNOWN:
        return path in ((_ENCRYPTED,), ("id",), ("call_id",))
    kind = kind_of(item)
    if not kind or not path:
        return False
    if len(path) == 1:
        return _own_key(path[0], item, known=kind in KINDS)
    if path == _PASSED_ON:
        return sealed.is_id(at(item, path))
    if path[0] not in ("content", "output", "outputs", "action"):
        return False
    return _in_part(path, item)


def _own_key(key: str | int, item: Any, *, known: bool) -> bool:
    value = at(item, (key,))
    if key in _IDS:
        return sealed.is_id(value)
    if key == _ENCRYPTED:
        return is_sealed(value)
    return known and key == "result" and any(blob.path == (key,) for blob in blobs(item)) and _base64(value)


def _in_part(path: Path, item: Any) -> bool:
    value = at(item, path)
    if path[-1] in _PART_IDS and len(path) <= 5 and path[0] != "action":
        return sealed.is_id(value) or (path[-1] == _ENCRYPTED and is_sealed(value))
    if path == ("output", "image_url"):
        return any(_base64(blob.data) for blob in data_url(value, path))
    return any(blob.path == path and _base64(blob.data) for blob in blobs(item))


def is_sealed(value: Any) -> bool:
    """True for text that has the shape of something encrypted."""
    return isinstance(value, str) and _SEALED.fullmatch(value) is not None


def is_broken(value: Any) -> bool:
    """True where encrypted content should stand and something else does, such as the word REDACTED."""
    return isinstance(value, str) and not is_sealed(value)


def _base64(value: Any) -> bool:
    return sealed.is_base64(value)
