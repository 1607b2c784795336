"""Reads transcript files as they lie on disk: finds their files, tells their dialect, and gives their items.

The items are lazy: each pass reads the file, bounded to the size it had when `read` looked at it, parses
each item once and deals with damage on the way. Nothing is written anywhere.
"""

from __future__ import annotations

import pathlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from archiver import jsonio
from archiver.errors import MalformedTranscriptError, UsageError
from archiver.model import Items, Transcript, TranscriptPart
from archiver.model.items import PairSource
from archiver.transcripts import detect, document, nested, sniff
from archiver.transcripts.detect import ANTHROPIC, OPAQUE, OPENAI_RESPONSES
from archiver.transcripts.dialect import Path
from archiver.transcripts.document import NotSplitError, Scan
from archiver.transcripts.elements import Elements, Values
from archiver.transcripts.jsonl import Dropped, JsonLines
from archiver.transcripts.jsontext import BLANKS
from archiver.transcripts.names import safe_name
from archiver.transcripts.places import at
from archiver.transcripts.sessions import Found, gather
from archiver.transcripts.source import CHUNK, FileSource

__all__ = ["MAX_ITEM", "Dropped", "Reading", "pairs", "read", "recognise"]

MAX_ITEM: Final = 16 << 20
"""Bytes of an item: real ones have up to 5 MB, and one made of escapes costs redaction 37 times its size."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A transcript with lazy items, the bytes of its files, and what passes over them have dropped so far."""

    transcript: Transcript
    total_bytes: int
    dropped: list[Dropped] = field(default_factory=list)
    files: tuple[Found, ...] = ()
    """The files, in the order of the parts."""
    lines: dict[str, JsonLines] = field(default_factory=dict)
    """Of each part whose items are lines, who reads them."""


def read(paths: Sequence[pathlib.Path], *, salvage: bool = False, max_item: int = MAX_ITEM) -> Reading:
    """Read the transcript that `paths` name.

    A path is a file, or the folder of one session; sub-agent files of Claude Code join theirs. Every file
    is read as something: what is no known dialect is `opaque`. A pass over the items may raise
    `MalformedTranscriptError` (damage before the end, unless `salvage`), `LimitExceededError` (an item larger
    than `max_item` bytes) and `RefusedError` (the file was replaced meanwhile). Errors here:
    `InputNotFoundError` for what is no readable regular file, `UsageError` for files of two dialects or a
    folder without exactly one session.
    """
    files = gather(paths)
    dropped: list[Dropped] = []
    reader = _Reader(salvage, max_item, dropped)
    read_parts = [reader.part(found) for found in files]
    dialects = {dialect: part.name for dialect, part in read_parts if dialect != OPAQUE}
    if len(dialects) > 1:
        listed = ", ".join(f"{name} is {dialect}" for dialect, name in sorted(dialects.items()))
        raise UsageError(
            f"these files are not one transcript: {listed}", remedy="archive them one after the other"
        )
    transcript = Transcript(dialect=next(iter(dialects), OPAQUE), parts=tuple(part for _, part in read_parts))
    size = sum(found.source.size for found in files)
    return Reading(transcript, size, dropped, tuple(files), reader.lines)


def recognise(source: FileSource) -> tuple[str, TranscriptPart]:
    """The dialect of one file, whatever lies beside it, and the file as a part with lazy items.

    Raises as `read` does.
    """
    return _Reader(salvage=False, max_item=MAX_ITEM, dropped=[]).part(
        Found(safe_name(source.path.name), source)
    )


def pairs(items: Items) -> Iterator[tuple[bytes, Any]]:
    """Each item as its JSON text and its value, parsed once; raw items have none (`TypeError`)."""
    return items.pairs()


