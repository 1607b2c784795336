"""Looks into compressed files, within limits, so that what they hold can be scanned."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

MOST_INFLATED: Final = 1 << 30
MOST_ENTRIES: Final = 20_000
MOST_HELD: Final = 64 << 20
_STEP = 1 << 20
_OVERLAP = 4 << 10


class Inflater(Protocol):
    """Gives the content of a compressed file piece by piece; `failure` says why not all of it was seen."""

    failure: str | None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        """Pieces of content that this chunk completes."""

    def close(self) -> Iterator[bytes]:
        """What is left at the end."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _Stream:
    """gzip, bzip2 and xz: one or more members after one another."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._decoder = self._new()
        self._tail = b""
        self._seen = 0
        self.failure: str | None = None

    def _new(self) -> _Decoder:
        if self._kind == "bzip2":
            return bz2.BZ2Decompressor()
        if self._kind == "xz":
            return lzma.LZMADecompressor(memlimit=128 << 20)
        return zlib.decompressobj(wbits=31)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and self.failure is None:
            try:
                piece = self._decoder.decompress(chunk, _STEP)
            except (zlib.error, OSError, lzma.LZMAError, ValueError) as error:
                self.failure = f"{self._kind}: {error}"
                return
            self._seen += len(piece)
            if self._seen > MOST_INFLATED:
                self.failure = f"{self._kind}: more than {MOST_INFLATED >> 20} MiB of content"
                return
            if piece:
                yield self._tail + piece
                self._tail = (self._tail + piece)[-_OVERLAP:]
            chunk = self._rest(piece)

    def _rest(self, piece: bytes) -> bytes:
        if self._decoder.eof:
            rest = self._decoder.unused_data
            self._decoder = self._new()
            return rest.lstrip(b"\0")
        if isinstance(self._decoder, bz2.BZ2Decompressor | lzma.LZMADecompressor):
            return b""
        return getattr(self._decoder, "unconsumed_tail", b"") if piece else b""

    def close(self) -> Iterator[bytes]:
        return iter(())


class _Zip:
    """A zip archive, held in memory until its directory at the end is there."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.failure: str | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
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
                yield from self._entries(archive)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            lzma.LZMAError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ) as e:
            self.failure = f"zip: {e}"

    def _entries(self, archive: zipfile.ZipFile) -> Iterator[bytes]:
        entries = archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"more than {MOST_ENTRIES} entries")
        seen = 0
        for entry in entries:
            tail = b""
            with archive.open(entry) as file:
                while piece := file.read(_STEP):
                    seen += len(piece)
                    if seen > MOST_INFLATED:
                        raise ValueError(f"more than {MOST_INFLATED >> 20} MiB of content")
                    yield tail + piece
                    tail = (tail + piece)[-_OVERLAP:]


class _Closed:
    """A format that this package cannot look into."""

    def __init__(self, kind: str) -> None:
        self.failure: str | None = f"{kind} is not supported"

    def feed(self, _chunk: bytes, /) -> Iterator[bytes]:
        return iter(())

    def close(self) -> Iterator[bytes]:
        return iter(())


class _Utf16:
    """Text in UTF-16 with a byte order mark, given as UTF-8."""

    def __init__(self) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._tail = b""
        self.failure: str | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        piece = self._decoder.decode(chunk).encode("utf-8", "surrogatepass")
        if piece:
            yield self._tail + piece
            self._tail = (self._tail + piece)[-_OVERLAP:]

    def close(self) -> Iterator[bytes]:
        return iter(())


def inflater_for(start: bytes) -> Inflater | None:
    """What looks into a file that begins so, or None for a file that is what it is."""
    if start.startswith(b"\x1f\x8b"):
        return _Stream("gzip")
    if start.startswith(b"BZh"):
        return _Stream("bzip2")
    if start.startswith(b"\xfd7zXZ\0"):
        return _Stream("xz")
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _Zip()
    if start.startswith((b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")):
        return _Closed({b"\x28": "zstd", b"7": "7z", b"R": "rar"}[start[:1]])
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _Utf16()
    return None
