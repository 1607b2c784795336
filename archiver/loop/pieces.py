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


def elements(array: bytes, piece: int = PIECE) -> Iterator[Any]:
    """The elements of one JSON array as `jsonio.taken` writes it, without blanks; `ValueError` if it is none.

    It is cut where an element may end. Whether one does is not guessed: a text that parses as whole elements,
    read from a place where one begins, ends where one ends.
    """
    if array[:1] != b"[" or array[-1:] != b"]":
        raise ValueError("not a JSON array without blanks around it")
    start, end = 1, len(array) - 1
    while start < end:
        size = piece
        while True:
            stop = _cut(array, start + size, end)
            try:
                values = jsonio.loads(b"[%b]" % array[start:stop])
                break
            except ValueError:
                if stop == end:
                    raise
                size = max(2 * size, stop - start)
        yield from values
        start = stop + 1


def _cut(array: bytes, at: int, end: int) -> int:
    """The first comma after `at` where an element may end, or the end."""
    found = [place for cut in _CUTS if (place := array.find(cut, at, end)) >= 0]
    return min(found) + 1 if found else end
