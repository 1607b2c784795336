"""Streams that are compressed as a whole: gzip, bzip2, xz, zlib and zstd, one or more after one another."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

import zstandard

from archiver.redact.inflate.content import FAULTS, STEP, Budget, Content, UnseenError, why

STREAMS: Final = frozenset({"gzip", "bzip2", "xz", "lzma", "zlib", "zstd"})
_SLICE: Final = 16 << 10
"""Compressed bytes taken at a time: what is left behind the end of a stream is copied, once a stream."""
_ZSTD_SLICE: Final = 256
"""The same for zstd, whose decoder knows no limit: four bytes may stand for 128 KiB."""
_MEMORY: Final = 128 << 20
"""Bytes that a decoder may need."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _Zlib:
    """zlib's decoder with the face of the others: it keeps what it has not inflated yet."""

    def __init__(self, wbits: int) -> None:
        self._decoder = zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int = STEP, /) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


class _Zstd:
    """One frame of zstd, likewise."""

    def __init__(self) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MEMORY)
        self._decoder = decompressor.decompressobj()
        self._held = b""
        self._at = 0

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return self._at >= len(self._held)

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data + self._held[self._at :]

    def decompress(self, data: bytes, max_length: int = STEP, /) -> bytes:
        if data:
            self._held, self._at = self._held[self._at :] + data, 0
        made: list[bytes] = []
        size = 0
        while size < max_length and not self.needs_input and not self.eof:
            part = self._held[self._at : self._at + _ZSTD_SLICE]
            self._at += len(part)
            try:
                made.append(self._decoder.decompress(part))
            except zstandard.ZstdError as error:
                raise EOFError from error
            size += len(made[-1])
        return b"".join(made)


def _decoder(kind: str) -> _Decoder:
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    if kind in ("xz", "lzma"):
        return lzma.LZMADecompressor(memlimit=_MEMORY)
    if kind == "zstd":
        return _Zstd()
    return _Zlib(31 if kind == "gzip" else 15)


class Stream:
    """A compressed stream."""

    def __init__(self, kind: str, budget: Budget, depth: int) -> None:
        self._kind = kind
        self._budget = budget
        self._decoder: _Decoder | None = _decoder(kind)
        self._content = Content(budget, depth)
        self._open = True
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        for at in range(0, len(chunk), _SLICE):
            if self.failure is not None:
                return
            try:
                yield from self._inflate(chunk[at : at + _SLICE])
            except FAULTS as error:
                self.failure = why(self._kind, error)

    def _inflate(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and self._decoder is not None:
            if not self._open:  # zeros may fill up the room between and behind
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    return
            self._open = True
            decoder = self._decoder
            piece = decoder.decompress(chunk, STEP)
            while piece or not (decoder.eof or decoder.needs_input):
                if piece:
                    yield from self._content.piece(piece)
                piece = b"" if decoder.eof else decoder.decompress(b"", STEP)
            chunk = b""
            if decoder.eof:
                self._open = False
                self._budget.check_time()
                chunk = decoder.unused_data
                # What stands behind a zlib stream belongs to whoever wrote it there.
                self._decoder = None if self._kind == "zlib" else _decoder(self._kind)

    def close(self) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            yield from self._content.close()
            if self._open:
                raise UnseenError("it ends too early")
        except FAULTS as error:
            self.failure = why(self._kind, error)
