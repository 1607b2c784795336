"""Text made from another text, with the way back to the bytes it was made from."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol

from archiver import jsonio


class Reading(Protocol):
    """One way to read a text, or a part of it."""

    data: bytes

    @property
    def alone(self) -> bool:
        """True when what was encoded is this text and nothing else."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of the text to replace when `data[start:end]` is a secret."""


class Mapped:
    """Text made from another text by pieces; `span` leads back to the bytes it was made from."""

    alone = False
    __slots__ = ("_lengths", "_sources", "_starts", "data")

    def __init__(self, data: bytes, pieces: Iterable[tuple[int, int, int]]) -> None:
        """`pieces`: (offset in `data`, offset in the source, bytes there), ascending, gapless in `data`.

        A piece as long in both is copied text; any other is taken whole.
        """
        self.data = data
        self._starts: list[int] = []
        self._sources: list[int] = []
        self._lengths: list[int] = []
        for start, source, length in pieces:
            self._starts.append(start)
            self._sources.append(source)
            self._lengths.append(length)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The source bytes behind `data[start:end]`."""
        first = bisect_right(self._starts, start) - 1
        last = max(first, bisect_left(self._starts, end) - 1)
        begin = self._sources[first]
        if self._copied(first):
            begin += start - self._starts[first]
        stop = self._sources[last] + self._lengths[last]
        if self._copied(last):
            stop = self._sources[last] + end - self._starts[last]
        return begin, stop

    def before(self, at: int) -> int:
        """Where the piece of the text begins that an offset lies in."""
        return self._starts[bisect_right(self._starts, at) - 1]

    def cut(self, at: int) -> list[tuple[int, int, int]]:
        """The pieces of copied text from an offset on, for a text that begins there."""
        kept: list[tuple[int, int, int]] = []
        for start, source, length in zip(self._starts, self._sources, self._lengths, strict=True):
            skip = max(0, at - start)
            if skip < length:
                kept.append((max(0, start - at), source + skip, length - skip))
        return kept

    def _copied(self, index: int) -> bool:
        return self._size(index) == self._lengths[index]

    def _size(self, index: int) -> int:
        following = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.data)
        return following - self._starts[index]


class Scaled(Mapped):
    """Text with runs of escapes: a piece `ratio` times as long in the source has that many bytes a byte."""

    __slots__ = ("_ratio",)

    def __init__(self, data: bytes, pieces: Iterable[tuple[int, int, int]], ratio: int) -> None:
        super().__init__(data, pieces)
        self._ratio = ratio

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The source bytes behind `data[start:end]`."""
        first = bisect_right(self._starts, start) - 1
        last = max(first, bisect_left(self._starts, end) - 1)
        begin = self._sources[first] + (start - self._starts[first]) * self._step(first)
        return begin, self._sources[last] + (end - self._starts[last]) * self._step(last)

    def _step(self, index: int) -> int:
        return 1 if self._copied(index) else self._ratio


_JSON_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([0-9a-fA-F]{4})|\\."
)


_BLOCK = re.compile(
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\][\x80-\xbf]*+){1,2048}+",
    re.DOTALL,
)
"""As many escapes and whole characters."""
_LONG = 16_384


class LongString:
    """The text of a long JSON string token, mapped block by block, each when it is asked for."""

    alone = False

    def __init__(self, token: bytes, data: bytes) -> None:
        self.data = data
        self._token = token
        self._blocks = [match.span() for match in _BLOCK.finditer(token, 1, len(token) - 1)]
        self._starts = [0]
        for low, high in self._blocks:
            self._starts.append(self._starts[-1] + _decoded_length(token[low:high]))
        self._made: dict[int, Mapped] = {}

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of the token behind `data[start:end]`."""
        first = bisect_right(self._starts, start) - 1
        last = max(first, bisect_left(self._starts, end) - 1)
        begin = self._block(first).span(start - self._starts[first], start - self._starts[first] + 1)[0]
        stop = self._block(last).span(max(0, end - 1 - self._starts[last]), end - self._starts[last])[1]
        return self._blocks[first][0] - 1 + begin, self._blocks[last][0] - 1 + stop

    def _block(self, index: int) -> Mapped:
        made = self._made.get(index)
        if made is None:
            low, high = self._blocks[index]
            data = self.data[self._starts[index] : self._starts[index + 1]]
            made = self._made[index] = _mapped(b'"%b"' % self._token[low:high], data)
        return made


def _decoded_length(text: bytes) -> int:
    if b"\\" not in text:
        return len(text)
    decoded: str = jsonio.loads(b'"%b"' % text)
    return len(decoded.encode("utf-8", "surrogatepass"))


def json_string(token: bytes, data: bytes) -> Reading:
    """The decoded text of one JSON string token (quotes included), mapped to bytes of the token."""
    if b"\\" not in token:
        return Mapped(data, [(0, 1, len(data))])
    return LongString(token, data) if len(token) > _LONG else _mapped(token, data)


def _mapped(token: bytes, data: bytes) -> Mapped:
    pieces: list[tuple[int, int, int]] = []
    at, size = 1, 0
    for match in _JSON_ESCAPE.finditer(token, 1, len(token) - 1):
        if match.start() > at:
            pieces.append((size, at, match.start() - at))
            size += match.start() - at
        length = match.end() - match.start()
        pieces.append((size, match.start(), length))
        size += _decoded_size(match, length)
        at = match.end()
    if at < len(token) - 1:
        pieces.append((size, at, len(token) - 1 - at))
    return Mapped(data, pieces or [(0, 1, len(data))])


def _decoded_size(match: re.Match[bytes], length: int) -> int:
    if length == 2:
        return 1
    if length == 12:
        return 4
    code = int(match[1], 16)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3
