"""What a kind of key has to do; one small file each implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from archiver.age.header import Stanza

RandomSource = Callable[[int], bytes]
"""Gives that many random bytes; anything but `os.urandom` is for test vectors."""


class Recipient(Protocol):
    """The public half of a key: it wraps a file key so that its identity can unwrap it."""

    @property
    def fingerprint(self) -> str:
        """What hints and records call this key by."""

    def labels(self) -> frozenset[str]:
        """Recipients share a file only if their labels are equal; a label nobody else has means: alone."""

    def wrap(self, file_key: bytes) -> list[Stanza]:
        """The stanzas that hold the 16-byte file key for this recipient."""


class Identity(Protocol):
    """The secret half of a key."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the recipient it belongs to."""

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The 16-byte file key, or None when no stanza is for this identity.

        `HeaderError` when a stanza of its own kind does not have the one form that the format gives it.
        """
