"""Archives that are headers and files as they are, one after the other: tar, and ar as in .deb and .a files.

What they hold stands in their own bytes, so only what is compressed inside them is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from archiver.redact.inflate.content import FAULTS, Budget, Content, UnseenError, why

AR: Final = b"!<arch>\n"
_TAR_BLOCK: Final = 512
_AR_HEADER: Final = 60
_NO_CONTENT: Final = frozenset(b"123456")
"""Links, devices, folders and pipes: whatever size their headers say."""
_SUM = slice(148, 156)
_TOLD = re.compile(rb" *[0-7]+[ \0]*")


class _Framed:
    """Cuts files from a stream of headers and contents."""

    kind: str
    header: int
    """Bytes of a header."""
    align: int
    """What follows a file begins at a multiple of so many bytes."""

    def __init__(self, budget: Budget, depth: int) -> None:
        self._budget = budget
        self._depth = depth
        self._held = b""
        self._left = 0
        self._padding = 0
        self._content: Content | None = None
        self.failure: str | None = None

    def size_in(self, header: bytes) -> int:
        """Bytes of content behind a header; raises `UnseenError` for a header that is none."""
        raise NotImplementedError

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            yield from self._cut(chunk)
        except FAULTS as error:
            self.failure = why(self.kind, error)

    def _cut(self, chunk: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(chunk):
            if self._left:
                piece = chunk[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                yield from self._take(piece)
            elif self._padding:
                skipped = min(self._padding, len(chunk) - at)
                self._padding -= skipped
                at += skipped
            else:
                part = chunk[at : at + self.header - len(self._held)]
                at += len(part)
                self._held += part
                if len(self._held) == self.header:
                    self._begin(self._held)
                    self._held = b""

    def _begin(self, header: bytes) -> None:
        if header.strip(b"\0"):
            self._budget.entry()
        self._left = self.size_in(header)
        self._padding = -self._left % self.align
        if self._left:
            self._content = Content(self._budget, self._depth, shown=False)

    def _take(self, piece: bytes) -> Iterator[bytes]:
        if self._content is not None:
            yield from self._content.piece(piece)
            if not self._left:
                yield from self._content.close()

    def close(self) -> Iterator[bytes]:
        if self.failure is None and (self._left or self._held.strip(b"\0\n")):
            self.failure = f"{self.kind}: it ends too early"
        return iter(())


class Tar(_Framed):
    """A tar archive: ustar, pax, GNU, and those before them."""

    kind = "tar"
    header = align = _TAR_BLOCK

    def size_in(self, header: bytes) -> int:
        if not header.strip(b"\0"):
            return 0  # the end; another archive may follow
        if not is_tar(header):
            raise UnseenError("it is damaged")
        return 0 if header[156] in _NO_CONTENT else _number(header[124:136])


class Ar(_Framed):
    """An ar archive."""

    kind = "ar"
    header = _AR_HEADER
    align = 2

    def __init__(self, budget: Budget, depth: int) -> None:
        super().__init__(budget, depth)
        self._padding = len(AR)

    def size_in(self, header: bytes) -> int:
        size = header[48:58].strip()
        if header[58:] != b"`\n" or not size.isdigit():
            raise UnseenError("it is damaged")
        return int(size)


def is_tar(block: bytes) -> bool:
    """Whether a block of 512 bytes is a header: its sum says so, signed or not."""
    if _TOLD.fullmatch(block, _SUM.start, _SUM.stop) is None:
        return False
    told = _number(block[_SUM])
    counted = sum(block) - sum(block[_SUM]) + 8 * 0x20
    if told == counted:
        return counted > 8 * 0x20
    high = sum(byte > 127 for byte in block) - sum(byte > 127 for byte in block[_SUM])
    return told == counted - 256 * high


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or big-endian where the first bit is set."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip(b" ")
    if digits and not digits.strip(b"01234567"):
        return int(digits, 8)
    if digits:
        raise UnseenError("it is damaged")
    return 0
