"""Runs in the store that say they go on, and to which nobody has written for a day.

A run that the library saves, and that died, stays `running`: no file on disk tells how it ended. People are
told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from archiver.catalog import Catalog
from archiver.parallel import in_order
from archiver.sweep.state import Standing, State

if TYPE_CHECKING:
    from archiver.setup import Setup

QUIET: Final = timedelta(days=1)
AT_ONCE: Final = 5000
"""Records that are read in one sweep; of more runs that are new here, the rest is looked at by the next."""


def unfinished(setup: Setup, state: State, now: datetime, *, dry_run: bool = False) -> list[str]:
    """Their ids. Reads the list of records, and the newest record of each run that has a new one.

    Raises the store's errors; a record that cannot be read says nothing here.
    """
    known, catalog = state.heads(), Catalog(setup)
    seen: set[str] = set()

    def new() -> Iterator[str]:
        for run, seq in catalog.newest_numbers():
            seen.add(run)
            if run not in known or known[run].seq != seq:
                yield run

    found: list[Standing] = []
    with closing(in_order(catalog.newest_of, islice(new(), AT_ONCE), workers=catalog.workers)) as heads:
        for head in heads:
            if head is not None and head.record is not None:
                record = head.record
                at = record.recorded_at.timestamp()
                found.append(Standing(head.run, head.seq, record.outcome, at))
    gone = [run for run in known if run not in seen] if len(found) < AT_ONCE else []
    if not dry_run:
        if found:
            state.put_heads(found)
        if gone:
            state.drop_heads(gone)
    known |= {one.run: one for one in found}
    before = (now - QUIET).timestamp()
    return sorted(
        one.run for one in known.values() if one.run in seen and one.outcome == "running" and one.at < before
    )
