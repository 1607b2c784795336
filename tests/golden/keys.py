"""The keys of the golden store, made from a word: no secret key stands in the repository."""

from __future__ import annotations

import hashlib

from archiver.age import X25519Identity
from archiver.sign import SigningKey

STORE_ID = hashlib.sha256(b"golden store").hexdigest()[:32]


def identity() -> X25519Identity:
    """What opens the golden bundles."""
    return X25519Identity(hashlib.sha256(b"golden identity").digest())


def signing_key() -> SigningKey:
    """What signed the golden records."""
    return SigningKey.from_seed(hashlib.sha256(b"golden signing key").digest())
