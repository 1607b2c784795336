"""Looks into compressed files, within limits, so that what they hold can be scanned."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

MOST_INFLATED: Final = 1 << 30
MOST_ENTRIES: Final = 20_000
MOST_HELD: Final = 64 << 20
DEEPEST: Final = 3
START: Final = 16
"""So many bytes of a file say what it is."""
_STEP = 1 << 20
_OVERLAP = 4 << 10
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    lzma.LZMAError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)


class Inflater(Protocol):
    """Gives the content of a compressed file piece by piece; `failure` says why not all of it was seen."""

    failure: str | None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        """Pieces of content that this chunk completes."""

    def close(self) -> Iterator[bytes]:
        """What is left at the end."""


class _Budget:
    """Bytes that may still be inflated, at all depths together."""

    def __init__(self) -> None:
        self._left = MOST_INFLATED

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ValueError(f"more than {MOST_INFLATED >> 20} MiB of content")


class _Content:
    """One inflated file: its pieces, each after the end of the one before, and what archives in it hold."""

    def __init__(self, budget: _Budget, depth: int) -> None:
        self._budget = budget
        self._depth = depth
        self._tail = b""
        self._start: bytes | None = b""
        self._inner: Inflater | None = None

    def piece(self, piece: bytes) -> Iterator[bytes]:
        self._budget.spend(len(piece))
        if self._start is not None:
            piece = self._start + piece
            if len(piece) < START:
                self._start = piece
                return
        yield from self._looked(piece)

    def _looked(self, piece: bytes) -> Iterator[bytes]:
        if self._start is not None:
            self._start = None
            self._inner = _inflater(piece, self._budget, self._depth + 1)
        yield self._tail + piece
        self._tail = (self._tail + piece)[-_OVERLAP:]
        if self._inner is not None:
            yield from self._inner.feed(piece)

    def close(self) -> Iterator[bytes]:
        if self._start:
            yield from self._looked(self._start)
        if self._inner is not None:
            yield from self._inner.close()
            if self._inner.failure is not None:
                raise ValueError(f"inside it, {self._inner.failure}")


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _Stream:
    """gzip, bzip2 and xz: one or more members after one another."""

    def __init__(self, kind: str, budget: _Budget, depth: int) -> None:
        self._kind = kind
        self._decoder = self._new()
        self._content = _Content(budget, depth)
        self._open = False
        self.failure: str | None = None

    def _new(self) -> _Decoder:
        if self._kind == "bzip2":
            return bz2.BZ2Decompressor()
        if self._kind in ("xz", "lzma"):
            return lzma.LZMADecompressor(memlimit=128 << 20)
        return zlib.decompressobj(wbits=31)

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            yield from self._inflate(chunk)
        except _FAULTS as error:
            self.failure = f"{self._kind}: {error}"

    def _inflate(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            piece = self._decoder.decompress(chunk, _STEP)
            self._open = not self._decoder.eof
            if piece:
                yield from self._content.piece(piece)
            if self._decoder.eof:
                chunk = self._decoder.unused_data.lstrip(b"\0")
                self._decoder = self._new()
            elif isinstance(self._decoder, bz2.BZ2Decompressor | lzma.LZMADecompressor):
                # These keep what they have not inflated yet.
                chunk = b""
                while not self._decoder.eof and not self._decoder.needs_input:
                    if piece := self._decoder.decompress(b"", _STEP):
                        yield from self._content.piece(piece)
                if self._decoder.eof:
                    chunk = self._decoder.unused_data.lstrip(b"\0")
                    self._open = False
                    self._decoder = self._new()
            else:
                chunk = getattr(self._decoder, "unconsumed_tail", b"")

    def close(self) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            yield from self._content.close()
            if self._open:
                raise ValueError("it ends too early")
        except _FAULTS as error:
            self.failure = f"{self._kind}: {error}"


class _Zip:
    """A zip archive, held in memory until its directory at the end is there."""

    def __init__(self, budget: _Budget, depth: int) -> None:
        self._budget = budget
        self._depth = depth
        self._held = bytearray()
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        if len(self._held) + len(chunk) > MOST_HELD:
            self.failure = f"zip: larger than {MOST_HELD >> 20} MiB"
            self._held.clear()
        if self.failure is None:
            self._held += chunk
        return iter(())

    def close(self) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            with zipfile.ZipFile(io.BytesIO(self._held)) as archive:
                entries = archive.infolist()
                if len(entries) > MOST_ENTRIES:
                    raise ValueError(f"more than {MOST_ENTRIES} entries")
                yield "\n".join(entry.filename for entry in entries).encode("utf-8", "surrogatepass")
                for entry in entries:
                    yield from self._entry(archive, entry)
        except _FAULTS as error:
            self.failure = f"zip: {error}"

    def _entry(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        content = _Content(self._budget, self._depth)
        with archive.open(entry) as file:
            while piece := file.read(_STEP):
                yield from content.piece(piece)
        yield from content.close()


class _Closed:
    """A format that this package cannot look into."""

    def __init__(self, why: str) -> None:
        self.failure: str | None = why

    def feed(self, _chunk: bytes, /) -> Iterator[bytes]:
        return iter(())

    def close(self) -> Iterator[bytes]:
        return iter(())


class _Marked:
    """Text in UTF-16 or UTF-32 with a byte order mark, given as UTF-8."""

    def __init__(self, encoding: str, budget: _Budget) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._content = _Content(budget, DEEPEST)
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        piece = self._decoder.decode(chunk).encode("utf-8", "surrogatepass")
        return self._content.piece(piece) if piece else iter(())

    def close(self) -> Iterator[bytes]:
        return self._content.close()


_WIDE = re.compile(rb"(?:[\t\n\r -~]\0(?:\0\0)?){5,}+[ -~]?")


class Wide:
    """Texts in UTF-16 or UTF-32 that stand without a byte order mark anywhere in a binary file."""

    failure: str | None = None

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        held = self._tail + chunk
        self._tail = held[-4 * _OVERLAP :]
        texts = [match[0].replace(b"\0", b"") for match in _WIDE.finditer(held)]
        if texts:
            yield b"\n".join(texts)

    def close(self) -> Iterator[bytes]:
        return iter(())


_CLOSED: Final[Iterable[tuple[bytes, str]]] = (
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
)


_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer mark first: that of UTF-32 begins as that of UTF-16."""


def inflater_for(start: bytes) -> Inflater | None:
    """What looks into a file that begins so, or None for a file that is what it is."""
    return _inflater(start, _Budget(), 0)


def _inflater(start: bytes, budget: _Budget, depth: int) -> Inflater | None:
    for mark, encoding in _MARKS:
        if start.startswith(mark) and depth <= DEEPEST:
            return _Marked(encoding, budget)
    kind = _kind(start)
    if kind is None:
        return Wide() if b"\0" in start else None
    if depth > DEEPEST:
        return _Closed("archives are nested too deeply")
    if kind in ("gzip", "bzip2", "xz", "lzma"):
        return _Stream(kind, budget, depth)
    return _Zip(budget, depth) if kind == "zip" else _Closed(f"{kind} is not supported")


def _kind(start: bytes) -> str | None:
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    if start[:3] == b"BZh" and start[4:10] == b"1AY&SY":
        return "bzip2"
    if start.startswith(b"\xfd7zXZ\0"):
        return "xz"
    if start.startswith(b"]\0\0") and len(start) >= START:
        return "lzma"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return next((name for magic, name in _CLOSED if start.startswith(magic)), None)
