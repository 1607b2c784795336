"""zstd frames: made with a check that they decode, and cut from a stream without trusting what they say.

A frame (RFC 8878) has a content size, a checksum and no name of a dictionary; a reader knows the content size
it must have before it looks, and what is taken as said before the frame begins, if anything is. The only file
that knows the `zstandard` package.
"""

from __future__ import annotations

import threading
from typing import BinaryIO, Final

import zstandard

from archiver.errors import ArchiveFormatError

CONTENT: Final = 8 * 2**20
"""Bytes that every frame but the first and the last holds."""
MAX_WINDOW: Final = 8 * 2**20

_LEVEL = 3
_LEVEL_OF_LITTLE = 12
LITTLE: Final = 2**20
"""Bytes of content up to which a frame is compressed as well as a few milliseconds allow."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_LONGEST_HEADER = 14
_MAX_BLOCK = 128 * 2**10
_CHECKSUM = 4
_SIZE_FIELDS = ((0, 0), (2, 256), (4, 0), (8, 0))
"""By the two top bits of the descriptor: bytes of the content size field, and what is added to its value."""


class Codec(threading.local):
    """Compresses frames and decodes them again before they count; one state a thread."""

    def __init__(self, dictionary: bytes | None = None) -> None:
        """`dictionary`: what is taken as said before each frame."""
        self._dictionary = _dictionary(dictionary)
        self._compressors: dict[int, zstandard.ZstdCompressor] = {}
        self._decoder = _Decoder(dictionary)

    def encode(self, content: bytes | bytearray) -> bytes:
        """One frame; `ArchiveFormatError` if it does not decode to its content."""
        try:
            frame = self._compressor(len(content)).compress(content)
            if self._decoder.decode(frame, len(content)) == content:
                return frame
        except zstandard.ZstdError as error:
            raise ArchiveFormatError(f"a frame could not be written: {error}", remedy=_FAULTY) from error
        raise ArchiveFormatError("a frame does not decode to what went into it", remedy=_FAULTY)

    def _compressor(self, size: int) -> zstandard.ZstdCompressor:
        level = _LEVEL_OF_LITTLE if size <= LITTLE else _LEVEL
        made = self._compressors.get(level)
        if made is None:
            made = zstandard.ZstdCompressor(level=level, write_checksum=True, dict_data=self._dictionary)
            self._compressors[level] = made
        return made


def _dictionary(data: bytes | None) -> zstandard.ZstdCompressionDict | None:
    """Of plain content, whatever it begins with."""
    if data is None:
        return None
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


class _Decoder:
    """Decodes whole frames into one buffer, which the next frame overwrites."""

    def __init__(self, dictionary: bytes | None = None) -> None:
        self._decompressor = zstandard.ZstdDecompressor(
            dict_data=_dictionary(dictionary), max_window_size=MAX_WINDOW
        )
        self._buffer = bytearray()

    def decode(self, frame: bytes, size: int) -> bytearray:
        """The content of a frame of one buffer's length, `size`; `ZstdError` if it has another one."""
        if len(self._buffer) != size:
            self._buffer = bytearray(size)
        with self._decompressor.stream_reader(frame) as reader:
            if reader.readinto(self._buffer) != size or reader.read(1):
                raise zstandard.ZstdError(f"its content is not {size} bytes")
        return self._buffer


_FAULTY = "archive again; if it happens twice, test the memory of this machine and the zstandard package"


class FrameReader:
    """Cuts one frame after the other from a stream; reads `ahead` bytes at a time."""

    def __init__(self, source: BinaryIO, ahead: int) -> None:
        self._source = source
        self._ahead = ahead
        self._held = bytearray()
        self._number = 0
        self._decoder = _Decoder()
        self.sizes: list[int] = []
        """Bytes of each frame that was read or passed over."""

    def use(self, dictionary: bytes) -> None:
        """What is taken as said before each of the frames that follow."""
        self._decoder = _Decoder(dictionary)

    def content_size(self) -> int:
        """The content size that the next frame claims; nothing is taken from the stream."""
        return self._header()[1]

    def read(self, expected: int) -> bytearray:
        """The content of the next frame, which must have `expected` bytes; good until the next call."""
        try:
            content = self._decoder.decode(self._cut(expected), expected)
        except zstandard.ZstdError as error:
            raise self._error(f"does not decode: {error}") from error
        self._number += 1
        return content

    def skip(self, expected: int) -> None:
        """Pass over the next frame, which must claim `expected` bytes; it is not decoded."""
        self._cut(expected)
        self._number += 1

    def _cut(self, expected: int) -> bytes:
        """Take the next frame from the stream."""
        header, claimed = self._header()
        if claimed != expected:
            raise self._error(f"claims {claimed} bytes of content where {expected} belong")
        end = self._end(header, expected + expected // 128 + 1024)
        frame = bytes(memoryview(self._held)[:end])
        del self._held[:end]
        self.sizes.append(end)
        return frame

    def at_end(self) -> bool:
        """Whether the stream ends here."""
        return not self._held and not self._source.read(1)

    def _header(self) -> tuple[int, int]:
        """Length of the frame header and the content size in it."""
        self._fill(_LONGEST_HEADER, strict=False)
        held = self._held
        if held[:4] != _MAGIC[: len(held)] or not held:
            raise self._error("does not begin as a zstd frame, or is missing")
        self._need(6)
        descriptor = held[4]
        single = descriptor >> 5 & 1
        width, base = _SIZE_FIELDS[descriptor >> 6]
        width = width or single
        if descriptor & 0b11111 != 0b00100 or not width:
            raise self._error("lacks a content size or checksum, or names a dictionary")
        start = 5 if single else 6
        self._need(start + width)
        content = int.from_bytes(held[start : start + width], "little") + base
        window = content if single else (1 << 10 + (held[5] >> 3)) // 8 * (8 + (held[5] & 7))
        if window > MAX_WINDOW:
            raise self._error(f"needs a window of {window} bytes, the limit is {MAX_WINDOW}")
        return start + width, content

    def _end(self, position: int, longest: int) -> int:
        """Where the frame ends, found by walking its blocks from `position` on."""
        last = False
        while not last:
            self._need(position + 3)
            block = int.from_bytes(self._held[position : position + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            if kind == 3 or size > _MAX_BLOCK:
                raise self._error("holds a malformed block")
            position += 3 + (1 if kind == 1 else size)
            if position > longest:
                raise self._error(f"is longer than the {longest} bytes that its content can need")
        self._need(position + _CHECKSUM)
        return position + _CHECKSUM

    def _need(self, count: int) -> None:
        self._fill(count, strict=True)

    def _fill(self, count: int, *, strict: bool) -> None:
        while len(self._held) < count:
            data = self._source.read(self._ahead)
            if not data:
                if strict:
                    raise self._error("is cut off")
                return
            self._held += data

    def _error(self, what: str) -> ArchiveFormatError:
        return ArchiveFormatError(
            f"frame {self._number} of the archive {what}",
            remedy="restore an older checkpoint, or the bundle from a copy of the store",
        )
