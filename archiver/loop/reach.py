"""Whether the store answers, as far as a run has found out: nobody waits in vain for it twice."""

from __future__ import annotations

from typing import Final

BRIEF: Final = 2.0
"""Seconds that are waited for a store, or a disk, that did not do what was asked before."""


class Reach:
    """Shared by all that one run asks of its store, from any thread; at first the store is there."""

    def __init__(self) -> None:
        self._away = False

    @property
    def away(self) -> bool:
        """Whether something was asked in vain, and nothing was answered since."""
        return self._away

    def missed(self) -> None:
        """It did not answer, or refused."""
        self._away = True

    def answered(self) -> None:
        """It did what was asked."""
        self._away = False
