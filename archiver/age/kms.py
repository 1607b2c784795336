"""The AWS KMS key type: a data key of KMS wraps the file key.

-> checkpoint.archiver/aws-kms v1 ARN CONTEXT
BODY

CONTEXT  = application, object, run and task in the one text of `context`
BODY     = length of BLOB (2 bytes, big endian) ‖ BLOB ‖ SALT (32 bytes) ‖ WRAPPED (32 bytes)
BLOB     = CiphertextBlob of GenerateDataKey (32 bytes) by ARN under CONTEXT
wrap key = HKDF-SHA-256(data key, salt = SALT,
                        info = "checkpoint.archiver/aws-kms" ‖ SHA-256("v1 ARN CONTEXT" ‖ LF ‖ BLOB))
WRAPPED  = ChaCha20-Poly1305(wrap key, nonce of zeros, file key)

Other age tools skip the stanza. KMS is asked only for keys of the own list, and only when the context is that
of the object: nobody makes a reader ask for what he did not mean to open.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archiver.age.arn import KeyArn, parse_arn
from archiver.age.context import Context, parse_context
from archiver.age.data_keys import MAX_BLOB, DataKey, DataKeys
from archiver.age.header import Header, Stanza
from archiver.age.hints import LABEL
from archiver.age.primitives import WRAPPED_SIZE, hkdf, unwrap_file_key, wrap_file_key
from archiver.age.protocols import RandomSource
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    HeaderError,
    InvalidKeyError,
    KeyUnavailableError,
    KmsDeniedError,
    KmsKeyDisabledError,
    KmsUnreachableError,
    UnsupportedSchemaError,
    UsageError,
    WrappedKeyError,
)

TYPE = f"{LABEL}/aws-kms"
VERSION = "v1"

MAX_STANZAS = 16
"""Stanzas of one key and its replicas in a header that is opened: each can cost a call of KMS."""

_INFO = TYPE.encode("ascii")
_SALT_SIZE = 32
_LENGTH_SIZE = 2
_LATER = re.compile(r"v(?!1$)[1-9][0-9]{0,8}")

FAILURES = (ContextMismatchError, WrappedKeyError, UnsupportedSchemaError, KeyUnavailableError)
"""What one key may fail with while another still opens the file."""

_TELLING = (
    *(ContextMismatchError, WrappedKeyError, KmsDeniedError, KmsKeyDisabledError),
    *(KmsUnreachableError, UnsupportedSchemaError, KeyUnavailableError),
)


class KmsRecipient:
    """A KMS key to seal to. It counts as post-quantum, and stands beside every kind but a passphrase."""

    kind = "AWS KMS"

    def __init__(
        self,
        arn: KeyArn,
        keys: DataKeys | None = None,
        context: Context | None = None,
        held: DataKey | None = None,
    ) -> None:
        self.arn = arn
        self._keys = keys
        self._context = context
        self._held = held

    @property
    def fingerprint(self) -> str:
        return self.arn.fingerprint

    def __str__(self) -> str:
        return self.arn.text

    def __repr__(self) -> str:
        return f"<KmsRecipient {self.arn}>"

    def labels(self) -> None:
        return None

    def bound(self, context: Context) -> KmsRecipient:
        """The recipient for objects of this context."""
        return KmsRecipient(self.arn, self._keys, context)

    def in_hand(self) -> KmsRecipient:
        """The recipient for one file, which asks KMS no more: it has its data key.

        Raises what KMS fails with; an error of `KMS_AWAY` of a moment ago again, without asking.
        """
        keys, context = self._bound()
        return KmsRecipient(self.arn, keys, context, keys.to_seal_unless_away(self.arn, context))

    def _bound(self) -> tuple[DataKeys, Context]:
        if self._keys is None or self._context is None:
            raise UsageError(f"{self.arn} wraps nothing without KMS and the context of an object")
        return self._keys, self._context

    def wrap(self, file_key: bytes, *, random: RandomSource = os.urandom) -> list[Stanza]:
        keys, context = self._bound()
        key = self._held or keys.to_seal(self.arn, context)
        arguments = (VERSION, self.arn.text, context.text())
        salt = random(_SALT_SIZE)
        wrapped = wrap_file_key(_wrap_key(key.plaintext, salt, arguments, key.blob), file_key)
        length = len(key.blob).to_bytes(_LENGTH_SIZE, "big")
        return [Stanza(TYPE, arguments, length + key.blob + salt + wrapped)]


class KmsIdentity:
    """A KMS key that may be asked to open objects of one context, also such as a replica of it sealed."""

    def __init__(self, arn: KeyArn, keys: DataKeys, context: Context | None = None) -> None:
        self.arn = arn
        self._keys = keys
        self._context = context

    @property
    def fingerprint(self) -> str:
        return self.arn.fingerprint

    def __repr__(self) -> str:
        return f"<KmsIdentity {self.arn}>"

    def bound(self, context: Context) -> KmsIdentity:
        """The identity for objects of this context; a task of None is any task."""
        return KmsIdentity(self.arn, self._keys, context)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The file key; raises what KMS fails with, and before it is asked `ContextMismatchError`."""
        # All are checked before one is tried, so that what a file is does not depend on who opens it.
        mine = [wrapped for wrapped in wrapped_keys(stanzas) if wrapped.arn.family == self.arn.family]
        if len(mine) > MAX_STANZAS:
            raise HeaderError(
                f"it has {len(mine)} stanzas of {self.arn} and its replicas, more than {MAX_STANZAS}"
            )
        mine.sort(key=lambda wrapped: wrapped.arn != self.arn)  # before those of its replicas
        failures: list[ArchiverError] = []
        for wrapped in mine:
            try:
                return self._open(wrapped)
            except FAILURES as error:
                failures.append(error)
        later = _later_version(stanzas)
        if later is not None:
            failures.append(
                UnsupportedSchemaError(
                    f"its KMS stanza has version {later}; this release reads {VERSION}",
                    remedy=f"install a checkpoint-archiver release that reads version {later} of the stanza",
                )
            )
        if failures:
            raise most_telling(failures)
        return None

    def _open(self, wrapped: WrappedKey) -> bytes:
        if self._context is None:
            raise UsageError(f"{self.arn} opens nothing without the context of an object")
        difference = wrapped.context.difference(self._context)
        if difference is not None:
            raise ContextMismatchError(
                f"{difference}; KMS was not asked",
                remedy="the object was moved or copied, or keys.application was another when it was saved",
            )
        key = self._keys.to_open(self.arn, wrapped.context, wrapped.blob)
        wrap_key = _wrap_key(key.plaintext, wrapped.salt, wrapped.arguments, wrapped.blob)
        file_key = unwrap_file_key(wrap_key, wrapped.body)
        if file_key is None:
            raise WrappedKeyError(f"the file key that {self.arn} wraps was changed")
        return file_key


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """What a stanza of version 1 says; nothing of it is authentic before the header is."""

    arn: KeyArn
    context: Context
    blob: bytes
    salt: bytes
    body: bytes

    @property
    def arguments(self) -> tuple[str, str, str]:
        return VERSION, self.arn.text, self.context.text()


