"""The newest runs without a look at all of them: hints say where to look, records say what is so.

    index/<inverted time>-<run>-<seq>      empty, written after the record; the newest sorts first

A hint is never believed. It may be missing (the writer died, or could not write it), old, or a lie: whatever
it names is looked up among the records, and what they say decides.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import layout
from archiver.catalog import Catalog, Head
from archiver.errors import AlreadyExistsError, ArchiverError, InvalidNameError
from archiver.parallel import in_order
from archiver.rollback import Numbered

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.store import ObjectStore

MAX_HINTS = 20_000
"""Hints that are read for one answer: twenty pages of a list."""
MAX_RUNS = 2_000
"""Runs that are looked up for one answer, at two requests each."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest runs that hints lead to, newest first; before them those that cannot be read."""

    heads: tuple[Head, ...]
    stopped: str = ""
    """Why the search ended before as many were found as were asked for, or before the hints did."""


def leave_hint(record: Numbered, setup: Setup) -> tuple[str, ...]:
    """Write the hint of a record that is committed; what goes wrong is a warning, for nothing is lost."""
    try:
        name = layout.index_name(record.recorded_at, record.run, record.seq)
        setup.store.create(name, (), retention="record")
    except AlreadyExistsError:
        return ()
    except ArchiverError as error:
        where = f"checkpoint {record.seq} of run {record.run}"
        return (f"{where} is saved, but `list --newest` may miss it: its hint was not written: {error}",)
    return ()


def newest(setup: Setup, limit: int, wanted: Callable[[Head], bool] | None = None) -> Newest:
    """Up to `limit` runs (of those that are `wanted`), those with the newest records.

    A run without a hint is not found. Each run that is found has its records listed and the newest of them
    read. Raises the store's errors; what is wrong with one run stays with it.
    """
    catalog = Catalog(setup)
    hints = _Hints(setup.store)
    found: list[Head] = []
    # A run whose hint is newer than its records waits here until the search has come to its true place.
    ahead_of_time: list[float] = []
    placed = 0

    def look(hint: tuple[str, datetime]) -> tuple[datetime, Head | None]:
        return hint[1], catalog.newest_of(hint[0])

    looked_up = in_order(look, hints.runs(), workers=catalog.workers, ahead=catalog.workers)
    for at, head in looked_up:
        if head is not None and (wanted is None or wanted(head)):
            found.append(head)
            heapq.heappush(ahead_of_time, -(head.record.recorded_at if head.record else at).timestamp())
        while ahead_of_time and -ahead_of_time[0] >= at.timestamp():
            heapq.heappop(ahead_of_time)
            placed += 1
        if placed >= limit:
            looked_up.close()
            break
    found.sort(key=place)
    return Newest(tuple(found[:limit]), "" if placed >= limit else hints.stopped)


def place(head: Head) -> tuple[float, str]:
    """Sorts newest first; what cannot be read before all."""
    return (-head.record.recorded_at.timestamp() if head.record else float("-inf"), head.run)


class _Hints:
    """Goes through the hints of a store, within bounds."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.stopped = ""

    def runs(self) -> Iterator[tuple[str, datetime]]:
        """Each run that a hint names, once, with the time of its newest hint; newest first."""
        seen: set[str] = set()
        for number, info in enumerate(self._store.list(layout.INDEX)):
            if number == MAX_HINTS or len(seen) == MAX_RUNS:
                self.stopped = (
                    f"the search for the newest runs ended after {number} hints of {len(seen)} runs: "
                    "`list` without --newest goes through all runs"
                )
                return
            try:
                name = layout.parse(info.name)
            except InvalidNameError:
                continue
            if name.run is not None and name.at is not None and name.run not in seen:
                seen.add(name.run)
                yield name.run, name.at
