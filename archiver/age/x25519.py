"""The X25519 key type: `age1…` and `AGE-SECRET-KEY-1…`.

-> X25519 SHARE
BODY

SHARE    = X25519(ephemeral secret, base point), base64
wrap key = HKDF-SHA-256(X25519(ephemeral secret, recipient), salt = SHARE ‖ recipient,
                        info = "age-encryption.org/v1/X25519")
BODY     = ChaCha20-Poly1305(wrap key, nonce of zeros, file key)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from archiver.age import bech32, encoding
from archiver.age.header import Stanza
from archiver.age.hints import fingerprint
from archiver.age.primitives import WRAPPED_SIZE, hkdf, unwrap_file_key, wrap_file_key
from archiver.age.protocols import RandomSource
from archiver.errors import HeaderError, InvalidKeyError

RECIPIENT_PREFIX = "age"
IDENTITY_PREFIX = "AGE-SECRET-KEY-"

_TYPE = "X25519"
_INFO = b"age-encryption.org/v1/X25519"
_KEY_SIZE = 32
_FIELD = 2**255 - 19


@dataclass(frozen=True, slots=True)
class X25519Recipient:
    """The public half: 32 bytes, of which every key has one spelling."""

    public: bytes

    def __post_init__(self) -> None:
        if len(self.public) != _KEY_SIZE:
            raise InvalidKeyError(f"an X25519 recipient has {_KEY_SIZE} bytes, not {len(self.public)}")
        if int.from_bytes(self.public, "little") >= _FIELD:
            raise InvalidKeyError("the X25519 recipient is not written in its one canonical form")
        _exchange_with_recipient(X25519PrivateKey.generate(), self.public)

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self.public)

    @property
    def kind(self) -> str:
        return "X25519"

    def __str__(self) -> str:
        return bech32.encode(RECIPIENT_PREFIX, self.public)

    def labels(self) -> frozenset[str]:
        return frozenset()

    def wrap(self, file_key: bytes, *, random: RandomSource = os.urandom) -> list[Stanza]:
        secret = X25519PrivateKey.from_private_bytes(random(_KEY_SIZE))
        share = secret.public_key().public_bytes_raw()
        shared = _exchange_with_recipient(secret, self.public)
        body = wrap_file_key(_wrap_key(shared, share, self.public), file_key)
        return [Stanza(_TYPE, (encoding.encode(share).decode("ascii"),), body)]


@lru_cache(maxsize=64)  # of an identity it is asked for with each of very many records
def _fingerprint(public: bytes) -> str:
    return fingerprint(bech32.encode(RECIPIENT_PREFIX, public))


class X25519Identity:
    """The secret half; `recipient` is its public one."""

    __slots__ = ("_secret", "recipient")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != _KEY_SIZE:
            raise InvalidKeyError(f"an X25519 identity has {_KEY_SIZE} bytes, not {len(secret)}")
        self._secret = X25519PrivateKey.from_private_bytes(secret)
        self.recipient = X25519Recipient(self._secret.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> X25519Identity:
        return cls(os.urandom(_KEY_SIZE))

    @property
    def fingerprint(self) -> str:
        return self.recipient.fingerprint

    def __repr__(self) -> str:
        return f"<X25519Identity of {self.recipient}>"

    def secret_text(self) -> str:
        """`AGE-SECRET-KEY-1…`, for an identity file."""
        return bech32.encode(IDENTITY_PREFIX, self._secret.private_bytes_raw())

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        # All are checked before one is tried, so that what a file is does not depend on who opens it.
        candidates = [(_share(stanza), stanza.body) for stanza in stanzas if stanza.type == _TYPE]
        for share, body in candidates:
            wrap_key = _wrap_key(self._exchange(share), share, self.recipient.public)
            file_key = unwrap_file_key(wrap_key, body)
            if file_key is not None:
                return file_key
        return None

    def _exchange(self, share: bytes) -> bytes:
        try:
            return self._secret.exchange(X25519PublicKey.from_public_bytes(share))
        except ValueError:  # the library refuses a shared secret of zeros
            raise HeaderError("the share of an X25519 stanza is a low-order point") from None


def _share(stanza: Stanza) -> bytes:
    if len(stanza.arguments) != 1:
        raise HeaderError("an X25519 stanza does not have exactly one argument")
    share = encoding.decode(stanza.arguments[0].encode("ascii"))
    if share is None or len(share) != _KEY_SIZE:
        raise HeaderError(f"the share of an X25519 stanza is not canonical base64 of {_KEY_SIZE} bytes")
    if len(stanza.body) != WRAPPED_SIZE:
        raise HeaderError(f"the body of an X25519 stanza does not have {WRAPPED_SIZE} bytes")
    return share


def _wrap_key(shared: bytes, share: bytes, recipient: bytes) -> bytes:
    return hkdf(shared, salt=share + recipient, info=_INFO)


def _exchange_with_recipient(secret: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise InvalidKeyError(
            "the X25519 recipient is a low-order point: anybody could open the file"
        ) from None
