"""Text made from another text, with the way back to the bytes it was made from."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol


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


def json_string(token: bytes, data: bytes) -> Mapped:
    """The decoded text of one JSON string token (quotes included), mapped to bytes of the token."""
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
