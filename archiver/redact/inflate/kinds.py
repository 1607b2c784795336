"""What a file is, by its first bytes, and what looks into it."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable
from typing import Final

from archiver.redact.inflate.archives import Zip
from archiver.redact.inflate.content import START, Budget, Inflater
from archiver.redact.inflate.databases import MAGIC as SQLITE
from archiver.redact.inflate.databases import Database
from archiver.redact.inflate.framed import AR, Ar, Tar, is_tar
from archiver.redact.inflate.streams import STREAMS, Stream
from archiver.redact.inflate.wide import MARKS, Closed, Marked, Wide

_LZMA_HEADER: Final = 13
_SCRIPT_ZIP = re.compile(rb"#![^\n\0]{1,200}\nPK\x03\x04")
"""An archive that runs itself, as `python -m zipapp` makes it."""
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_TEXT: Final = 64
"""No stream of as many bytes is UTF-8."""
_TOO_DEEP: Final = "archives are nested too deeply"

_BY_TWO: Final = {b"\x1f\x8b": "gzip", b"\x1f\x9d": "compress"}
_THIRD: Final = {
    # The one method that there is; some readers do not mind flags that have no meaning.
    "gzip": re.compile(rb"\x08"),
    # How many bits a code has: 9 to 16, with or without the sign of a block.
    "compress": re.compile(rb"[\x09-\x10\x89-\x90]"),
}
"""What follows a mark of two bytes, which one in 65,536 contents begins with by chance."""
_BY_MAGIC: Final = {
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    SQLITE: "SQLite",
    AR: "ar",
    # What nobody here can look into.
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x04\x22\x4d\x18": "lz4",
    b"LZIP": "lzip",
    b"\x89LZO\0": "lzop",
    b"MSCF\0\0\0\0": "cabinet",
    b"\xed\xab\xee\xdb": "rpm",
    b"hsqs": "squashfs",
    b"PACK\0\0\0": "pack of git",
    b"# v2 git bundle\n": "bundle of git",
    b"# v3 git bundle\n": "bundle of git",
}
_LOOKERS: Final[dict[str, Callable[[Budget, int], Inflater]]] = {
    "zip": Zip,
    "tar": Tar,
    "ar": Ar,
    "SQLite": Database,
}
_MAGIC = re.compile(b"|".join(map(re.escape, _BY_MAGIC)))


def opened(start: bytes, budget: Budget, depth: int) -> Inflater | None:
    """What looks into a file that begins so and lies `depth` deep, or None for one that is what it is."""
    for mark, encoding in MARKS:
        if start.startswith(mark) and depth <= budget.limits.depth:
            return Marked(encoding, budget)
    kind = kind_of(start)
    if kind is None:
        return Wide() if b"\0" in start else None
    if depth > budget.limits.depth:
        return Closed(_TOO_DEEP)
    if kind in STREAMS:
        return Stream(kind, budget, depth)
    looker = _LOOKERS.get(kind)
    return looker(budget, depth) if looker is not None else Closed(f"{kind} is not supported")


def kind_of(start: bytes) -> str | None:
    """The name of the form, or None for one that holds no other files."""
    magic = _MAGIC.match(start)
    if magic is not None:
        return _BY_MAGIC[magic[0]]
    short = _BY_TWO.get(start[:2])
    if short is not None and (len(start) == 2 or _THIRD[short].match(start, 2)):
        return short
    if start[:3] == b"BZh" and start[4:10] == b"1AY&SY":
        return "bzip2"
    if start.startswith(b"]\0\0") and len(start) > _LZMA_HEADER:
        return "lzma"
    if start[:1] == b"x" and _is_zlib(start):
        return "zlib"
    if start[:2] == b"#!" and _SCRIPT_ZIP.match(start):
        return "zip"
    if _SKIPPABLE.match(start):
        return "zstd"
    return "tar" if len(start) >= START and is_tar(start[:START]) else None


def _is_zlib(start: bytes) -> bool:
    """Whether it is no text, and inflates: the two bytes of its header stand for nothing alone."""
    if start[1:2] not in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start[:_TEXT])
    except UnicodeDecodeError:
        return _inflates(start)
    return False


def _inflates(start: bytes) -> bool:
    try:
        return bool(zlib.decompressobj().decompress(start, 1))
    except zlib.error:
        return False


__all__ = ["START", "kind_of", "opened"]
