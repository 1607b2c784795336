"""The hybrid post-quantum key type: `age1pq1…` and `AGE-SECRET-KEY-PQ-1…`.

-> mlkem768x25519 ENC
BODY

ENC ‖ BODY = HPKE SealBase (RFC 9180) of the file key: KEM MLKEM768-X25519 (X-Wing), KDF HKDF-SHA-256,
             AEAD ChaCha20-Poly1305, info = "age-encryption.org/mlkem768x25519", aad empty
recipient  = ML-KEM-768 encapsulation key (1184 bytes) ‖ X25519 public key (32 bytes)
identity   = 32 bytes; SHAKE-256 of them gives the seed of ML-KEM (64 bytes) and the X25519 secret (32)
ENC        = ML-KEM ciphertext (1088 bytes) ‖ X25519 share (32 bytes), base64

A file stays closed as long as one of the two halves holds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)

from archiver.age import bech32, encoding
from archiver.age.header import Stanza
from archiver.age.hints import fingerprint
from archiver.age.primitives import WRAPPED_SIZE
from archiver.age.x25519 import X25519Recipient
from archiver.errors import HeaderError, InvalidKeyError

RECIPIENT_PREFIX = "age1pq"
IDENTITY_PREFIX = "AGE-SECRET-KEY-PQ-"
LABEL = "postquantum"

_TYPE = "mlkem768x25519"
_INFO = b"age-encryption.org/mlkem768x25519"
_SECRET_SIZE = 32
_SEED_SIZE = 64
_LATTICE_SIZE = 1184
_CURVE_SIZE = 32
_PUBLIC_SIZE = _LATTICE_SIZE + _CURVE_SIZE
_ENC_SIZE = 1088 + _CURVE_SIZE


class HybridRecipient:
    """The public half: an ML-KEM-768 key and an X25519 key, 1216 bytes."""

    __slots__ = ("_key", "_text", "fingerprint")
    kind = "post-quantum"

    def __init__(self, public: bytes) -> None:
        if len(public) != _PUBLIC_SIZE:
            raise InvalidKeyError(f"a post-quantum recipient has {_PUBLIC_SIZE} bytes, not {len(public)}")
        lattice, curve = public[:_LATTICE_SIZE], X25519Recipient(public[_LATTICE_SIZE:])
        try:
            self._key = MLKEM768X25519PublicKey(
                MLKEM768PublicKey.from_public_bytes(lattice), X25519PublicKey.from_public_bytes(curve.public)
            )
        except ValueError:  # a coefficient that is not below the modulus
            raise InvalidKeyError("the ML-KEM half of the recipient is not a key") from None
        except UnsupportedAlgorithm as error:
            raise _no_lattice() from error
        self._text = bech32.encode(RECIPIENT_PREFIX, public)
        self.fingerprint = fingerprint(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<HybridRecipient {self.fingerprint}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HybridRecipient) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def labels(self) -> frozenset[str]:
        return frozenset({LABEL})

    def wrap(self, file_key: bytes) -> list[Stanza]:
        sealed = _suite().encrypt(file_key, self._key, info=_INFO)
        enc, body = sealed[:_ENC_SIZE], sealed[_ENC_SIZE:]
        return [Stanza(_TYPE, (encoding.encode(enc).decode("ascii"),), body)]


class HybridIdentity:
    """The secret half; `recipient` is its public one."""

    __slots__ = ("_curve", "_key", "_secret", "recipient")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != _SECRET_SIZE:
            raise InvalidKeyError(f"a post-quantum identity has {_SECRET_SIZE} bytes, not {len(secret)}")
        both = hashlib.shake_256(secret).digest(_SEED_SIZE + _CURVE_SIZE)
        self._secret = secret
        self._curve = X25519PrivateKey.from_private_bytes(both[_SEED_SIZE:])
        try:
            lattice = MLKEM768PrivateKey.from_seed_bytes(both[:_SEED_SIZE])
        except UnsupportedAlgorithm as error:
            raise _no_lattice() from error
        self._key = MLKEM768X25519PrivateKey(lattice, self._curve)
        self.recipient = HybridRecipient(
            lattice.public_key().public_bytes_raw() + self._curve.public_key().public_bytes_raw()
        )

    @classmethod
    def generate(cls) -> HybridIdentity:
        return cls(os.urandom(_SECRET_SIZE))

    @property
    def fingerprint(self) -> str:
        return self.recipient.fingerprint

    def __repr__(self) -> str:
        return f"<HybridIdentity of {self.fingerprint}>"

    def secret_text(self) -> str:
        """`AGE-SECRET-KEY-PQ-1…`, for an identity file."""
        return bech32.encode(IDENTITY_PREFIX, self._secret)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        # All are checked before one is tried, so that what a file is does not depend on who opens it.
        candidates = [(_enc(stanza), stanza.body) for stanza in stanzas if stanza.type == _TYPE]
        for enc, body in candidates:
            self._refuse_low_order(enc)
            try:
                return _suite().decrypt(enc + body, self._key, info=_INFO)
            except InvalidTag:  # it is for another key
                continue
        return None

    def _refuse_low_order(self, enc: bytes) -> None:
        """The library calls such a share one for another key; the format demands a refusal."""
        try:
            self._curve.exchange(X25519PublicKey.from_public_bytes(enc[-_CURVE_SIZE:]))
        except ValueError:
            raise HeaderError(f"the X25519 share of an {_TYPE} stanza is a low-order point") from None


def _enc(stanza: Stanza) -> bytes:
    if len(stanza.arguments) != 1:
        raise HeaderError(f"an {_TYPE} stanza does not have exactly one argument")
    enc = encoding.decode(stanza.arguments[0].encode("ascii"))
    if enc is None or len(enc) != _ENC_SIZE:
        raise HeaderError(f"the key of an {_TYPE} stanza is not canonical base64 of {_ENC_SIZE} bytes")
    if len(stanza.body) != WRAPPED_SIZE:
        raise HeaderError(f"the body of an {_TYPE} stanza does not have {WRAPPED_SIZE} bytes")
    return enc


@cache
def _suite() -> Suite:
    return Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def _no_lattice() -> InvalidKeyError:
    return InvalidKeyError(
        "the cryptography package of this machine has no ML-KEM-768, so post-quantum keys cannot be used",
        remedy="install the wheel of cryptography from the package index, or open with an X25519 identity",
    )
