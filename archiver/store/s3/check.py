"""The checksum of an object while it is read, beside the one that the store keeps of it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol

from archiver.aws.door import crc64nvme
from archiver.store.s3.parts import base64_of


class _Digest(Protocol):
    def update(self, data: Any, /) -> None: ...
    def digest(self) -> bytes: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: Any, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


class _Crc64:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: Any, /) -> None:
        self._value = crc64nvme(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(8, "big")


_KINDS: Final[dict[str, Callable[[], _Digest]]] = {
    "ChecksumSHA256": hashlib.sha256,
    "ChecksumCRC64NVME": _Crc64,
    "ChecksumCRC32": _Crc32,
}


class Check:
    """Compares what goes through `update` with a checksum as S3 writes it."""

    def __init__(self, digest: _Digest, wanted: str) -> None:
        self._digest = digest
        self._wanted = wanted
        self.update = digest.update

    def holds(self) -> bool:
        """Whether all that went through has the checksum."""
        return base64_of(self._digest.digest()) == self._wanted


def check_of(answer: dict[str, Any]) -> Check | None:
    """For an answer with a whole object; None where the store keeps no checksum of all of it.

    A checksum made of those of the parts of an upload (`…-3`) cannot be compared without knowing the parts.
    """
    for word, kind in _KINDS.items():
        wanted = str(answer.get(word, "-"))
        if "-" not in wanted and answer.get("ChecksumType") != "COMPOSITE":
            return Check(kind(), wanted)
    return None
