"""How much the spool holds, and which checkpoints give up their bundles when that is too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from archiver.spool import disk
from archiver.spool.entry import Entry

_FRESH: Final = 10.0
"""Seconds for which what was counted is believed: other processes add and deliver too."""
_SPARE: Final = 16
"""A spool that is full makes room for this part of it at once, so that it is not looked through each time."""


class Room:
    """Bytes in the spool of all stores, counted now and then; safe to ask from any thread."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self.limit = folder, limit
        self._lock = threading.Lock()
        self._bytes, self._counted = 0, float("-inf")

    def lacking(self, size: int) -> int:
        """Bytes that have to go before `size` more fit in."""
        with self._lock:
            now = time.monotonic()
            if self._bytes + size > self.limit or now - self._counted > _FRESH:
                self._bytes, self._counted = disk.size_of(self._folder), now
            return max(0, self._bytes + size - self.limit)

    def changed(self, by: int) -> None:
        """So many more bytes, or less, are there now."""
        with self._lock:
            self._bytes += by


def to_skip(waiting: Sequence[Entry], lacking: int, limit: int) -> list[Entry]:
    """The oldest plain checkpoints whose bundles make enough room, with some to spare; none where none can.

    Never the newest, for a run goes on from it; never one that a delivery has begun to send.
    """
    may = [entry for entry in waiting[:-1] if entry.plain and entry.meta.bundle and entry.state == "waiting"]
    freed, chosen = 0, []
    for entry in may:
        if freed >= lacking + limit // _SPARE:
            break
        freed += entry.meta.bundle.size if entry.meta.bundle else 0
        chosen.append(entry)
    return chosen if freed >= lacking else []
