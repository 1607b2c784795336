"""One large JSON document, split at an array of it without ever being in memory as a whole.

A first pass over brackets and strings finds the arrays that may hold items and cuts each into blocks of whole
elements; later passes parse a block at a time. Only what lies outside the chosen array is kept: the header.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from archiver import jsonio
from archiver.errors import MalformedTranscriptError
from archiver.transcripts import jsontext
from archiver.transcripts.dialect import Path
from archiver.transcripts.source import CHUNK, FileSource, read_range

HEADER_LIMIT: Final = 4 << 20
_MAX_ARRAYS: Final = 256
_MAX_KEY: Final = 1 << 10

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"([^"\\]*+(?:\\[\x00-\xff][^"\\]*+)*+)"')
_SCALAR = re.compile(rb"[^ \t\r\n,\]}\[{\"\x00]++(?=[ \t\r\n,\]}])")
_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\[\x00-\xff][^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])')


class NotSplitError(Exception):
    """The bytes are not one JSON document that can be split; never leaves this package."""


@dataclass(slots=True)
class Array:
    """An array of the document: its path, the bytes between its brackets, and blocks of whole elements.

    `blocks` holds start and end of each block, in bytes of the file. `uniform` is true while all elements are
    objects or arrays.
    """

    path: Path
    start: int
    end: int = 0
    blocks: array[int] = field(default_factory=lambda: array("Q"))
    uniform: bool = True

    def element(self, start: int, end: int, limit: int) -> None:
        """Take in the next element."""
        if end - start > limit:
            raise NotSplitError("an element is too large")
        if self.blocks and end - self.blocks[-2] <= CHUNK:
            self.blocks[-1] = end
        else:
            self.blocks.extend((start, end))


@dataclass(slots=True)
class Scan:
    """What the first pass found: the arrays, where the document ends, and what lies behind it.

    `more` is true when something follows, `padding` counts bytes of which some are NUL and the rest blank.
    """

    arrays: list[Array]
    end: int
    more: bool
    padding: int = 0


def scan(source: FileSource, max_item: int) -> Scan:
    """Go through the first JSON value of a file; `NotSplitError` when it has no end or no sound brackets."""
    with source.opened(unchanged=True) as handle:
        window = _Window(handle, source.size, 2 * max_item)
        walker = _Walker(window, max_item)
        walker.value((), 0)
        end = window.position
        window.skip_blanks()
        if window.position == source.size:
            return Scan(walker.arrays, end, more=False)
        if _padding(handle, window.position, source.size):
            return Scan(walker.arrays, end, more=False, padding=source.size - window.position)
        return Scan(walker.arrays, end, more=True)


def _padding(handle: int, start: int, end: int) -> bool:
    while start < end:
        block = read_range(handle, start, min(end, start + CHUNK))
        if not block or block.strip(b"\0" + jsontext.BLANKS):
            return False
        start += len(block)
    return True


def first_value(source: FileSource, end: int) -> bytes:
    """The bytes of the first value, which ends at offset `end`."""
    with source.opened(unchanged=True) as handle:
        return read_range(handle, 0, end)


class _Window:
    """A window over a file that only moves forward; `at` is the place in `data`."""

    def __init__(self, handle: int, size: int, limit: int) -> None:
        self._handle = handle
        self._size = size
        self._limit = limit
        self._base = 0
        self.data = b""
        self.at = 0

    @property
    def position(self) -> int:
        """The offset in the file."""
        return self._base + self.at

    def more(self) -> None:
        """Read on, twice as much for a token that did not fit; `NotSplitError` at the end of the file."""
        kept = self.data[self.at :]
        end = self.position + len(kept)
        piece = read_range(self._handle, end, min(self._size, end + max(CHUNK, len(kept))))
        if not piece or len(kept) > self._limit:
            raise NotSplitError("the document ends before its value does, or a token is too large")
        self._base, self.data, self.at = self.position, kept + piece, 0

    def take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        """Match here, with as much of the file as that needs."""
        while (found := pattern.match(self.data, self.at)) is None:
            self.more()
        self.at = found.end()
        return found

    def skip_blanks(self) -> None:
        """Move to the next byte that is no blank, or to the end of the file."""
        while True:
            found = _BLANKS.match(self.data, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.data) or self.position >= self._size:
                return
            self.more()

    def peek(self) -> bytes:
        """The next byte that is no blank."""
        self.skip_blanks()
        if self.at >= len(self.data):
            raise NotSplitError("the document ends before its value does")
        return self.data[self.at : self.at + 1]

    def expect(self, byte: bytes) -> None:
        if self.peek() != byte:
            raise NotSplitError("a bracket, comma or colon is missing")
        self.at += 1


class _Walker:
    """Walks the upper levels of a document and skips what lies below."""

    def __init__(self, window: _Window, limit: int) -> None:
        self.window = window
        self.arrays: list[Array] = []
        self._limit = limit

    def value(self, path: Path, depth: int) -> None:
        first = self.window.peek()
        if first == b"[" and depth <= _DEPTH:
            self._array(path, depth)
        elif first == b"{" and depth <= _DEPTH and _descends(path):
            self._object(path, depth)
        else:
            self.skip(first)

    def _object(self, path: Path, depth: int) -> None:
        window = self.window
        window.expect(b"{")
        if window.peek() == b"}":
            window.at += 1
            return
        while True:
            if window.peek() != b'"':
                raise NotSplitError("a key is missing")
            key = _key(window.take(_STRING).group(0))
            window.expect(b":")
            self.value((*path, key), depth + 1)
            if window.peek() == b"}":
                window.at += 1
                return
            window.expect(b",")

    def _array(self, path: Path, depth: int) -> None:
        window = self.window
        window.expect(b"[")
        found = Array(path, window.position)
        if len(self.arrays) >= _MAX_ARRAYS:
            del self.arrays[_MAX_ARRAYS // 2]  # the first and the last are the likely ones
        self.arrays.append(found)
        index = 0
        while window.peek() != b"]":
            if index:
                window.expect(b",")
                window.peek()
            start = window.position
            self._element((*path, index), depth, found)
            found.element(start, window.position, self._limit)
            index += 1
        found.end = window.position
        window.at += 1

    def _element(self, path: Path, depth: int, found: Array) -> None:
        first = self.window.peek()
        found.uniform = found.uniform and first in (b"{", b"[")
        if first == b"{" and _descends(path):
            self._object(path, depth + 1)
        else:
            self.skip(first)

    def skip(self, first: bytes) -> None:
        """Move behind the value that begins here with the byte `first`."""
        window = self.window
        if first == b'"':
            window.take(_STRING)
        elif first in (b"{", b"["):
            depth = 0
            while True:
                depth += 1 if window.take(_BRACKET).group(1) in b"[{" else -1
                if not depth:
                    return
        else:
            window.take(_SCALAR)


_DEPTH: Final = 4


def _descends(path: Path) -> bool:
    """True for an object in which arrays are looked for: the upper two levels, and recorded requests."""
    if all(isinstance(step, str) for step in path):
        return len(path) <= 1
    return path[:1] == ("interactions",) and (len(path) == 2 or path[2:] == ("request",))


def _key(text: bytes) -> str:
    if len(text) > _MAX_KEY:
        raise NotSplitError("a key is too long")
    try:
        key = jsonio.loads(text)
    except ValueError as error:
        raise NotSplitError("a key is not a string") from error
    return str(key)


def header(source: FileSource, found: Array | None, end: int) -> Any:
    """The document with that array (if any) emptied; `NotSplitError` when it is too large or not JSON."""
    start, after = (found.start, found.end) if found else (end, end)
    outside = start + end - after
    if outside > HEADER_LIMIT:
        raise NotSplitError("too much lies outside the items")
    with source.opened(unchanged=True) as handle:
        text = read_range(handle, 0, start) + read_range(handle, after, end)
    try:
        return jsonio.loads(text)
    except ValueError as error:
        raise NotSplitError("what lies outside the items is not JSON") from error


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
        made = [jsonio.again(value) for value in values]
        if b",".join(made).translate(None, jsontext.BLANKS) == text.translate(None, jsontext.BLANKS):
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
            walker = _Walker(_Window(handle, self.source.size, 2 * self.max_item), self.max_item)
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
    at = 0
    while at < len(text):
        at = _end(_BLANKS, text, at)
        start = at
        first = text[at : at + 1]
        if first in (b"{", b"["):
            depth = 0
            while True:
                found = _BRACKET.match(text, at)
                if found is None:
                    raise AssertionError("a sound block has closed brackets")
                at = found.end()
                depth += 1 if found.group(1) in b"[{" else -1
                if not depth:
                    break
        else:
            at = _end(_STRING, text, at) if first == b'"' else _end(_BARE, text, at)
        yield text[start:at]
        at = _end(_BLANKS, text, at) + 1


_BARE = re.compile(rb"[^ \t\r\n,]*+")


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
