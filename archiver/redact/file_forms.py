"""What a file is: JSON lines, one JSON document, or text and bytes; and what a dialect keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from archiver import jsonio
from archiver.errors import ArchiverError, InputNotFoundError, RefusedError
from archiver.redact.scrub import ItemOpaque, never
from archiver.transcripts import detect, get_dialect
from archiver.transcripts.dialect import Path as Steps
from archiver.transcripts.jsontext import BLANKS
from archiver.transcripts.places import at
from archiver.transcripts.reader import MAX_ITEM, recognise
from archiver.transcripts.source import CHUNK, FileSource

DOCUMENT_LIMIT: Final = 64 << 20
"""Bytes of a JSON document that is judged whole; a larger one is text."""
_HEAD: Final = 1 << 20
_SAMPLE: Final = 200
_OPENINGS: Final = (b"{", b"[")


class Bytes(Protocol):
    """What can be read: `blocks` gives all of it, each time it is called."""

    @property
    def size(self) -> int: ...

    def blocks(self) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def blocks(self) -> Iterator[bytes]:
        return (self.data[start : start + CHUNK] for start in range(0, len(self.data), CHUNK))


@dataclass(frozen=True, slots=True)
class Shape:
    """How a file is read, and what in it a dialect keeps byte for byte."""

    form: str
    """`lines`, `document` or `raw`."""
    dialect: str = detect.OPAQUE
    opaque: ItemOpaque = never


def shape_of(source: Bytes) -> Shape:
    """How to read it; `InputNotFoundError` and `RefusedError` where the file is gone or another one."""
    if not isinstance(source, FileSource):
        return _held_shape(source)
    try:
        dialect, part = recognise(source)
    except (InputNotFoundError, RefusedError):
        raise
    except ArchiverError:
        return _plain(source)
    if dialect == detect.OPAQUE or part.media == "raw":
        return _plain(source)
    of_items = get_dialect(dialect).opaque
    opaque = _inside(of_items, part.nested_at) if part.nested_at else of_items
    if part.media == "json":
        return _plain(source, dialect, _in_document(of_items, opaque, part.items_at))
    return Shape("lines", dialect, opaque) if _has_lines(source) else _plain(source, dialect, opaque)


def _held_shape(source: Bytes) -> Shape:
    head = next(source.blocks(), b"")[:_HEAD].split(b"\n")
    values = [parsed(line) for line in head[: min(_SAMPLE, max(1, len(head) - 1))]]
    dialect = detect.of_lines(values) if values and None not in values else detect.OPAQUE
    if dialect == detect.OPAQUE or not _has_lines(source):
        return _plain(source)
    return Shape("lines", dialect, get_dialect(dialect).opaque)


def _plain(source: Bytes, dialect: str = detect.OPAQUE, opaque: ItemOpaque = never) -> Shape:
    """A JSON document of bearable size as such, everything else as text or bytes."""
    start = next(source.blocks(), b"")[:64].lstrip()[:1]
    if source.size > DOCUMENT_LIMIT or start not in _OPENINGS:
        return Shape("raw", dialect)
    value = parsed(b"".join(source.blocks()))
    return Shape("raw", dialect) if value is None else Shape("document", dialect, opaque)


def _inside(opaque: ItemOpaque, nested_at: Steps) -> ItemOpaque:
    """The word on a leaf of an element that holds items itself."""
    depth = len(nested_at)

    def of_element(path: Steps, element: Any) -> bool:
        if len(path) > depth and path[:depth] == nested_at:
            return opaque(path[depth + 1 :], at(element, path[: depth + 1]))
        return opaque((0, *path), [element])

    return of_element


def _in_document(of_header: ItemOpaque, of_item: ItemOpaque, items_at: Steps) -> ItemOpaque:
    """The word on a leaf of a document whose items are an array at `items_at`."""
    depth = len(items_at)

    def of_document(path: Steps, document: Any) -> bool:
        if len(path) > depth and path[:depth] == items_at:
            return of_item(path[depth + 1 :], at(document, path[: depth + 1]))
        return of_header(path, document)

    return of_document


def _has_lines(source: Bytes) -> bool:
    """Whether no line is too long to be an item, and the first one is JSON by itself."""
    length = 0
    first: bytes | None = b""
    for block in source.blocks():
        if first is not None:
            first += block
            line, end, _ = first.lstrip().partition(b"\n")
            if end and not is_json(line):
                return False
            first = None if end else first
        pieces = block.split(b"\n")
        for number, piece in enumerate(pieces):
            length = len(piece) + (length if number == 0 else 0)
            if length > MAX_ITEM:
                return False
    return True


def is_json(line: bytes) -> bool:
    """True for one JSON value, and for blanks."""
    return not line.strip(BLANKS) or parsed(line) is not None


def parsed(text: bytes) -> Any:
    """The JSON value of a text, or None."""
    try:
        return jsonio.loads(text)
    except (ValueError, RecursionError):
        return None