def wrapped_keys(stanzas: Iterable[Stanza]) -> list[WrappedKey]:
    """What the KMS stanzas of this version say, in order; those of a later version are left out.

    `HeaderError` for one without the one form that the format gives it.
    """
    own = [stanza for stanza in stanzas if stanza.type == TYPE]
    return [
        _parse(stanza) for stanza in own if not (stanza.arguments and _LATER.fullmatch(stanza.arguments[0]))
    ]


def contexts(header: Header) -> tuple[Context, ...]:
    """The contexts that the header was sealed in for KMS, each once; `HeaderError`."""
    return tuple(dict.fromkeys(wrapped.context for wrapped in wrapped_keys(header.stanzas)))


def most_telling(failures: Iterable[ArchiverError]) -> ArchiverError:
    """The failure that says most of why nothing opened."""
    return min(
        failures, key=lambda error: next(i for i, kind in enumerate(_TELLING) if isinstance(error, kind))
    )


def _later_version(stanzas: Iterable[Stanza]) -> str | None:
    first = (stanza.arguments[0] for stanza in stanzas if stanza.type == TYPE and stanza.arguments)
    return next((word for word in first if _LATER.fullmatch(word)), None)


def _parse(stanza: Stanza) -> WrappedKey:
    if len(stanza.arguments) != 3 or stanza.arguments[0] != VERSION:
        raise HeaderError(f"a KMS stanza does not have the version {VERSION}, a key and a context")
    _, arn, context = stanza.arguments
    body = stanza.body
    blob_end = _LENGTH_SIZE + int.from_bytes(body[:_LENGTH_SIZE], "big")
    if not _LENGTH_SIZE < blob_end <= _LENGTH_SIZE + MAX_BLOB:
        raise HeaderError(f"the wrapped data key of a KMS stanza does not have 1 to {MAX_BLOB} bytes")
    salt_end = blob_end + _SALT_SIZE
    if len(body) != salt_end + WRAPPED_SIZE:
        raise HeaderError("the body of a KMS stanza does not have the length that it says")
    try:
        key = parse_arn(arn)
    except InvalidKeyError:
        raise HeaderError("a KMS stanza does not name a key by its ARN") from None
    blob, salt, wrapped = body[_LENGTH_SIZE:blob_end], body[blob_end:salt_end], body[salt_end:]
    return WrappedKey(key, parse_context(context), blob, salt, wrapped)


def _wrap_key(data_key: bytes, salt: bytes, arguments: tuple[str, str, str], blob: bytes) -> bytes:
    bound = hashlib.sha256(" ".join(arguments).encode("ascii") + b"\n" + blob).digest()
    return hkdf(data_key, salt=salt, info=_INFO + bound)
