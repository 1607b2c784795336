"""Digests of content that may hold secrets: they can be compared, but not guessed from.

A plain SHA-256 of a short secret is found by trying; each of these has a salt of its own and costs memory and
time to make.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from archiver.model import JsonValue

_COST = 1 << 12
"""With blocks of 1 KiB: 4 MiB and about 10 ms for each digest."""
_SALT = 16
_LENGTH = 32
_HEX = re.compile(r"(?:[0-9a-f]{2}){16,64}")


def guarded(content: bytes, salt: bytes | None = None) -> dict[str, JsonValue]:
    """`{salt, scrypt}` of content of any length, in hexadecimal; the salt is new unless given."""
    salt = salt or secrets.token_bytes(_SALT)
    return {"salt": salt.hex(), "scrypt": _digest(hashlib.sha256(content).digest(), salt).hex()}


def matches(content: bytes, captured: JsonValue) -> bool:
    """Whether the content is that of which `guarded` made `captured`; `ValueError` for anything else."""
    salt, digest = _parts(captured)
    return hmac.compare_digest(_digest(hashlib.sha256(content).digest(), salt), digest)


def _digest(content: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(content, salt=salt, n=_COST, r=8, p=1, dklen=_LENGTH)


def _parts(captured: JsonValue) -> tuple[bytes, bytes]:
    if not isinstance(captured, dict):
        raise ValueError("the record holds no digest")  # noqa: TRY004 - one kind of error for what is no digest
    salt, digest = captured.get("salt"), captured.get("scrypt")
    if not (
        isinstance(salt, str) and isinstance(digest, str) and _HEX.fullmatch(salt) and _HEX.fullmatch(digest)
    ):
        raise ValueError("the record holds no digest")
    return bytes.fromhex(salt), bytes.fromhex(digest)
