"""A KMS in this process, for what no server does on command: counting, failing, lying."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from os import urandom
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from archiver import age
from archiver.age import Context, DataKey, DataKeys, KeyArn, KmsIdentity, KmsRecipient, parse_arn
from archiver.errors import ArchiverError, WrappedKeyError

ARN = parse_arn("arn:aws:kms:eu-central-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef")
SECOND = parse_arn("arn:aws:kms:us-east-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef")
BUNDLE = Context("checkpoint-archiver", "run-1", "task 1", "bundle")


class LocalKms:
    """A key service that counts what it is asked; `fail` and `lie` change what it answers."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.fail: dict[str, ArchiverError] = {}
        """By ARN."""
        self.lie: Callable[[DataKey], DataKey] = lambda key: key
        self.before: Callable[[], Any] = lambda: None
        self._masters: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def generate(self, arn: KeyArn, context: Mapping[str, str]) -> DataKey:
        self._count("generate", arn)
        plaintext, nonce = urandom(32), urandom(12)
        blob = nonce + self._cipher(arn).encrypt(nonce, plaintext, _aad(context))
        return self.lie(DataKey(plaintext, blob, arn.text))

    def decrypt(self, arn: KeyArn, context: Mapping[str, str], blob: bytes) -> DataKey:
        self._count("decrypt", arn)
        try:
            plaintext = self._cipher(arn).decrypt(blob[:12], blob[12:], _aad(context))
        except (InvalidTag, ValueError):
            raise WrappedKeyError("the blob was changed") from None
        return self.lie(DataKey(plaintext, blob, arn.text))

    def _count(self, what: str, arn: KeyArn) -> None:
        self.before()
        with self._lock:
            self.calls[what] += 1
        if arn.text in self.fail:
            raise self.fail[arn.text]

    def _cipher(self, arn: KeyArn) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(self._masters.setdefault(arn.text, urandom(32)))


def _aad(context: Mapping[str, str]) -> bytes:
    return json.dumps(context, sort_keys=True).encode()


def recipient(kms: LocalKms | DataKeys, arn: KeyArn = ARN, context: Context = BUNDLE) -> age.Recipient:
    return KmsRecipient(arn, kms if isinstance(kms, DataKeys) else DataKeys(kms), context)


def identities(
    kms: LocalKms | DataKeys, arns: Sequence[KeyArn] = (ARN,), context: Context = BUNDLE
) -> list[age.Identity]:
    keys = kms if isinstance(kms, DataKeys) else DataKeys(kms)
    return [KmsIdentity(arn, keys, context) for arn in arns]
