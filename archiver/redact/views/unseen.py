"""A text without what nobody sees: invisible characters and terminal escapes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, Protocol

from archiver.redact.engine import Engine, Expression
from archiver.redact.views.mapped import Mapped


class View(Protocol):
    """One other way to read a text."""

    def __call__(self, data: bytes) -> Mapped | None:
        """The text as this view reads it, or None when there is nothing to read differently."""


INVISIBLE: Final = tuple(
    chr(code).encode()
    for code in (0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)
)
"""Characters that nobody sees: soft hyphen, zero-width ones, marks of direction, byte order mark."""
# All first bytes in one class, which a search looks for first; then what stands behind each.
_SIGN = (
    rb"[\x1b" + b"".join(sorted({sign[:1] for sign in INVISIBLE})) + rb"]"
    rb"(?:(?<=\x1b)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\x00\n]{0,512}(?:\x07|\x1b\\)"
    rb"|[PX^_][^\x1b\x00\n]{0,512}\x1b\\|[ -/]{1,2}[0-~]|[0-Z\\^-~])"
    rb"|" + b"|".join(b"(?<=%b)%b" % (sign[:1], sign[1:]) for sign in INVISIBLE) + rb")"
)
_UNSEEN = re.compile(_SIGN + rb"(?:" + _SIGN + rb")*+")


@functools.cache
def _invisible() -> Engine:
    return Engine([Expression(b"|".join(map(re.escape, INVISIBLE)))])


def without_unseen(data: bytes) -> Mapped | None:
    """The text without invisible characters and terminal escapes (ECMA-48: CSI, OSC, strings, single)."""
    if b"\x1b" not in data and (data.isascii() or not _invisible().scan(data, 1)):
        return None
    return _without(data, _UNSEEN)


def spaced(data: bytes) -> Mapped | None:
    """The text with a space for terminal escapes, which may be all that stands between two secrets."""
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


def readings(data: bytes) -> Iterator[bytes]:
    """What `views` reads, without the ways back, which take far longer to make."""
    if b"\x1b" in data or (not data.isascii() and _invisible().scan(data)):
        for instead in (b"", b" ") if b"\x1b" in data else (b"",):
            seen = _UNSEEN.sub(instead, data)
            if seen != data:
                yield seen
