"""A private key that was wrapped anew: pieces of its body, each of which leads to the line around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

PIECE: Final = 16
"""Characters of a piece: two lines of 31 or more never hide one between them."""
_HEAD: Final = 48
"""Characters in which the keys of one kind begin alike, also public ones; no piece is taken of them."""
_LONGEST: Final = 16_384
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(.*?)(?:-----END|\Z)", re.DOTALL)
_FILLING = re.compile(rb"\\+[nrt]|\s|\\|^[A-Za-z\-]+: .*$", re.MULTILINE)
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]+")
_BREAK = re.compile(rb"[ \t\r\n>|#*+\\\"',;:.\-]{1,12}")
"""What may stand between two lines of a key."""
_ALIKE: Final = 4
_FEWEST: Final = 8
"""Different characters of a piece: padding in a key is a row of one letter, and stands in many texts."""


def body(value: bytes) -> bytes:
    """The base64 of a private key in PEM without headers and line ends; empty for any other value."""
    match = _KEY.search(value[: 2 * _LONGEST])
    inner = _FILLING.sub(b"", match[1]) if match else b""
    return inner if len(inner) <= _LONGEST and _BASE64.fullmatch(inner) else b""


def pieces(inner: bytes) -> Iterator[tuple[int, bytes]]:
    """Offsets and pieces of a body."""
    for start in range(_HEAD, len(inner) - PIECE + 1, PIECE):
        piece = inner[start : start + PIECE]
        if len(set(piece)) >= _FEWEST:
            yield start, piece


def around(data: bytes, end: int, inner: bytes, offset: int) -> tuple[int, int]:
    """The bytes around a piece, which ends at `end`, that are the body's too, also on the lines beside it."""
    start = end - PIECE
    before = data[max(0, start - 2 * _LONGEST) : start][::-1]
    start -= _reach(before, 0, inner[::-1], len(inner) - offset)
    return start, _reach(data, end, inner, offset + PIECE)


def _reach(data: bytes, at: int, inner: bytes, told: int) -> int:
    """How far the data goes on as the body does behind `told`, past what may stand between two lines."""
    while told < len(inner):
        if data[at : at + 1] == inner[told : told + 1]:
            at, told = at + 1, told + 1
            continue
        gap = _BREAK.match(data, at)
        if gap is None or not data.startswith(inner[told : told + _ALIKE], gap.end()):
            break
        at = gap.end()
    return at
