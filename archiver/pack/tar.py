"""The one form of a tar header that a bundle may have, as a pure function of what the manifest says.

A reader makes the header it expects and compares bytes, so nothing in a header is ever interpreted. The form
is that of POSIX.1-2017 `pax`: a `ustar` header, and before it, where 100 ASCII bytes do not hold the path, an
extended header with the path alone.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from archiver.errors import ArchiveFormatError
from archiver.model.limits import MAX_MANIFEST
from archiver.model.manifest import MANIFEST, MAX_TIME

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)

_HEADER = struct.Struct("<100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x")
_NAME = 100
_SIZE = slice(124, 136)
_TIME = slice(136, 148)
_MANIFEST_MODE = 0o644


def header(path: str, size: int, mode: int, mtime: int) -> bytes:
    """All header blocks of one regular file."""
    name = path.encode()
    if len(name) <= _NAME and path.isascii():
        return _block(name, size, mode, mtime, b"0")
    record = _pax_record(b"path", name)
    # A tool that knows no pax takes the name in the second header: short, and the path's own.
    short = b"long-name/" + hashlib.sha256(name).hexdigest()[:32].encode()
    return (
        _block(b"pax-header", len(record), 0o644, mtime, b"x")
        + record
        + padding(len(record))
        + _block(short, size, mode, mtime, b"0")
    )


def padding(size: int) -> bytes:
    """The zero bytes that fill the last block of `size` bytes."""
    return bytes(-size % BLOCK)


def length(path: str, size: int) -> int:
    """Bytes that a member takes in the stream."""
    return len(header(path, size, 0, 0)) + size + -size % BLOCK


def manifest_entry(raw: bytes, mtime: int) -> bytes:
    """`manifest.json` as the whole content of frame 0."""
    return header(MANIFEST, len(raw), _MANIFEST_MODE, mtime) + raw + padding(len(raw))


def parse_manifest_entry(content: bytes | bytearray) -> tuple[bytes, int]:
    """The bytes of `manifest.json` and the time in its header; `ArchiveFormatError` for any other form."""
    try:
        size, mtime = (int(content[field].rstrip(b"\0"), 8) for field in (_SIZE, _TIME))
    except ValueError:
        size = mtime = -1
    if 0 <= size <= MAX_MANIFEST and 0 <= mtime < MAX_TIME:
        end = BLOCK + size
        around = (content[:BLOCK], content[end:])
        if around == (header(MANIFEST, size, _MANIFEST_MODE, mtime), padding(size)) and end <= len(content):
            return bytes(memoryview(content)[BLOCK:end]), mtime
    raise ArchiveFormatError(f"the first frame does not hold {MANIFEST} as the format writes it")


def _block(name: bytes, size: int, mode: int, mtime: int, kind: bytes) -> bytes:
    fields = (name, b"%07o\0" % mode, b"%07o\0" % 0, b"%07o\0" % 0, b"%011o\0" % size, b"%011o\0" % mtime)
    rest = (kind, b"", b"ustar\0", b"00", b"", b"", b"%07o\0" % 0, b"%07o\0" % 0, b"")
    blank = _HEADER.pack(*fields, b" " * 8, *rest)
    return _HEADER.pack(*fields, b"%06o\0 " % sum(blank), *rest)


def _pax_record(key: bytes, value: bytes) -> bytes:
    """`<length> <key>=<value>\\n`, where the length counts its own digits."""
    size = len(key) + len(value) + 3
    digits = len(str(size))
    while len(str(size + digits)) != digits:
        digits += 1
    return b"%d %s=%s\n" % (size + digits, key, value)
