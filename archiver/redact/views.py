"""Other ways to read one text, each with a map back to it, so that a replacement lands in the text itself.

A view is tried only when its trigger is there. A later one (hard wraps, percent, base64, hex) is one more
entry in `VIEWS`.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from archiver.redact.engine import Engine, Expression


class Mapped:
    """Text made from another text by pieces; `span` leads back to the bytes it was made from."""

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

    def _copied(self, index: int) -> bool:
        following = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.data)
        return following - self._starts[index] == self._lengths[index]


class View(Protocol):
    """One other way to read a text."""

    def __call__(self, data: bytes) -> Mapped | None:
        """The text as this view reads it, or None when there is nothing to read differently."""


INVISIBLE: Final = tuple(
    chr(code).encode() for code in (0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF)
)
"""Characters that nobody sees: soft hyphen, zero-width ones, marks of direction, byte order mark."""
_UNSEEN = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\x00\n]{0,512}(?:\x07|\x1b\\)"
    rb"|[PX^_][^\x1b\x00\n]{0,512}\x1b\\|[ -/]{1,2}[0-~]|[0-Z\\^-~])"
    rb"|" + b"|".join(INVISIBLE)
)


@functools.cache
def _invisible() -> Engine:
    return Engine([Expression(b"|".join(map(re.escape, INVISIBLE)))])


def without_unseen(data: bytes) -> Mapped | None:
    """The text without invisible characters and terminal escapes (ECMA-48: CSI, OSC, strings, single)."""
    if b"\x1b" not in data and (data.isascii() or not _invisible().scan(data)):
        return None
    return _without(data, _UNSEEN)


def spaced(data: bytes) -> Mapped | None:
    """The text with a space for each terminal escape, which may be all that stands between two secrets."""
    return _without(data, _UNSEEN, b" ") if b"\x1b" in data else None


def _without(data: bytes, what: re.Pattern[bytes], instead: bytes = b"") -> Mapped | None:
    kept: list[bytes] = []
    pieces: list[tuple[int, int, int]] = []
    at = size = 0

    def keep(text: bytes, start: int, end: int) -> None:
        nonlocal size
        if text:
            kept.append(text)
            pieces.append((size, start, end - start))
            size += len(text)

    for match in what.finditer(data):
        keep(data[at : match.start()], at, match.start())
        keep(instead, *match.span())
        at = match.end()
    if at == 0:
        return None
    keep(data[at:], at, len(data))
    return Mapped(b"".join(kept), pieces) if pieces else None


VIEWS: Final[tuple[View, ...]] = (without_unseen, spaced)


def views(data: bytes) -> Iterator[Mapped]:
    """Every view that reads this text differently."""
    for view in VIEWS:
        mapped = view(data)
        if mapped is not None:
            yield mapped


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
