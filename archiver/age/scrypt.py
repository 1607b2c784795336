"""The scrypt key type: a passphrase, alone in its file.

-> scrypt SALT LOG2-OF-WORK-FACTOR
BODY

wrap key = scrypt(passphrase, salt = "age-encryption.org/v1/scrypt" ‖ SALT, N = work factor, r = 8, p = 1)
BODY     = ChaCha20-Poly1305(wrap key, nonce of zeros, file key)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import IntEnum

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from archiver.age import encoding
from archiver.age.header import Stanza
from archiver.age.primitives import WRAPPED_SIZE, unwrap_file_key, wrap_file_key
from archiver.age.protocols import ALONE, RandomSource
from archiver.errors import HeaderError, InvalidKeyError, LimitExceededError

FINGERPRINT = "scrypt"
"""A passphrase has no public half, so nothing more can be said of it."""

MAX_WORK_FACTOR = 22
"""Read by default up to here: about 15 seconds and 4 GiB."""

_TYPE = "scrypt"
_SALT_LABEL = b"age-encryption.org/v1/scrypt"
_SALT_SIZE = 16
_DECIMAL = re.compile(r"[1-9][0-9]*")


class WorkFactor(IntEnum):
    """Base-two logarithm of scrypt's cost."""

    STANDARD = 18
    """About one second and 256 MiB."""
    TEST_ONLY = 10
    """Guessed at four milliseconds a try: it protects nothing."""


class ScryptRecipient:
    """Seals to a passphrase."""

    fingerprint = FINGERPRINT
    kind = "passphrase"

    def __init__(self, passphrase: str, work_factor: WorkFactor = WorkFactor.STANDARD) -> None:
        self._passphrase = _secret(passphrase)
        self._work_factor = work_factor

    def labels(self) -> frozenset[str]:
        return ALONE

    def wrap(self, file_key: bytes, *, random: RandomSource = os.urandom) -> list[Stanza]:
        salt = random(_SALT_SIZE)
        body = wrap_file_key(_wrap_key(self._passphrase, salt, self._work_factor), file_key)
        arguments = (encoding.encode(salt).decode("ascii"), str(int(self._work_factor)))
        return [Stanza(_TYPE, arguments, body)]


class ScryptIdentity:
    """Opens with a passphrase; a file that asks for more than `max_work_factor` is refused unread."""

    fingerprint = FINGERPRINT

    def __init__(self, passphrase: str, *, max_work_factor: int = MAX_WORK_FACTOR) -> None:
        self._passphrase = _secret(passphrase)
        self._max_work_factor = max_work_factor

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        for stanza in stanzas:
            if stanza.type == _TYPE:
                salt, work_factor = self._parse(stanza)
                return unwrap_file_key(_wrap_key(self._passphrase, salt, work_factor), stanza.body)
        return None

    def _parse(self, stanza: Stanza) -> tuple[bytes, int]:
        if len(stanza.arguments) != 2:
            raise HeaderError("a scrypt stanza does not have exactly two arguments")
        salt = encoding.decode(stanza.arguments[0].encode("ascii"))
        if salt is None or len(salt) != _SALT_SIZE:
            raise HeaderError(f"the salt of a scrypt stanza is not canonical base64 of {_SALT_SIZE} bytes")
        digits = stanza.arguments[1]
        if _DECIMAL.fullmatch(digits) is None:
            raise HeaderError("the work factor of a scrypt stanza is not a plain decimal number")
        # Length comes first: int() refuses thousands of digits with an error of its own.
        if len(digits) > 2 or int(digits) > self._max_work_factor:
            raise HeaderError(f"the work factor of a scrypt stanza is over {self._max_work_factor}")
        if len(stanza.body) != WRAPPED_SIZE:
            raise HeaderError(f"the body of a scrypt stanza does not have {WRAPPED_SIZE} bytes")
        return salt, int(digits)


def refuse_company(stanzas: Sequence[Stanza]) -> None:
    """`HeaderError` if a scrypt stanza is not the only one.

    Who knows a passphrase expects that the file was made by somebody who knows it too.
    """
    if len(stanzas) > 1 and any(stanza.type == _TYPE for stanza in stanzas):
        raise HeaderError("a scrypt stanza is not alone in the header")


def _secret(passphrase: str) -> bytes:
    if not passphrase:
        raise InvalidKeyError("the passphrase is empty")
    try:
        return passphrase.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidKeyError("the passphrase cannot be written as UTF-8") from None


def _wrap_key(passphrase: bytes, salt: bytes, work_factor: int) -> bytes:
    try:
        return Scrypt(salt=_SALT_LABEL + salt, length=32, n=1 << work_factor, r=8, p=1).derive(passphrase)
    except MemoryError:
        need = (1 << work_factor) // 1024
        raise LimitExceededError(
            f"scrypt at work factor {work_factor} needs {need} MiB of memory, which are not there",
            remedy="open the file on a machine with more memory",
        ) from None
