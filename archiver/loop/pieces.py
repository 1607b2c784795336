"""A JSON array parsed a piece at a time, so that no other thread waits for the whole of it.

orjson holds the interpreter while it parses: 10 MB at once are 30 ms and more in which the loop stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from archiver import jsonio
from archiver.model.items import Growing

PIECE: Final = 128 << 10
"""Bytes that are parsed at once, about; a larger element is parsed as a whole."""
_CUTS: Final = (b"},{", b"],[", b'","')
_ALIKE: Final = 8
"""Bytes that elements of one array often begin with alike, as `{"role":`."""
_TRIES: Final = 8
"""Places that are tried before a larger piece is."""
_WINDOW: Final = 16 << 10


_COMPARED: Final = 1 << 20


class Array:
    """One JSON array as `jsonio.taken` writes it: the messages of a run at one moment."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size(self) -> int:
        """Bytes of its elements as lines: each has a line end in the place of a comma or a bracket."""
        return max(0, len(self.data) - 1) if self.data != b"[]" else 0

    def begins_like(self, other: Growing, stop: int) -> bool:
        """Whether its first `stop` bytes are those of the other array, compared byte by byte."""
        if not isinstance(other, Array) or min(len(self.data), len(other.data)) < stop:
            return False
        return self.data is other.data or all(
            self.data[at : min(at + _COMPARED, stop)] == other.data[at : min(at + _COMPARED, stop)]
            for at in range(0, stop, _COMPARED)
        )

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[tuple[bytes, Any]]]]:
        """Its elements from byte `start` on, as texts and values, a piece at a time.

        With each piece comes the byte behind it and its comma, where the next one may start.
        """
        for stop, values in pieces(self.data, start, PIECE):
            yield stop + 1, [(jsonio.again(value), value) for value in values]


def pieces(array: bytes, start: int = 0, piece: int = PIECE) -> Iterator[tuple[int, list[Any]]]:
    """The elements of one JSON array as `jsonio.taken` writes it, without blanks; `ValueError` if it is none.

    They come in pieces, each with the byte behind it: at a comma, or at the end of the array. `start` is 0,
    or lies behind such a comma. The array is cut where an element may end. Whether one does is not guessed: a
    text that parses as whole elements, read from a place where one begins, ends where one ends.
    """
    if len(array) < 2 or array[:1] != b"[" or array[-1:] != b"]":
        raise ValueError("not a JSON array without blanks around it")
    start, end = max(1, start), len(array) - 1
    while start < end:
        stop, values = _piece(array, start, end, piece)
        yield stop, values
        start = stop + 1
        if start == end:
            raise ValueError("the array ends with a comma")


def _piece(array: bytes, start: int, end: int, size: int) -> tuple[int, list[Any]]:
    """Whole elements from `start` on, and where they end: at a comma, or at `end`."""
    cuts: tuple[bytes, ...] = (b"," + array[start : start + _ALIKE],)
    while True:
        stop = start
        for _ in range(_TRIES):
            stop = _cut(array, max(stop, start + size - 1) + 1, end, cuts)
            try:
                return stop, jsonio.exact(b"[%b]" % array[start:stop])
            except ValueError:
                if stop == end:
                    raise
        size, cuts = 2 * max(size, stop - start), _CUTS


def _cut(array: bytes, at: int, end: int, cuts: tuple[bytes, ...]) -> int:
    """The first comma after `at` where an element may end, or `end`; no farther than that is searched."""
    longest = max(map(len, cuts))
    while at < end:
        until = min(at + _WINDOW, end)
        found = [
            place + cut.index(b",")
            for cut in cuts
            if (place := array.find(cut, at, min(until + longest - 1, end))) >= 0
        ]
        if found:
            return min(found)
        at = until
    return end
