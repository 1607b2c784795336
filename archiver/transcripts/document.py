"""One large JSON document, split at an array of messages without ever being in memory as a whole.

A first pass over brackets and strings finds the arrays of messages and cuts each into blocks of whole
elements; later passes parse a block at a time. Only what lies outside the chosen array is kept: the header.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any, Final

from archiver import jsonio
from archiver.transcripts import jsontext
from archiver.transcripts.dialect import Path
from archiver.transcripts.source import CHUNK, FileSource, read_range

HEADER_LIMIT: Final = 4 << 20
_MAX_ARRAYS: Final = 64
_RECORDED: Final = "interactions"
"""Where recordings of requests and responses keep them, as HTTP cassettes do."""
_KEPT_AT: Final[tuple[Path, ...]] = ((), ("messages",), ("input",))
"""Keys under which requests keep messages; a document may also be an array of them itself."""
_MAX_KEY: Final = 1 << 10

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"([^"\\]*+(?:\\[\x00-\xff][^"\\]*+)*+)"')
_SCALAR = re.compile(rb"[^ \t\r\n,\]}\[{\"\x00]++(?=[ \t\r\n,\]}])")
BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\[\x00-\xff][^"\\]*+)*+"[^"\[\]{}]*+)*+[\[\]{}]')
BRACKETS = re.compile(BRACKET.pattern + rb"|([\x00-\xff]++)")
"""For `finditer`, which searches: where no bracket follows soundly, group 1 takes all the rest."""
OPENING = b"{["


class NotSplitError(Exception):
    """The bytes are not one JSON document that can be split; never leaves this package."""


@dataclass(slots=True)
class Array:
    """An array of messages: its path, the bytes between its brackets, and blocks of whole elements.

    `blocks` holds start and end of each block, in bytes of the file. `uniform` is true while all elements are
    objects or arrays; only then can the array be split.
    """

    path: Path
    start: int
    end: int = 0
    blocks: array[int] = field(default_factory=lambda: array("Q"))
    uniform: bool = True

    def gap(self, text: bytes, *, at_end: bool = False) -> None:
        """Look at what stands before an element or at the end: a comma between two, and else only blanks."""
        comma = b"," if self.blocks and not at_end else b""
        self.uniform = self.uniform and text.strip(jsontext.BLANKS) == comma

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
        window = Window(handle, source.size, max_item)
        walker = Walker(window, max_item)
        walker.value(())
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


class Window:
    """A window over a file that only moves forward; `base` is the offset of `data`, `at` the place in it."""

    def __init__(self, handle: int, size: int, limit: int) -> None:
        self._handle = handle
        self._size = size
        self._limit = limit
        self.base = 0
        self.data = b""
        self.at = 0

    @property
    def position(self) -> int:
        """The offset in the file."""
        return self.base + self.at

    def more(self) -> None:
        """Read on, twice as much for a token that did not fit; `NotSplitError` at the end of the file."""
        kept = self.data[self.at :]
        end = self.position + len(kept)
        piece = read_range(self._handle, end, min(self._size, end + max(CHUNK, len(kept))))
        if not piece or len(kept) > self._limit:
            raise NotSplitError("the document ends before its value does, or a token is too large")
        self.base, self.data, self.at = self.position, kept + piece, 0

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


class Walker:
    """Walks the upper levels of a document and skips what lies below."""

    def __init__(self, window: Window, limit: int) -> None:
        self.window = window
        self.arrays: list[Array] = []
        self._limit = limit

    def value(self, path: Path) -> None:
        """Move behind the value at `path`, and note the arrays of messages in it."""
        first = self.window.peek()
        if first == b"[" and path[-1:] in _KEPT_AT:
            self._messages(path)
        elif first == b"[" and path == (_RECORDED,):
            self._recorded(path)
        elif first == b"{" and _descends(path):
            self._object(path)
        else:
            self.skip(first)

    def _object(self, path: Path) -> None:
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
            self.value((*path, key))
            if window.peek() == b"}":
                window.at += 1
                return
            window.expect(b",")

    def _recorded(self, path: Path) -> None:
        window = self.window
        window.expect(b"[")
        index = 0
        while window.peek() != b"]":
            if index:
                window.expect(b",")
            self.value((*path, index))
            index += 1
        window.at += 1

    def _messages(self, path: Path) -> None:
        self.window.expect(b"[")
        found = Array(path, self.window.position)
        if len(self.arrays) >= _MAX_ARRAYS:
            del self.arrays[0]
        self.arrays.append(found)
        self._elements(found)
        self.window.at += 1

    def _elements(self, found: Array) -> None:
        """Cut at elements, without a look inside them, up to the closing bracket."""
        window = self.window
        depth = start = 0
        last = found.start
        while True:
            base, data, end = window.base, window.data, window.at
            for bracket in BRACKETS.finditer(data, end):
                if bracket.lastindex:
                    break
                end = bracket.end()
                if data[end - 1] in OPENING:
                    if not depth:
                        start = base + end - 1
                        found.gap(data[last - base : end - 1])
                    depth += 1
                elif depth > 1:
                    depth -= 1
                elif depth:
                    depth, last = 0, base + end
                    found.element(start, last, self._limit)
                else:
                    window.at, found.end = end - 1, base + end - 1
                    found.gap(data[last - base : end - 1], at_end=True)
                    return
            window.at = end
            window.more()

    def skip(self, first: bytes) -> None:
        """Move behind the value that begins here with the byte `first`."""
        window = self.window
        if first == b'"':
            window.take(_STRING)
        elif first in (b"{", b"["):
            depth = 0
            while True:
                depth += 1 if self._bracket() in OPENING else -1
                if not depth:
                    return
        else:
            window.take(_SCALAR)

    def _bracket(self) -> int:
        self.window.take(BRACKET)
        return self.window.data[self.window.at - 1]


def _descends(path: Path) -> bool:
    """True for an object in which messages are looked for: the upper two levels, and recorded requests."""
    if all(isinstance(step, str) for step in path):
        return len(path) <= 1
    return path[0] == _RECORDED and (len(path) == 2 or path[2:] == ("request",))


def _key(text: bytes) -> str:
    if len(text) > _MAX_KEY:
        raise NotSplitError("a key is too long")
    try:
        key = jsonio.loads(text)
    except ValueError as error:
        raise NotSplitError("a key is not a string") from error
    return str(key)


def header(source: FileSource, found: Array, end: int) -> Any:
    """The document with that array emptied; `NotSplitError` when it is too large or not JSON."""
    if found.start + end - found.end > HEADER_LIMIT:
        raise NotSplitError("too much lies outside the items")
    with source.opened(unchanged=True) as handle:
        text = read_range(handle, 0, found.start) + read_range(handle, found.end, end)
    try:
        return jsonio.loads(text)
    except ValueError as error:
        raise NotSplitError("what lies outside the items is not JSON") from error
