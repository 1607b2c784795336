"""The body of an object, cut into parts that are sent, and the checksums that go with them."""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from archiver.aws.door import crc64nvme
from archiver.store.options import Checksums

_AT_ONCE: Final = 1 << 16
"""Bytes of a body that goes out together with its headers."""


def cut(body: Iterable[bytes], size: int) -> Iterator[io.BytesIO]:
    """The body in files of `size` bytes, the last with what is left; none for an empty body.

    Files, and not bytes: those would go out in one call that has to end within the timeout, however many they
    are. Of a file each block has the timeout for itself, so that a slow link is no dead one.
    """
    part = io.BytesIO()
    for chunk in body:
        rest = memoryview(chunk)
        while rest:
            rest = rest[part.write(rest[: size - part.tell()]) :]
            if part.tell() == size:
                yield part
                part = io.BytesIO()
    if part.tell():
        yield part


def sendable(part: io.BytesIO) -> bytes | io.BytesIO:
    """The part from its beginning, as boto3 takes it; a small one as bytes."""
    part.seek(0)
    return part.read() if part.getbuffer().nbytes <= _AT_ONCE else part


def of_object(data: memoryview, checksums: Checksums) -> dict[str, Any]:
    """The checksum of an object that goes up in one request."""
    if checksums == "full":
        return {"ChecksumSHA256": sha256(data)}
    return {"ChecksumCRC32": crc32(data)} if checksums == "basic" else {}


def of_upload(checksums: Checksums) -> dict[str, Any]:
    """What the start of a multipart upload says of its checksums.

    CRC-64/NVME covers the whole object, whatever its parts. Servers that do not know it get a CRC-32 of each
    part, and keep one of those.
    """
    if checksums == "full":
        return {"ChecksumAlgorithm": "CRC64NVME", "ChecksumType": "FULL_OBJECT"}
    return {"ChecksumAlgorithm": "CRC32"} if checksums == "basic" else {}


def of_part(data: memoryview, checksums: Checksums) -> dict[str, Any]:
    """The checksum of one part."""
    if checksums == "full":
        return {"ChecksumCRC64NVME": crc64(crc64nvme(data))}
    return {"ChecksumCRC32": crc32(data)} if checksums == "basic" else {}


def of_whole(value: int, checksums: Checksums) -> dict[str, Any]:
    """What the end of a multipart upload says: the CRC-64/NVME of the object, where it is used."""
    if checksums == "full":
        return {"ChecksumCRC64NVME": crc64(value), "ChecksumType": "FULL_OBJECT"}
    return {}


def sha256(data: bytes | memoryview) -> str:
    """The SHA-256 as S3 writes it."""
    return base64_of(hashlib.sha256(data).digest())


def crc32(data: bytes | memoryview) -> str:
    """The CRC-32 as S3 writes it."""
    return base64_of(zlib.crc32(data).to_bytes(4, "big"))


def crc64(value: int) -> str:
    """A CRC-64/NVME as S3 writes it."""
    return base64_of(value.to_bytes(8, "big"))


def base64_of(raw: bytes) -> str:
    """A digest as S3 writes it."""
    return base64.b64encode(raw).decode()
