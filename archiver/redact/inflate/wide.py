"""Text whose characters have two or four bytes; and what cannot be looked into."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

from archiver.redact.inflate.content import OVERLAP, Budget, Content, UnseenError, why

MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer mark first: that of UTF-32 begins as that of UTF-16."""


class Closed:
    """A form that this package cannot look into."""

    def __init__(self, failure: str) -> None:
        self.failure: str | None = failure

    def feed(self, _chunk: bytes, /) -> Iterator[bytes]:
        return iter(())

    def close(self) -> Iterator[bytes]:
        return iter(())


class Marked:
    """Text in UTF-16 or UTF-32 with a byte order mark, given as UTF-8."""

    def __init__(self, encoding: str, budget: Budget) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._content = Content(budget, budget.limits.depth)
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        piece = self._decoder.decode(chunk).encode("utf-8", "surrogatepass")
        if piece and self.failure is None:
            yield from self._guarded(self._content.piece(piece))

    def close(self) -> Iterator[bytes]:
        if self.failure is None:
            yield from self._guarded(self._content.close())

    def _guarded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from pieces
        except UnseenError as error:
            self.failure = why("text", error)


_WIDE = re.compile(rb"(?:[\t\n\r -~]\0(?:\0\0)?){5,}+[ -~]?")


class Wide:
    """Texts in UTF-16 or UTF-32 that stand without a byte order mark anywhere in a binary file."""

    failure: str | None = None

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        held = self._tail + chunk
        self._tail = held[-4 * OVERLAP :]
        texts = [match[0].replace(b"\0", b"") for match in _WIDE.finditer(held)]
        if texts:
            yield b"\n".join(texts)

    def close(self) -> Iterator[bytes]:
        return iter(())
