"""How large pictures may be and how many, for the Messages API (guide "Vision", limits of a request).

What a picture measures is read in its header; nothing is decoded beyond that.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import Final

from archiver.transcripts.dialect import Blob, Path, Problem

MOST_BYTES: Final = 5 << 20
"""Of the base64 text of one picture."""
MOST_DOCUMENT_BYTES: Final = 32 << 20
"""Of one document: that is the limit of a whole request."""
MOST_PIXELS: Final = 8000
MOST_PICTURES: Final = 100
MANY: Final = 20
"""With more pictures than this in one request each may have `MOST_PIXELS_OF_MANY` only."""
MOST_PIXELS_OF_MANY: Final = 2000
_HEAD: Final = 1 << 18
"""Characters of base64 in which the size of a JPEG mostly stands, behind its previews and profiles."""


class Pictures:
    """What one conversation shows the model; what it takes too much of goes, the oldest first."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._seen: list[tuple[int, Path, int]] = []

    def see(self, item: int, blob: Blob) -> None:
        """The next picture or document of the conversation."""
        picture = blob.media_type.startswith("image/")
        size = len(blob.data)
        if size > (MOST_BYTES if picture else MOST_DOCUMENT_BYTES):
            self._add(item, blob.path, f"{size:,} bytes of base64 are more than the provider takes")
            return
        if not picture:
            return
        pixels = max(measures(blob.data), default=0)
        if pixels > MOST_PIXELS:
            self._add(item, blob.path, f"{pixels:,} pixels are more than the provider takes")
        else:
            self._seen.append((item, blob.path, pixels))

    def boundary(self) -> None:
        """What was shown before this, the model sees no more."""
        self._found.clear()
        self._seen.clear()

    def problems(self) -> Iterator[Problem]:
        """What is too large or too much, once all was seen."""
        yield from self._found
        over = max(0, len(self._seen) - MOST_PICTURES)
        for item, path, _ in self._seen[:over]:
            yield Problem("too_large", item, f"more than {MOST_PICTURES} pictures in one request", path=path)
        kept = self._seen[over:]
        for item, path, pixels in kept if len(kept) > MANY else ():
            if pixels > MOST_PIXELS_OF_MANY:
                detail = f"{pixels:,} pixels are too many where there are more than {MANY} pictures"
                yield Problem("too_large", item, detail, path=path)

    def _add(self, item: int, path: Path, detail: str) -> None:
        self._found.append(Problem("too_large", item, detail, path=path))


def measures(text: str) -> tuple[int, ...]:
    """Width and height of a PNG, JPEG, GIF or WebP in base64; nothing where its header does not say."""
    try:
        head = base64.b64decode(text[:_HEAD].rstrip("=")[: len(text[:_HEAD].rstrip("=")) // 4 * 4])
        if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
            return struct.unpack_from(">II", head, 16)
        if head[:4] == b"GIF8":
            return struct.unpack_from("<HH", head, 6)
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
        return _jpeg(head) if head[:2] == b"\xff\xd8" else ()
    except (binascii.Error, ValueError, struct.error, IndexError):
        return ()


def _webp(head: bytes) -> tuple[int, ...]:
    kind = head[12:16]
    if kind == b"VP8X":
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", head, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(head: bytes) -> tuple[int, ...]:
    """The size in the first frame header; segments before it are passed over by their lengths."""
    place = 2
    while head[place] == 0xFF:
        kind = head[place + 1]
        if kind == 0xFF:  # a filler
            place += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, place + 5)
            return width, height
        place += 2 + struct.unpack_from(">H", head, place + 2)[0]
    return ()
