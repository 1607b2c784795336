"""Whether the object under a name is the one that was just put, when the answer to the put says "taken"."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from archiver.aws.door import crc64nvme
from archiver.errors import StoreDeniedError, UnconfirmedError
from archiver.store.s3 import parts
from archiver.store.s3.client import S3
from archiver.store.s3.read import ObjectReader
from archiver.store.s3.request import damaged

TOKEN: Final = "archiver-put"  # noqa: S105 # a name of metadata
"""User metadata with random hex digits: each put has its own."""

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Own:
    """What is known of the object that was put."""

    token: str
    size: int
    crc64: int
    sha256: str | None = None
    """As S3 writes it; None if it went up in parts."""


def found_own(s3: S3, name: str, own: Own) -> dict[str, Any] | None:
    """What `head` says of the object if it is the own one, None if it is another's.

    `ObjectNotFoundError` if it is gone again; `UnconfirmedError` if it cannot be read.
    """
    mode = {} if s3.options.checksums == "off" else {"ChecksumMode": "ENABLED"}
    try:
        head = s3.call("head_object", name, **mode)
        return head if _is_own(s3, name, own, head) else None
    except StoreDeniedError as error:
        raise UnconfirmedError(
            f"the store says that object {name} exists already, and whether it is the one that was just put "
            "cannot be read",
            remedy="let somebody who may read the store look (`archiver list`), or allow s3:GetObject",
        ) from error


def _is_own(s3: S3, name: str, own: Own, head: dict[str, Any]) -> bool:
    token = head.get("Metadata", {}).get(TOKEN)
    if token is not None and token != own.token:
        return False  # even with the same bytes: somebody else put them
    same = head.get("ContentLength") == own.size and _same_checksum(
        s3, name, own, head, sure=token is not None
    )
    if token is not None and not same:
        raise damaged(f"object {name}", "is not in the store as it was sent")
    return same


def _same_checksum(s3: S3, name: str, own: Own, head: dict[str, Any], *, sure: bool) -> bool:
    """Whether the store keeps the own checksum; where it keeps none, and nothing else tells, its bytes do."""
    kept = _kept(head)
    if own.sha256 is not None and "ChecksumSHA256" in kept:
        return kept["ChecksumSHA256"] == own.sha256
    if "ChecksumCRC64NVME" in kept:
        return kept["ChecksumCRC64NVME"] == parts.crc64(own.crc64)
    return sure or _same_bytes(s3, name, own, head)


def _kept(head: dict[str, Any]) -> dict[str, str]:
    """The checksums that cover the whole object; one made of those of its parts says how many there are."""
    return {key: value for key, value in head.items() if key.startswith("Checksum") and "-" not in str(value)}


def _same_bytes(s3: S3, name: str, own: Own, head: dict[str, Any]) -> bool:
    digest, crc = hashlib.sha256(), 0
    with ObjectReader(s3, name, etag=head.get("ETag")) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            crc = crc64nvme(block, crc)
    if own.sha256 is not None:
        return parts.base64_of(digest.digest()) == own.sha256
    return crc == own.crc64
