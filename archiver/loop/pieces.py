"""A JSON array parsed a piece at a time, so that no other thread waits for the whole of it.

orjson holds the interpreter while it parses: 10 MB at once are 30 ms and more in which the loop stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from archiver import jsonio

PIECE: Final = 128 << 10
"""Bytes that are parsed at once, about; a larger element is parsed as a whole."""
_CUTS: Final = (b"},{", b"],[", b'","')
_ALIKE: Final = 8
"""Bytes that elements of one array often begin with alike, as `{"role":`."""
_TRIES: Final = 8
"""Places that are tried before a larger piece is."""
_WINDOW: Final = 16 << 10


def elements(array: bytes, piece: int = PIECE) -> Iterator[Any]:
    """The elements of one JSON array as `jsonio.taken` writes it, without blanks; `ValueError` if it is none.

    It is cut where an element may end. Whether one does is not guessed: a text that parses as whole elements,
    read from a place where one begins, ends where one ends.
    """
    if len(array) < 2 or array[:1] != b"[" or array[-1:] != b"]":
        raise ValueError("not a JSON array without blanks around it")
    start, end = 1, len(array) - 1
    while start < end:
        stop, values = _piece(array, start, end, piece)
        yield from values
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
