"""Hard wraps: a token that a line end at a fixed width breaks, as terminals, mail and editors break lines.

A wrapped line is full: no line that follows it without a space is longer, and all but the last are as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from archiver.redact.negatives import is_identifier, is_scrambled
from archiver.redact.views.encoded import LEAD
from archiver.redact.views.mapped import Mapped

LINE_END: Final = rb"=?(?:\r?\n|\\{1,7}\n|(?:\\{1,15}r)?\\{1,15}n)"
"""A line end as it is, escaped for JSON, or behind the sign of a soft one."""
_NARROWEST: Final = 20
_BACK: Final = 64
_SLACK: Final = 2
"""Characters by which the last of two lines may be longer: the first may have lost blanks at its ends."""
_SETTINGS: Final = 3
"""Lines in a row that begin with a name and a sign: they are settings, not one text."""
_DIGITS = re.compile(rb"[0-9]+")
_GUTTER = re.compile(rb"[ \t]*[0-9+\-><#|*;/]")
_SPACE, _RETURN, _DELETE, _BACKSLASH = b" \r\x7f\\"
_NAMED = re.compile(rb"[A-Za-z_][\w.\-]*(?:[:=](?![=\s]|\Z)|:\s)")


_ODD = re.compile(rb"[a-z][A-Z][a-z0-9]*[A-Z0-9]|[0-9][A-Za-z]+[0-9]|[!@#$%^&*?~+][A-Za-z]+[!@#$%^&*?~+]")


class Wrapped(Mapped):
    """Lines joined; `breaks` are the offsets in `data` at which one ended."""

    __slots__ = ("breaks",)

    def __init__(self, data: bytes, lines: list[tuple[int, int]]) -> None:
        """`lines`: start and end of each line's own text in the source."""
        pieces: list[tuple[int, int, int]] = []
        size = 0
        for start, end in lines:
            pieces.append((size, start, end - start))
            size += end - start
        super().__init__(b"".join(data[start:end] for start, end in lines), pieces)
        self.breaks = [start for start, _, _ in pieces[1:]]

    def crossed(self, start: int, end: int) -> int | None:
        """The first line end inside a span of the joined text."""
        return next((at for at in self.breaks if start < at < end), None)

    def goes_on(self, at: int, end: int) -> bool:
        """True when the text behind a line end looks like the rest of a token, not like a line of its own."""
        stop = next((other for other in self.breaks if at < other < end), end)
        piece = self.data[at:stop]
        if not piece.strip(b"="):
            return True
        if _NAMED.match(piece) is not None or _NAMED.match(self.data, at) is not None:
            return False
        if piece.isdigit():
            return len(piece) > 3
        digits = len(piece) - len(piece.translate(None, b"0123456789"))
        return is_scrambled(piece, 3) or (digits > 0 and not is_identifier(piece)) or _is_odd(piece)


def _is_odd(piece: bytes) -> bool:
    """Capitals between small letters, digits beside both, or signs among letters, as no word has them."""
    return _ODD.search(piece) is not None


class _Line(NamedTuple):
    """A line: where it starts, where its text starts behind a gutter, and where the text ends."""

    start: int
    text: int
    """-1 while nobody has asked for it."""
    end: int
    after: int
    """Where the next line starts; -1 for the last one."""

    @property
    def width(self) -> int:
        return self.end - self.text


def wrapped(data: bytes, ends: Iterable[int]) -> Iterator[Wrapped]:
    """The wrapped lines in which triggers end; `ends` ascending."""
    done = 0
    for end in ends:
        if end <= done:
            continue
        lines = _group(data, done, end - 1)
        done = max(end, lines[-1].end)
        if len(lines) > 1:
            last = (lines[-1].text, lines[-1].end)
            for sign in (b"\\", b"=") if any(_ends(data, line, b"=") for line in lines[:-1]) else (b"\\",):
                spans = [(line.text, line.end - _ends(data, line, sign)) for line in lines[:-1]]
                yield Wrapped(data, [*spans, last])


def _group(data: bytes, done: int, at: int) -> list[_Line]:
    """The lines around an offset that belong together."""
    own = _line(data, data.rfind(b"\n", done, at) + 1 or done)
    lines = [own]
    if not _may_go_on(data, lines[0].start, done) and not _may_go_on(data, lines[0].after, done):
        return lines
    while len(lines) < _BACK and lines[0].start > done:
        before = _line(data, data.rfind(b"\n", done, lines[0].start - 1) + 1 or done)
        pair = _joined(data, before, lines[0])
        if pair is None or (len(lines) > 1 and pair[0].width != lines[0].width):
            break
        lines[:1] = pair
    full = lines[0].width if len(lines) > 1 else -1
    while lines[-1].after > 0:
        pair = _joined(data, lines[-1], _line(data, lines[-1].after))
        if pair is None or (len(lines) > 1 and lines[-1].width != full):
            break
        full = pair[0].width if len(lines) == 1 else full
        lines[-1:] = pair
        if len(lines) == _SETTINGS and all(_NAMED.match(data, line.text, line.end) for line in lines):
            return [own]
    return lines


def _may_go_on(data: bytes, at: int, done: int) -> bool:
    """False when a line that begins here surely does not go on with a token of the line before it."""
    if at <= done or at >= len(data):
        return False
    last = data[at - 2] if data[at - 2] != _RETURN else data[at - 3]
    if not _is_token(last):
        return False
    # A line that begins with a blank may still go on behind a gutter.
    return data[at] > _SPACE or _GUTTER.match(data, at) is not None


def _line(data: bytes, start: int) -> _Line:
    after = data.find(b"\n", start)
    end = len(data) if after < 0 else after
    end -= data[end - 1 : end] == b"\r" and end > start
    return _Line(start, -1, end, after + 1)


def _text(data: bytes, line: _Line) -> int:
    """Where the text of a line begins behind a gutter."""
    lead = LEAD.match(data, line.start, line.end) if line.text < 0 else None
    return line.text if lead is None else lead.end()


def _joined(data: bytes, one: _Line, other: _Line) -> tuple[_Line, _Line] | None:
    """Both lines, as far as they are text, when the second goes on where the first is broken; else None."""
    if one.start == one.end or other.start == other.end:
        return None
    last = data[one.end - 1]
    if not _is_token(last) or (last != _BACKSLASH and one.end - one.start < _NARROWEST):
        return None
    text, after = _text(data, one), _text(data, other)
    gutter = _DIGITS.sub(b"0", data[one.start : text].lstrip()) if text > one.start else b""
    if gutter.strip() == b"" or gutter != _DIGITS.sub(b"0", data[other.start : after].lstrip()):
        text, after = one.start, other.start
    if after == other.end or not _is_token(data[after]):
        return None
    width = one.end - text
    if last != _BACKSLASH and (width < _NARROWEST or other.end - after > width + _SLACK):
        return None
    return _Line(one.start, text, one.end, one.after), _Line(other.start, after, other.end, other.after)


def _is_token(char: int) -> bool:
    return char > _SPACE and char != _DELETE


def _ends(data: bytes, line: _Line, sign: bytes) -> bool:
    """True for a line that ends softly, with one such sign."""
    return data[line.end - 1 : line.end] == sign and data[line.end - 2 : line.end - 1] != sign
