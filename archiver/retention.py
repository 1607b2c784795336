"""How long a bundle is kept, by what became of its run, and from when on it may be gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from archiver.model.checkpoint import Outcome
from archiver.model.record import Record, RetentionClass

DAYS: Final[Mapping[RetentionClass, int | None]] = MappingProxyType(
    {"intermediate": 8, "success": 30, "failure": 180, "live": 180, "record": 400, "hold": None}
)
"""How long objects of a class are kept; None without end."""

BEGINNING: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Nothing was stored before: what seems to be older is of a wrong clock, and of an age that nobody knows."""

_CLASSES: dict[Outcome, RetentionClass] = {
    "running": "live",
    "succeeded": "success",
    "failed": "failure",
    "cancelled": "success",
}


def class_of(outcome: Outcome) -> RetentionClass:
    """The class a writer may create objects with: `live` while the run goes on, else the final one.

    A cancelled run is kept as long as one that succeeded: there is no failure to look into.
    """
    return _CLASSES[outcome]


@dataclass(frozen=True, slots=True)
class Committed:
    """A verified record and when the store got it."""

    record: Record
    written: datetime

    @property
    def at(self) -> datetime:
        """The later of the store's time and the writer's: a clock that lies makes nothing expire early."""
        return max(self.written, self.record.recorded_at)


@dataclass(frozen=True, slots=True)
class Ending:
    """From when on a bundle may be gone, and the class that allows it."""

    at: datetime
    retention: RetentionClass


def endings(run: Sequence[Committed]) -> dict[int, Ending | None]:
    """For each checkpoint of a run, by number, the earliest time at which its bundle may be gone, or None.

    The records are given in the order of their numbers, the last of them the newest. The class at creation
    counts, and for one that was created `live` also what it may be shortened to since: the final class of its
    outcome, and `intermediate` from the time on at which a later checkpoint was committed. What a later
    bundle is based on is kept as long as that one.
    """
    found: dict[int, Ending | None] = {}
    needed: dict[int, list[int]] = {}
    after: Committed | None = None
    for one in reversed(run):
        bundle, seq = one.record.bundle, one.record.seq
        if bundle is None:
            continue
        ends = [_first(_possible(one, after)), *(found[later] for later in needed.pop(seq, ()))]
        found[seq] = None if None in ends else max((end for end in ends if end), key=lambda end: end.at)
        for base in bundle.bases:
            needed.setdefault(base, []).append(seq)
        after = one
    return found


def earliest_end(one: Committed, later: Sequence[Committed]) -> Ending | None:
    """The earliest time at which the bundle of a record may be gone, by the records after it; None: never."""
    return endings((one, *later)).get(one.record.seq)


def expired_since(one: Committed, later: Sequence[Committed], now: datetime) -> Ending | None:
    """How a bundle that is gone has expired; None if it may not be gone at `now`: then it is damage."""
    end = earliest_end(one, later)
    return end if end is not None and end.at <= now else None


def _possible(one: Committed, after: Committed | None) -> Iterator[Ending | None]:
    created = one.record.retention
    yield _end(one, created)
    if created == "live":
        yield _end(one, class_of(one.record.outcome))
        if after is not None:
            end = _end(one, "intermediate")
            yield Ending(max(end.at, after.at), end.retention) if end else None


def _end(one: Committed, retention: RetentionClass) -> Ending | None:
    days = DAYS[retention]
    try:
        return (
            None if days is None or one.at < BEGINNING else Ending(one.at + timedelta(days=days), retention)
        )
    except OverflowError:
        return None


def _first(ends: Iterator[Ending | None]) -> Ending | None:
    return min((end for end in ends if end is not None), key=lambda end: end.at, default=None)
