"""Base64 and hex: runs of characters that are text once they are decoded, also wrapped at a fixed width.

What leads to hex are its first bytes, if they are printable; what leads to base64 is its padding, what stands
before it, or a telling word in one of the three forms that base64 gives it (`words`). An image, a hash or a
signature has none of these, or turns out to be no text.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Iterator
from typing import Final

from archiver.redact.engine import Expression
from archiver.redact.views.mapped import Mapped

_BYTES: Final = 14
HEX: Final = Expression(rb"(?:^|[^0-9a-fA-F])(?:[2-7][0-9a-fA-F]|0[9aAdD]){%d}" % _BYTES)
PADDED: Final = Expression(
    rb"[A-Za-z0-9+/_\-]{18}=(?:[\"'`\\ \t\r\n,;|<>)\]}&]|=[\"'`\\ \t\r\n,;|<>)\]}&]|==)"
)
"""The end of padded base64, and the sign behind it, which is not counted (`Finder.hits`)."""
INTRODUCED: Final = Expression(
    rb"(?:;base64,|(?:b64decode|atob|Buffer\.from|a2b_base64|FromBase64String)\(\\{0,7}[\"']|"
    rb"(?:echo|<<<) \\{0,7}[\"']?)[A-Za-z0-9+/_\-]{20}"
)
"""What is often followed by base64."""
_CLEAN_LIMIT: Final = 4_096
"""A run no longer than this is replaced as a whole: what is left of a small one would be of no use."""
_LEAST: Final = 10
_LEAST_ALONE: Final = {2: 12, 4: 15}
"""Bytes of a token that nothing introduces, by the characters that stand together."""
_NODE_ID = re.compile(rb"(?:0[0-9]*:)?[A-Z][A-Za-z]+[:\-]?[0-9]+")
"""An id of GraphQL as Relay and GitHub write it: a type and a number."""
_NARROWEST: Final = 20
_WIDEST: Final = 256
_BASE64_CHARS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_HEX_CHARS: Final = b"0123456789abcdefABCDEF"
_LINE_BREAK = re.compile(
    rb"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)[ \t]*(?:[0-9]{1,6}(?:\t|\xe2\x86\x92))?[+\-><#|*]?[ \t]*\Z"
)
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
LEAD = re.compile(rb"[ \t]*(?:[0-9]{1,6}(?:\t|\xe2\x86\x92|[:|] ?))?(?:[+\-><#|*;]|//)?[ \t]*")
_DIGITS = re.compile(rb"[0-9]+")
_SPACES = re.compile(rb"[ \t]+")
_LINE_BEFORE = re.compile(rb"[A-Za-z0-9+/_\-]{16}=?(?:\r?\n|\\+n)[^A-Za-z0-9]{0,8}\Z")
_LINE_BEHIND = re.compile(rb"(?:\\+r|\r)?(?:\n|\\+n)[^A-Za-z0-9]{0,8}[A-Za-z0-9+/_\-]{16}")
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
        self._size = min(len(clean.data), -(-len(data) * per // bytes_per))
        self.whole = clean.span(0, self._size)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the run that hold these bytes, or all of a short run."""
        if self._size <= _CLEAN_LIMIT:
            return self.whole
        first = start // self._bytes_per * self._per
        return self._clean.span(first, min(self._size, -(-end // self._bytes_per) * self._per))


def base64_text(data: bytes, ends: list[int]) -> Iterator[Decoded]:
    """Runs of base64 (standard or URL-safe, padded or not, perhaps wrapped) that decode to text."""
    done = 0
    for end in ends:
        at = end - 1
        while at > done and data[at] not in _BASE64_CHARS:
            at -= 1
        if at < done or data[at] not in _BASE64_CHARS:
            continue
        start = _first_line(data, at, done, _BASE64_CHARS)
        clean, done = _unwrapped(data, start, _BASE64_RUN)
        reading = _text(data, start, done, clean, _from_base64(clean.data), (4, 3))
        if reading is not None:
            yield reading
        elif data[at + 1 : at + 2] != b"=":  # a word, not padding, led here
            yield from _amid(clean, at - start)


def ends_as_text(data: bytes, end: int) -> bool:
    """True when the last whole groups of padded base64 are printable, which those of a signature are not."""
    stop = len(data[end - 4 : end].rstrip(b"=")) + end - 4
    last = stop - (4 - min(end - stop, 2))
    try:
        text = binascii.a2b_base64(data[last - 12 : last].translate(_URL_SAFE))
    except binascii.Error:
        return False
    return _CONTROL.search(text) is None and text.isascii()


def hex_text(data: bytes, ends: list[int]) -> Iterator[Decoded]:
    """Runs of hex digits, perhaps wrapped, that decode to text."""
    done = 0
    for end in ends:
        start = end - 2 * _BYTES
        if start >= done:
            start = _first_line(data, end - 1, done, _HEX_CHARS)
            clean, done = _unwrapped(data, start, _HEX_RUN)
            reading = _text(data, start, done, clean, binascii.unhexlify(clean.data), (2, 1))
            if reading is not None:
                yield reading


def _text(
    data: bytes, start: int, end: int, clean: Mapped, decoded: bytes, ratio: tuple[int, int]
) -> Decoded | None:
    decoded = decoded.replace(b"\0", b"\n")  # an environment, and what `find -print0` lists, is text too
    size = _text_size(decoded)
    if size < _LEAST:
        return None
    if size < len(decoded):
        used = -(-size * ratio[0] // ratio[1])
        kept = clean.before(used)
        if 0 < kept < used:
            size = min(size, kept * ratio[1] // ratio[0])  # the last line is one of another text
    alone = (
        size == len(decoded) >= _LEAST_ALONE[ratio[0]]
        and not _NODE_ID.fullmatch(decoded)
        and not _is_among_lines(data, start, end)
    )
    return Decoded(decoded[:size], clean, *ratio, alone=alone)


def _amid(clean: Mapped, at: int) -> Iterator[Decoded]:
    """Text in a run that begins with something else: bytes that are no text, or a piece of a path."""
    for shift in range(4):
        decoded = _from_base64(clean.data[shift:])
        place = max(0, min(len(decoded) - 1, (at - shift) * 3 // 4))
        low = 0
        for match in _CONTROL.finditer(decoded, 0, place):
            low = match.end()
        low += -low % 3
        size = _text_size(decoded[low:])
        if size >= _LEAST:
            rest = Mapped(clean.data[shift + low // 3 * 4 :], clean.cut(shift + low // 3 * 4))
            yield Decoded(decoded[low : low + size], rest, 4, 3, alone=False)


def _first_line(data: bytes, at: int, done: int, chars: bytes) -> int:
    """Where the run around an offset begins, on the first of the lines that it is wrapped into."""
    start = _run_start(data, at + 1, done, chars)
    while True:
        match = _LINE_BREAK.search(data, max(done, start - 24), start)
        if match is None:
            return start
        before = _run_start(data, match.start(), done, chars)
        if match.start() - before < _NARROWEST or match.start() - before > _WIDEST:
            return start
        start = before


def _run_start(data: bytes, end: int, done: int, chars: bytes) -> int:
    step = 256
    while True:
        low = max(done, end - step)
        part = data[low:end]
        kept = len(part.rstrip(chars))
        if kept or low == done:
            return low + kept
        step *= 8


def _is_among_lines(data: bytes, start: int, end: int) -> bool:
    """True for a line of a longer block, of which chance makes one or another readable."""
    return (
        _LINE_BEFORE.search(data, max(0, start - 48), start) is not None
        or _LINE_BEHIND.match(data, end) is not None
    )


def _from_base64(run: bytes) -> bytes:
    text = run.rstrip(b"=").translate(_URL_SAFE)
    if len(text) % 4 == 1:
        text = text[:-1]
    return binascii.a2b_base64(text + b"=" * (-len(text) % 4))


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
    while data[end - 1 : end] != b"=" and width >= _NARROWEST:
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
