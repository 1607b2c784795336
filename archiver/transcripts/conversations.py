"""Which conversation an item belongs to, where several are written into one file."""

from __future__ import annotations

from typing import Final

from archiver.transcripts.dialect import Facts

INLINE: Final = "sidechain"
"""The branch of items that belong to some side conversation but name none."""


class Conversations:
    """Tells conversations apart, fed item by item; side conversations without a name go by their roots."""

    def __init__(self) -> None:
        self._roots: dict[int, str] = {}
        self._started = 0

    def of(self, facts: Facts, own: str | None, parent: str | None) -> str | None:
        """The conversation of the next item, given its own id and its parent's; None is the main one.

        Of several that follow each other, the first is the main one and the others go by number.
        """
        self._started += facts.starts
        if facts.branch is None:
            return str(self._started) if self._started > 1 else None
        root = self._roots.get(hash(parent), "") if parent else (own or "")
        if own:
            self._roots[hash(own)] = root
        return f"{facts.branch}/{root}" if facts.branch == INLINE else facts.branch
