"""Percent-encoding, and escapes of programming languages that were written out (`\\x67`, `\\u0067`)."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from archiver.redact.engine import Expression
from archiver.redact.views.mapped import Scaled
from archiver.redact.views.unseen import INVISIBLE

_FRESH = rb"(?:^|[^0-9a-fA-F]|[^0-9a-fA-F%b][0-9a-fA-F]|[^%b][0-9a-fA-F]{2})"
"""What stands before the first of several escapes of two digits behind a sign."""
PERCENT: Final = Expression(
    rb"%%(?:3[ADad]|2[0256FfBb]|0[AaDd]|40|7[BbDd]|5[BbDd])[A-Za-z0-9%%\\\"/+_.\-]|%b(?:%%(?:[2-7][0-9a-fA-F]|0[9aAdD])){4}"
    % (_FRESH % (b"%", b"%"))
)
# JSON text that writes printable ASCII or ESC as `\\u00XX` has to be decoded before triggers can see it.
# `<`, `>`, `&` and `'`, which some writers always escape, are part of no token; the unseen may split one.
WRITTEN: Final = Expression(
    rb"\\u00(1[bB]|2[0-57-9a-fA-F]|3[0-9abdfABDF]|[4-7][0-9a-fA-F]|[aA][dD])"
    rb"|\\u(20(0[b-fB-F]|2[a-eA-E]|6[0-9])|061[cC]|[fF][eE][fF][fF])|" + b"|".join(map(re.escape, INVISIBLE))
)
ESCAPES: Final = Expression((_FRESH % (b"x", b"x")) + rb"(?:\\{1,15}x(?:[2-7][0-9a-fA-F]|0[9aAdD])){4}")
_PERCENTS = re.compile(rb"(?:%[0-9a-fA-F]{2})+")
_OF_BYTES = re.compile(rb"(?:\\x[0-9a-fA-F]{2})+")
_OF_CHARS = re.compile(rb"(?:\\u00[0-7][0-9a-fA-F])+")
_BEFORE: Final = 256
_BEHIND: Final = 2_048


class Unquoted:
    """A part of a text with percent-encoding undone; the way back is made when it is asked for."""

    alone = False
    __slots__ = ("_back", "_source", "data")

    def __init__(self, source: bytes, start: int, stop: int) -> None:
        self.data = unquote_to_bytes(source[start:stop])
        self._source = (source, start, stop)
        self._back: Scaled | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of the text to replace when `data[start:end]` is a secret."""
        if self._back is None:
            self._back = _decoded(*self._source, _PERCENTS, lambda run: run.replace(b"%", b""), 3)
        return self._back.span(start, end)


def percent_decoded(data: bytes, ends: list[int]) -> Iterator[Unquoted]:
    """The parts around triggers with percent-encoding undone (RFC 3986, section 2.1)."""
    for start, stop in _parts(data, ends):
        yield Unquoted(data, start, stop)


def unescaped(data: bytes, ends: list[int]) -> Iterator[Scaled]:
    """The parts around triggers with escapes undone: two hex digits behind a backslash and `x` or `u00`."""
    for start, stop in _parts(data, ends):
        part = data[start:stop]
        if b"\\x" in part:
            yield _decoded(data, start, stop, _OF_BYTES, lambda run: run.replace(b"\\x", b""), 4)
        if b"\\u00" in part:
            yield _decoded(data, start, stop, _OF_CHARS, lambda run: run.replace(b"\\u00", b""), 6)


def _parts(data: bytes, ends: list[int]) -> Iterator[tuple[int, int]]:
    """The neighbourhoods of triggers, not overlapping."""
    start = stop = -1
    for end in ends:
        low, high = max(0, end - _BEFORE), min(len(data), end + _BEHIND)
        if low <= stop:
            stop = high
            continue
        if stop >= 0:
            yield start, stop
        start, stop = low, high
    if stop >= 0:
        yield start, stop


def _decoded(
    data: bytes,
    start: int,
    stop: int,
    pattern: re.Pattern[bytes],
    digits: Callable[[bytes], bytes],
    ratio: int,
) -> Scaled:
    out: list[bytes] = []
    pieces: list[tuple[int, int, int]] = []
    at, size = start, 0
    for match in pattern.finditer(data, start, stop):
        if match.start() > at:
            out.append(data[at : match.start()])
            pieces.append((size, at, match.start() - at))
            size += match.start() - at
        run = binascii.unhexlify(digits(match[0]))
        out.append(run)
        pieces.append((size, match.start(), match.end() - match.start()))
        size += len(run)
        at = match.end()
    if at < stop:
        out.append(data[at:stop])
        pieces.append((size, at, stop - at))
    return Scaled(b"".join(out), pieces, ratio)
