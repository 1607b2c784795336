"""Hex dumps as `xxd`, `hexdump -C`, `hexdump` and `od -tx1` print them."""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from archiver.redact.engine import Expression

DUMP: Final = Expression(rb"0000(?:00?0?0?|0?0?[12]0)(?:: |  ?)[0-9a-f]{2}")
"""The offset of the first or second row, and the first byte of the row."""
_ROW = re.compile(
    rb"[ \t]*(?:[0-9]{1,6}(?:\t|\xe2\x86\x92))?[+\-> ]?(?P<offset>[0-9a-fA-F]{6,8}(?P<colon>:?) {1,2})"
    rb"(?P<bytes>(?:[0-9a-fA-F]{2}(?:[0-9a-fA-F]{2})? {1,3})*[0-9a-fA-F]{2}(?:[0-9a-fA-F]{2})?)"
    rb"(?=[ \t]|\r?\n|\Z)[^\n\x00]{0,40}"
)
_WORDS = re.compile(rb"[0-9a-fA-F]{4} +[0-9a-fA-F]{4}(?: |\Z)")
_SPACE = re.compile(rb" +")
_LONGEST_ROW: Final = 256


class Dump:
    """The bytes of neighbouring rows; a secret's rows are replaced from its first byte to the end of a row.

    So the text that stands beside the bytes goes too.
    """

    def __init__(self, data: bytes, places: list[tuple[int, tuple[int, ...]]], ends: list[int]) -> None:
        """`places`: for each row, where it begins in `data` and the source offsets of its bytes."""
        self.data = data
        self.alone = True
        self._starts = [start for start, _ in places]
        self._rows = [row for _, row in places]
        self._ends = ends
        self.whole = (self._rows[0][0], ends[-1])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """From the first byte of the secret to the end of its last row."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        return self._rows[first][start - self._starts[first]], self._ends[last]


def dumps(data: bytes, ends: list[int]) -> Iterator[Dump]:
    """The dumps in which triggers end."""
    done = 0
    for end in ends:
        start = max(done, data.rfind(b"\n", max(0, end - _LONGEST_ROW), end) + 1)
        if end <= done or end - start > _LONGEST_ROW:
            continue
        out: list[bytes] = []
        places: list[tuple[int, tuple[int, ...]]] = []
        stops: list[int] = []
        size = 0
        while (match := _ROW.match(data, start)) is not None:
            row, offsets = _bytes(match)
            places.append((size, offsets))
            out.append(row)
            stops.append(match.end())
            size += len(row)
            done = match.end()
            if data[match.end() : match.end() + 1] != b"\n":
                break
            start = match.end() + 1
        if out:
            yield Dump(b"".join(out), places, stops)


def _bytes(match: re.Match[bytes]) -> tuple[bytes, tuple[int, ...]]:
    """The bytes of one row and their offsets; words without a colon are taken to be little-endian."""
    text, at = match["bytes"], match.start("bytes")
    swapped = not match["colon"] and _WORDS.match(text) is not None
    offsets: list[int] = []
    out = bytearray()
    for group in re.finditer(rb"[0-9a-fA-F]+", text):
        values = binascii.unhexlify(group[0])
        out += values[::-1] if swapped else values
        offsets += (
            [at + group.start()] * len(values) if swapped else range(at + group.start(), at + group.end(), 2)
        )
    return bytes(out), tuple(offsets)
