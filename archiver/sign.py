"""Ed25519 signatures over records, in DSSE's pre-authentication encoding.

    frame = "archiver-signed-v1 " ‖ public ‖ " " ‖ base64(signature) ‖ LF ‖ body
    public = "ed25519:" ‖ base64(32-byte public key)

Base64 is RFC 4648, section 4, padded. The signature (RFC 8032, pure Ed25519) covers
PAE(type, body) = "DSSEv1 " ‖ LEN(type) ‖ " " ‖ type ‖ " " ‖ LEN(body) ‖ " " ‖ body, LEN in decimal bytes.
The first line of every frame has 161 bytes, its LF included.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from archiver.errors import InvalidKeyError, SignatureError
from archiver.secretfile import read_secret_file, write_secret_file

_PUBLIC = re.compile(r"ed25519:([A-Za-z0-9+/]{43}=)")
_FRAME = re.compile(rb"archiver-signed-v1 (ed25519:[A-Za-z0-9+/]{43}=) ([A-Za-z0-9+/]{86}==)\n")

_FIELD = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})
"""y of the points whose order divides 8: one signature of theirs fits many bodies."""


class SigningKey:
    """A writer's secret key; `public` is what records and the list of trusted writers call it by."""

    __slots__ = ("_secret", "public")

    def __init__(self, secret: Ed25519PrivateKey) -> None:
        self._secret = secret
        self.public = _public_text(secret.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> SigningKey:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> SigningKey:
        """The key of a 32-byte seed (RFC 8032): for test vectors."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read an unencrypted PKCS #8 PEM file.

        Raises `KeyUnavailableError` if it cannot be read, and `InvalidKeyError` if other users can read it or
        if it holds anything but an Ed25519 key.
        """
        text = read_secret_file(path)
        try:
            secret = load_pem_private_key(text.encode("utf-8"), password=None)
        except TypeError:
            raise InvalidKeyError(
                f"the signing key {path} is locked with a password, which a writer cannot type",
                remedy="use an unencrypted PKCS #8 file of mode 0600",
            ) from None
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidKeyError(
                f"{path} is not a PEM file with a private key",
                remedy="make a signing key with `archiver keygen`",
            ) from None
        if not isinstance(secret, Ed25519PrivateKey):
            kind = type(secret).__name__.removesuffix("PrivateKey").lstrip("_")
            raise InvalidKeyError(
                f"{path} holds a key of kind {kind}, not Ed25519",
                remedy="make a signing key with `archiver keygen`",
            )
        return cls(secret)

    def save(self, path: Path) -> None:
        """Create the PEM file with mode 0600; `AlreadyExistsError` if the name is taken."""
        pem = self._secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_secret_file(path, pem.decode("ascii"))

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature over exactly these bytes."""
        return self._secret.sign(message)

    def __repr__(self) -> str:
        return f"<SigningKey {self.public}>"


def parse_public(text: str) -> bytes:
    """The 32 bytes of `ed25519:…`; `InvalidKeyError` unless this is the one spelling of a sound key."""
    match = _PUBLIC.fullmatch(text)
    public = base64.b64decode(match[1]) if match else b""
    if _public_text(public) != text:
        raise InvalidKeyError(
            "not a public signing key: `ed25519:` and 44 characters of canonical base64 are due"
        )
    y = int.from_bytes(public, "little") & (1 << 255) - 1
    if y >= _FIELD or y in _SMALL_ORDER:
        raise InvalidKeyError("the public signing key is not canonical or fits many messages at once")
    return public


def pae(payload_type: str, body: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed says where it ends and what it is."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def sign(key: SigningKey, payload_type: str, body: bytes) -> bytes:
    """The frame: key, signature and body."""
    signature = base64.b64encode(key.sign(pae(payload_type, body)))
    return b"archiver-signed-v1 %b %b\n%b" % (key.public.encode("ascii"), signature, body)


def verify(frame: bytes, payload_type: str) -> tuple[str, bytes]:
    """The public key that signed the frame, and the body; whether to trust that key is for the caller.

    `SignatureError` unless the frame has its one canonical form and the signature fits body and type.
    """
    match = _FRAME.match(frame)
    if match is None:
        raise SignatureError("not a signed frame: its first line does not have the fixed form")
    public, encoded = match[1].decode("ascii"), match[2]
    signature = base64.b64decode(encoded)
    if base64.b64encode(signature) != encoded:
        raise SignatureError("the signature is not written in canonical base64")
    body = frame[match.end() :]
    try:
        Ed25519PublicKey.from_public_bytes(parse_public(public)).verify(signature, pae(payload_type, body))
    except InvalidKeyError as error:
        raise SignatureError(f"the frame names an unusable key: {error}") from error
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        raise SignatureError(
            f"the signature does not fit: the body was changed, or {public} did not sign it as {payload_type}"
        ) from None
    return public, body


def _public_text(public: bytes) -> str:
    return "ed25519:" + base64.b64encode(public).decode("ascii")
