"""The native file of a part, rebuilt from its items: what the harness or the provider reads."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

from archiver import jsonio
from archiver.errors import InvalidDocumentError
from archiver.model import TranscriptPart
from archiver.transcripts import nested
from archiver.transcripts.places import at, put


def write_native(part: TranscriptPart, out: Callable[[bytes], object]) -> None:
    """Write the file of `part` piece by piece.

    JSONL: one item a line, each line with its end. JSON: the header with the items back in their array, one
    a line; a document without an array is its header. Raw: the chunks. `InvalidDocumentError` when a JSON
    part has no empty array where its items belong. With `nested_at`, elements are put together again first.
    """
    if part.media != "json":
        for block in _blocks(part):
            out(block)
        return
    if not part.items_at and part.header != []:
        out(jsonio.dumps(part.header) + b"\n")
        return
    before, after = _around(part)
    out(before)
    separator = b"\n"
    for line in nested.joined(part.items.lines(), part.nested_at) if part.nested_at else part.items.lines():
        out(separator)
        out(line)
        separator = b",\n"
    out(b"]" if separator == b"\n" else b"\n]")
    out(after)


def _blocks(part: TranscriptPart) -> Iterator[bytes]:
    if not part.nested_at:
        return part.items.blocks()
    return (element + b"\n" for element in nested.joined(part.items.lines(), part.nested_at))


def _around(part: TranscriptPart) -> tuple[bytes, bytes]:
    """The JSON text before and after the items."""
    if at(part.header, part.items_at) != []:
        raise InvalidDocumentError(
            f"the header of {part.name} has no empty array for its items",
            remedy="restore the part from an earlier checkpoint",
        )
    mark = secrets.token_hex(16)
    marked: Any = put(part.header, part.items_at, mark)
    before, after = jsonio.dumps(marked).split(f'"{mark}"'.encode())
    return before + b"[", after + b"\n"
