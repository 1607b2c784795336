"""Items that are parts of JSON documents: elements of an array, or values one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from archiver import jsonio
from archiver.errors import MalformedTranscriptError
from archiver.transcripts import jsontext
from archiver.transcripts.document import BRACKETS, OPENING, Array, NotSplitError, Walker, Window
from archiver.transcripts.source import CHUNK, FileSource, read_range


@dataclass(slots=True)
class Elements:
    """The elements of one array as items: each on one line, without blanks between tokens."""

    source: FileSource
    part: str
    found: Array

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each element as its text and its value; `MalformedTranscriptError` where one is not JSON."""
        blocks = self.found.blocks
        with self.source.opened(unchanged=True) as handle:
            for start, end in zip(blocks[::2], blocks[1::2], strict=True):
                yield from self._block(handle, start, read_range(handle, start, end))

    def sample(self) -> list[Any]:
        """The values of the first and of the last block."""
        blocks = self.found.blocks
        values: list[Any] = []
        with self.source.opened(unchanged=True) as handle:
            for index in sorted({0, len(blocks) - 2}) if blocks else ():
                start, end = blocks[index], blocks[index + 1]
                values += [value for _, value in self._block(handle, start, read_range(handle, start, end))]
        return values

    def _block(self, handle: int, start: int, text: bytes) -> Iterator[tuple[bytes, Any]]:
        try:
            values = jsonio.loads(b"[" + text + b"]")
        except ValueError as error:
            raise malformed(self.part, handle, start + max(getattr(error, "pos", 1) - 1, 0)) from error
        if not isinstance(values, list):  # nested so deeply that the whole has no value
            values = [jsonio.loads(piece) for piece in _elements(text)]
        made = jsontext.lines_of(text, values)
        if made is not None:
            yield from zip(made, values, strict=True)
            return
        for piece, value in zip(_elements(text), values, strict=True):
            yield jsontext.compact(piece, value), value


@dataclass(slots=True)
class Values:
    """JSON values one after the other, each over several lines, as items on one line each."""

    source: FileSource
    part: str
    max_item: int

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each value as its text and its value; `MalformedTranscriptError` where one is not JSON."""
        with self.source.opened(unchanged=True) as handle:
            walker = Walker(Window(handle, self.source.size, self.max_item), self.max_item)
            window = walker.window
            start = 0
            try:
                while True:
                    window.skip_blanks()
                    start = window.position
                    if start >= self.source.size:
                        return
                    walker.skip(window.peek())
                    text = read_range(handle, start, window.position)
                    value = jsonio.loads(text)
                    yield jsontext.compact(text, value), value
            except (NotSplitError, ValueError) as error:
                raise malformed(self.part, handle, start + max(getattr(error, "pos", 0), 0)) from error


def malformed(part: str, handle: int, at: int) -> MalformedTranscriptError:
    """The error for a document whose bytes are not JSON at offset `at`."""
    line, last, offset = 1, 0, 0
    while offset < at:
        block = read_range(handle, offset, min(at, offset + CHUNK))
        if not block:
            break
        line += block.count(b"\n")
        newest = block.rfind(b"\n")
        last = offset + newest + 1 if newest >= 0 else last
        offset += len(block)
    return MalformedTranscriptError(
        f"{part} is damaged at line {line}, column {at - last + 1}",
        line=line,
        column=at - last + 1,
        remedy="mend the document there; it cannot be cut into items as it is",
    )


def _elements(text: bytes) -> Iterator[bytes]:
    """The texts of the elements in a block that is known to be sound."""
    depth = start = 0
    for bracket in BRACKETS.finditer(text):
        end = bracket.end()
        if text[end - 1] in OPENING:
            start = start if depth else end - 1
            depth += 1
        else:
            depth -= 1
            if not depth:
                yield text[start:end]
