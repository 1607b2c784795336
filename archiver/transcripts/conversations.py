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

    def of(self, facts: Facts, own: str | None, parent: str | None) -> str | None:
        """The conversation of the next item, given its own id and its parent's; None is the main one."""
        if facts.branch is None:
            return None
        root = self._roots.get(hash(parent), "") if parent else (own or "")
        if own:
            self._roots[hash(own)] = root
        return f"{facts.branch}/{root}" if facts.branch == INLINE else facts.branch
