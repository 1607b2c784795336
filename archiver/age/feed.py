"""Lines and exact amounts from a source that may answer short."""

from __future__ import annotations

from typing import BinaryIO

_PIECE = 16 * 1024


class Feed:
    """Reads a source in order; what was read ahead for a line is given out by the next `take`."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._ahead = b""
        self._at = 0

    def line(self, limit: int) -> bytes | None:
        """The next line without its LF; None if there is no LF within `limit` bytes or before the end."""
        end = self._ahead.find(b"\n", self._at)
        while end < 0 and len(self._ahead) - self._at < limit:
            piece = self._source.read(_PIECE)
            if not piece:
                return None
            seen = len(self._ahead) - self._at
            self._ahead = self._ahead[self._at :] + piece
            self._at = 0
            end = self._ahead.find(b"\n", seen)
        if end < 0 or end + 1 - self._at > limit:
            return None
        line = self._ahead[self._at : end]
        self._at = end + 1
        return line

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes, or fewer at the end of the source."""
        first = self._ahead[self._at : self._at + size]
        self._at += len(first)
        if self._at == len(self._ahead):
            self._ahead, self._at = b"", 0
        pieces = [first] if first else []
        wanted = size - len(first)
        while wanted:
            piece = self._source.read(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
