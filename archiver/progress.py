"""How long work tells what it has done; the caller decides whether anybody looks."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about the steps of a save or a restore."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` is its number of bytes where known."""

    def advance(self, count: int) -> None:
        """`count` more bytes of the present stage are done."""


class Silent:
    """Tells nobody."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Nothing to tell."""

    def advance(self, count: int) -> None:
        """Nothing to tell."""
