"""Base64 and hex: runs of characters that are text once they are decoded, also wrapped at a fixed width.

A trigger fires once, where a run begins, and only if the first bytes of the run are printable: an image, a
hash or a signature does not begin so but once in a hundred thousand.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Callable, Iterator
from typing import Final

from archiver.redact.engine import Expression
from archiver.redact.views.mapped import Mapped

# The first three characters of four that three printable ASCII bytes make (RFC 4648, section 4); the fourth
# can be any.
_FOUR = rb"[CDI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_\-]"
_FOURS: Final = 6
_BYTES: Final = 14
_BEGINS = rb"(?:^|\\[nrt]|[^A-Za-z0-9+/_\-]|(?:\n|\\n)[+\-])"
BASE64: Final = Expression(_BEGINS + rb"(?:%b){%d}" % (_FOUR, _FOURS))
HEX: Final = Expression(rb"(?:^|[^0-9a-fA-F]|\\[bf])(?:[2-7][0-9a-fA-F]|0[9aAdD]){%d}" % _BYTES)
_CLEAN_LIMIT: Final = 4_096
"""A run no longer than this is replaced as a whole: what is left of a small one would be of no use."""
_LEAST: Final = 10
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
LEAD = re.compile(rb"[ \t]*(?:[0-9]{1,6}(?:\t|\xe2\x86\x92|[:|] ?))?(?:[+\-><#|*;]|//)?[ \t]*")
_DIGITS = re.compile(rb"[0-9]+")
_SPACES = re.compile(rb"[ \t]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_\-]*+={0,2}")
_HEX_RUN = re.compile(rb"(?:[0-9a-fA-F]{2})*+")


class Decoded:
    """A run, decoded; `per` characters stand for `bytes_per` bytes."""

    __slots__ = ("_bytes_per", "_clean", "_per", "_size", "alone", "data", "whole")

    def __init__(self, data: bytes, clean: Mapped, per: int, bytes_per: int, *, alone: bool) -> None:
        self.data = data
        self.alone = alone
        """True when the run is this text and nothing else."""
        self._clean = clean
        self._per = per
        self._bytes_per = bytes_per
        self._size = min(len(clean.data), -(-len(data) // bytes_per) * per)
        self.whole = clean.span(0, self._size)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the run that hold these bytes, or all of a short run."""
        if self._size <= _CLEAN_LIMIT:
            return self.whole
        first = start // self._bytes_per * self._per
        return self._clean.span(first, min(self._size, -(-end // self._bytes_per) * self._per))


def base64_text(data: bytes, ends: list[int]) -> Iterator[Decoded]:
    """Runs of base64 (standard or URL-safe, padded or not, perhaps wrapped) that decode to text."""
    return _texts(data, ends, _FOURS * 4, _BASE64_RUN, _from_base64, (4, 3))


def hex_text(data: bytes, ends: list[int]) -> Iterator[Decoded]:
    """Runs of hex digits, perhaps wrapped, that decode to text."""
    return _texts(data, ends, _BYTES * 2, _HEX_RUN, _from_hex, (2, 1))


def _texts(
    data: bytes,
    ends: list[int],
    width: int,
    run: re.Pattern[bytes],
    decode: Callable[[bytes], bytes],
    ratio: tuple[int, int],
) -> Iterator[Decoded]:
    done = 0
    for end in ends:
        start = end - width
        if start < done:
            continue
        clean, done = _unwrapped(data, start, run)
        decoded = decode(clean.data)
        size = _text_size(decoded)
        if size >= _LEAST:
            whole = size == len(decoded)
            yield Decoded(decoded[:size], clean, *ratio, alone=whole)


def _from_base64(run: bytes) -> bytes:
    text = run.rstrip(b"=").translate(_URL_SAFE)
    if len(text) % 4 == 1:
        text = text[:-1]
    return binascii.a2b_base64(text + b"=" * (-len(text) % 4))


def _from_hex(run: bytes) -> bytes:
    return binascii.unhexlify(run)


def _text_size(data: bytes) -> int:
    """How many of the bytes are text, from the first one on."""
    match = _CONTROL.search(data)
    size = match.start() if match else len(data)
    try:
        data[:size].decode()
    except UnicodeDecodeError as error:
        return error.start
    return size


def _unwrapped(data: bytes, start: int, run: re.Pattern[bytes]) -> tuple[Mapped, int]:
    """The run that begins at `start` with its further lines, and where it ends."""
    end = _end(run, data, start)
    pieces = [(0, start, end - start)]
    out = [data[start:end]]
    size = width = end - start
    following = None
    while data[end - 1 : end] != b"=" and width >= 20:
        if following is None:
            following = continuation(data, start)
        match = following.match(data, end)
        if match is None:
            break
        stop = _end(run, data, match.end())
        length = stop - match.end()
        if not 0 < length <= max(width, 76):
            break
        if len(pieces) > 1 and length > pieces[1][2]:
            break
        pieces.append((size, match.end(), length))
        out.append(data[match.end() : stop])
        size, end = size + length, stop
        if length < pieces[1][2]:
            break
    return Mapped(b"".join(out), pieces), end


def _end(run: re.Pattern[bytes], data: bytes, start: int) -> int:
    match = run.match(data, start)
    return match.end() if match else start


def continuation(data: bytes, start: int) -> re.Pattern[bytes]:
    """A line end, and what the next line has to begin with to go on like the line of `start` does."""
    line = data.rfind(b"\n", max(0, start - 256), start) + 1
    match = LEAD.match(data, line, start)
    return _following(match[0] if match else b"")


@functools.lru_cache(256)
def _following(lead: bytes) -> re.Pattern[bytes]:
    parts = [re.escape(part) for part in _DIGITS.sub(b"\0", lead).strip().split()]
    inner = rb"[ \t]*".join(parts).replace(b"\\\x00", b"\x00").replace(b"\x00", rb"[0-9]{1,6}")
    return re.compile(rb"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)[ \t]*" + inner + rb"[ \t]*")
