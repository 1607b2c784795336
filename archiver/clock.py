"""What time it is, where something is given up because its time is over: by the clock that is behind."""

from __future__ import annotations

from datetime import datetime

from archiver.errors import ArchiverError
from archiver.store import ObjectStore, Remote


def latest_sure(now: datetime, store: ObjectStore) -> datetime:
    """The earlier one of `now`, by the clock of this machine, and the time of the store where it has its own.

    A clock that is far ahead would else have damage pass for what expired. A store that does not answer is no
    better clock than this one.
    """
    if not isinstance(store, Remote):
        return now
    try:
        return min(now, store.clock())
    except ArchiverError:
        return now
