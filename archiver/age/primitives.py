"""The two constructions that the header and all native key types share."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

FILE_KEY_SIZE = 16
WRAPPED_SIZE = FILE_KEY_SIZE + 16
"""The file key and the tag of ChaCha20-Poly1305."""

_ZERO_NONCE = bytes(12)
"""Every wrap key wraps one file key, so the nonce can be fixed."""


def hkdf(secret: bytes, *, salt: bytes, info: bytes) -> bytes:
    """32 bytes by HKDF-SHA-256 (RFC 5869)."""
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(secret)


def wrap_file_key(wrap_key: bytes, file_key: bytes) -> bytes:
    """The stanza body: the file key under ChaCha20-Poly1305."""
    return ChaCha20Poly1305(wrap_key).encrypt(_ZERO_NONCE, file_key, None)


def unwrap_file_key(wrap_key: bytes, body: bytes) -> bytes | None:
    """The file key, or None when the body was wrapped with another key.

    The caller has checked that `body` has `WRAPPED_SIZE` bytes: a longer one could be made to fit several
    wrap keys and so tell which of them somebody has.
    """
    try:
        return ChaCha20Poly1305(wrap_key).decrypt(_ZERO_NONCE, body, None)
    except InvalidTag:
        return None