class _Reader:
    def __init__(self, salvage: bool, max_item: int, dropped: list[Dropped]) -> None:
        self._salvage = salvage
        self._max_item = max_item
        self._dropped = dropped
        self.lines: dict[str, JsonLines] = {}

    def part(self, found: Found) -> tuple[str, TranscriptPart]:
        """The dialect of a file, and the file as a part."""
        if found.source.head(len(BOM_UTF8)) == BOM_UTF8:  # no JSON starts so
            return _raw(found)
        values = sniff.first_lines(found.source)
        try:
            if values is not None:
                dialect = detect.of_lines(values)
                if dialect == ANTHROPIC:  # the first lines may mean the same to everybody, and later ones not
                    dialect = detect.of_lines([*values, *sniff.last_lines(found.source)])
                if dialect != OPAQUE:
                    return self._lines(found, dialect)
                if len(values) > 1:
                    return self._conversations(found, values)
            return self._document(found)
        except NotSplitError:
            return _raw(found)

    def _lines(self, found: Found, dialect: str, nested_at: Path = ()) -> tuple[str, TranscriptPart]:
        lines = JsonLines(found.source, found.name, self._max_item, self._salvage, self._dropped)
        self.lines[found.name] = lines
        return dialect, _jsonl(found, lines.pairs, nested_at)

    def _conversations(self, found: Found, values: list[Any]) -> tuple[str, TranscriptPart]:
        """Lines that hold a conversation each."""
        dialect, nested_at = detect.of_conversations(values)
        return self._lines(found, dialect, nested_at) if dialect != OPAQUE else _raw(found)

    def _document(self, found: Found) -> tuple[str, TranscriptPart]:
        scan = document.scan(found.source, self._max_item)
        if scan.more:
            return self._several(found, scan)
        made = self._messages(found, scan) or self._response(found, scan)
        if made is None:
            return _raw(found)
        if scan.padding:
            text = "padded with NUL bytes"
            self._dropped.append(
                Dropped(found.name, "tail", scan.padding, _line_of(found.source, scan), text)
            )
        return made

    def _several(self, found: Found, scan: Scan) -> tuple[str, TranscriptPart]:
        """Values one after the other: long lines, or each value over several lines."""
        if scan.end > self._max_item:
            raise NotSplitError("the first value is too large for an item")
        first = document.first_value(found.source, scan.end).strip(BLANKS)
        if b"\n" not in first:
            try:
                head = [jsonio.loads(first)]
            except ValueError as error:
                raise NotSplitError("the first line is not JSON") from error
            dialect = detect.of_lines(head)
            if dialect != OPAQUE:
                return self._lines(found, dialect)
            if (several := self._conversations(found, head))[0] != OPAQUE:
                return several
        values = Values(found.source, found.name, self._max_item)
        try:
            sample = [value for _, value in islice(values.pairs(), _SAMPLE)]
        except MalformedTranscriptError:
            return _raw(found)
        nested_at: Path = ()
        dialect = detect.of_lines(sample)
        if dialect == OPAQUE:
            dialect, nested_at = detect.of_conversations(sample)
        return (dialect, _jsonl(found, values.pairs, nested_at)) if dialect != OPAQUE else _raw(found)

    def _messages(self, found: Found, scan: Scan) -> tuple[str, TranscriptPart] | None:
        """The last array of messages in a known dialect; the last of several requests has them all."""
        for array in reversed(scan.arrays):
            if not array.uniform:
                continue
            try:
                elements = Elements(found.source, found.name, array)
                part = _json(found, scan, elements)
                sample = elements.sample()
            except (NotSplitError, MalformedTranscriptError):
                continue
            dialect = detect.of_messages(sample, at(part.header, array.path[:-1]) if array.path else None)
            if dialect == OPAQUE:
                dialect, nested_at = detect.of_conversations(sample)
                if dialect != OPAQUE:
                    part = part.model_copy(update=_nested(found, elements.pairs, nested_at))
            if dialect != OPAQUE:
                return dialect, part
        return None

    def _response(self, found: Found, scan: Scan) -> tuple[str, TranscriptPart] | None:
        """The body of one response: a conversation of its own, as its calls have their results elsewhere."""
        if scan.end > self._max_item or scan.padding:
            return None
        text = document.first_value(found.source, scan.end)
        if b'"output"' not in text:
            return None
        try:
            value = jsonio.loads(text)
        except ValueError as error:
            raise NotSplitError("the document is not JSON") from error
        dialect, nested_at = detect.of_conversations([value])
        if dialect != OPENAI_RESPONSES:
            return None
        values = Values(found.source, found.name, self._max_item)
        return dialect, _jsonl(found, values.pairs, nested_at)


_SAMPLE: Final = 100


def _jsonl(found: Found, source: PairSource, nested_at: Path = ()) -> TranscriptPart:
    return TranscriptPart(name=found.name, media="jsonl", **_nested(found, source, nested_at))


def _nested(found: Found, source: PairSource, nested_at: Path) -> dict[str, Any]:
    """The items of a part whose lines or elements `source` gives, and where those hold items themselves."""

    def pairs() -> Iterator[tuple[bytes, Any]]:
        return nested.split(source(), nested_at) if nested_at else source()

    return {"nested_at": nested_at, "items": Items.of_pairs(pairs, size=found.source.size)}


def _json(found: Found, scan: Scan, elements: Elements) -> TranscriptPart:
    path = elements.found.path
    header = document.header(found.source, elements.found, scan.end)
    if at(header, path) != []:
        raise NotSplitError("a key is given twice")
    items = Items.of_pairs(elements.pairs, size=found.source.size)
    return TranscriptPart(name=found.name, media="json", header=header, items_at=path, items=items)


def _raw(found: Found) -> tuple[str, TranscriptPart]:
    items = Items(lambda: _chunks(found.source), count=None, size=found.source.size, raw=True)
    return OPAQUE, TranscriptPart(name=found.name, media="raw", items=items)


def _chunks(source: FileSource) -> Iterator[bytes]:
    """A file in chunks that end at a line end where there is one."""
    carry = b""
    for block in source.blocks():
        text = carry + block
        cut = text.rfind(b"\n") + 1 or (len(text) if len(text) >= CHUNK else 0)
        if cut:
            yield text[:cut]
        carry = text[cut:]
    if carry:
        yield carry


def _line_of(source: FileSource, scan: Scan) -> int:
    left = scan.end
    lines = 1
    for block in source.blocks():
        lines += block[:left].count(b"\n")
        left -= len(block)
        if left <= 0:
            break
    return lines
