"""Which leaves of a Responses item are opaque: what is encrypted, ids, base64 files.

A leaf is opaque by the kind of its item, its exact place and its shape together, and only where the provider
writes it. A tool's input or output may hold a key named `id` or `encrypted_content`, and what stands there is
text like any other; so is everything in an item of an unknown kind.
"""

from __future__ import annotations

from typing import Any, Final

from archiver.transcripts import sealed, shapes
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at
from archiver.transcripts.responses_edits import blobs
from archiver.transcripts.responses_items import ANSWERS, KINDS, RESULTS, SEALED, kind_of

_ENCRYPTED: Final = "encrypted_content"
_HOLDERS: Final = {
    "id": KINDS,
    "call_id": ANSWERS.keys() | RESULTS,
    "approval_request_id": frozenset({"mcp_approval_response", "mcp_call"}),
    "container_id": frozenset({"code_interpreter_call"}),
}
"""Which kinds of items have an id of that name."""
_FILES: Final = frozenset({"input_file", "input_image"})
_CITED: Final = frozenset({"file_id", "container_id"})
_PASSED_ON: Path = ("internal_chat_message_metadata_passthrough", "turn_id")
_CITATION: Final = 5
_SCREENSHOT: Path = ("output", "image_url")


def in_item(path: Path, item: Any) -> bool:
    """True for an opaque leaf of a Responses item; with `UNKNOWN` as item the key alone decides."""
    if item is sealed.UNKNOWN:
        return path in ((_ENCRYPTED,), ("id",), ("call_id",))
    kind = kind_of(item)
    if kind not in KINDS or not path:
        return False
    value = at(item, path)
    if path == (_ENCRYPTED,):
        return kind in SEALED and shapes.is_blob(value)
    if len(path) == 1 and path[0] in _HOLDERS:
        return kind in _HOLDERS[str(path[0])] and shapes.is_id(value)
    if path == _PASSED_ON:
        return shapes.is_uuid(value)
    if kind == "message" and path[0] == "content" and path[-1] in _CITED:
        return _names_file(path, item) and shapes.is_id(value)
    return shapes.is_media(value) and _holds_media(path, item, kind)


def _names_file(path: Path, item: Any) -> bool:
    """True for the file of a part of a message, and for the files that its annotations name."""
    if len(path) == _CITATION:
        return path[2] == "annotations"
    return len(path) == len(("content", 0, "file_id")) and at(item, (*path[:2], "type")) in _FILES


def _holds_media(path: Path, item: Any, kind: str) -> bool:
    if path == _SCREENSHOT:
        return kind == ANSWERS["computer_call"]
    return any(blob.path == path for blob in blobs(item))


def is_sealed(value: Any) -> bool:
    """True for text that has the shape of something encrypted."""
    return shapes.is_sealed(value)


def is_broken(value: Any) -> bool:
    """True where encrypted content should stand and something else does, such as the word REDACTED."""
    return isinstance(value, str) and not is_sealed(value)
