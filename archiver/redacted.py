"""The type that proves redaction: only `archiver.redact` makes one, and `pack` takes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from archiver.model.receipt import Receipt

T = TypeVar("T")
U = TypeVar("U")

_MAKER = object()


class Redacted(Generic[T]):
    """A value that went through redaction, with the receipt of what was found.

    `derive` is for stages that only cut, move or count what is inside; whatever they make is scanned once
    more as packed members before it can be sealed.
    """

    __slots__ = ("receipt", "value")

    def __init__(self, value: T, receipt: Receipt, *, maker: object) -> None:
        if maker is not _MAKER:
            raise TypeError("only redaction makes a Redacted value")
        self.value = value
        self.receipt = receipt

    def derive(self, change: Callable[[T], U]) -> Redacted[U]:
        """The same proof around a value made from this one alone."""
        return Redacted(change(self.value), self.receipt, maker=_MAKER)


def vouch(value: T, receipt: Receipt) -> Redacted[T]:
    """Used by the redaction engine alone (checked by the import contracts)."""
    return Redacted(value, receipt, maker=_MAKER)
