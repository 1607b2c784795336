"""What a kind of key has to do; one small file each implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from archiver.age.header import Stanza

RandomSource = Callable[[int], bytes]
"""Gives that many random bytes; anything but `os.urandom` is for test vectors."""


ALONE = frozenset({"alone"})
"""The labels of a recipient that shares its file with none, not even with one like it."""


class Recipient(Protocol):
    """The public half of a key: it wraps a file key so that its identity can unwrap it."""

    @property
    def fingerprint(self) -> str:
        """What hints and records call this key by."""

    @property
    def kind(self) -> str:
        """What people call this kind of key."""

    def labels(self) -> frozenset[str] | None:
        """Recipients share a file only if their labels are equal, and not `ALONE`; None goes with any."""

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


@runtime_checkable
class SecretIdentity(Identity, Protocol):
    """An identity that can be written into a file."""

    @property
    def recipient(self) -> Recipient:
        """The public half."""

    def secret_text(self) -> str:
        """The line of an identity file."""
