"""How long what is kept: the one definition of classes and days, pure decisions from records alone.

    classes(run)    which class each bundle should have by now
    promised(run)   until when each bundle is there at least
    endings(run)    from when on a bundle that is gone may have expired; before that it is damage

Expiry is by age alone, counted from an object's creation: lifecycle rules of a bucket know nothing else. So
what a checkpoint promises is the least that its bundle and the bundles it is based on promise.
"""

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
"""How long objects of a class are kept at least; None without end. Settings may keep them longer."""

NONCURRENT_DAYS: Final[Mapping[RetentionClass, int | None]] = MappingProxyType(
    {"intermediate": 8, "success": 30, "failure": 30, "live": 30, "record": 30, "hold": None}
)
"""How long an old version of a class stays, in a bucket that keeps versions: from when on it is hidden."""

ABORT_DAYS: Final = 7
"""Days after which a rule aborts an unfinished upload."""

ORPHAN_AFTER: Final = timedelta(days=2)
"""Age of a bundle without a record from which nothing will ever name it: a record follows within a day."""

BEGINNING: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Nothing was stored before: what seems to be older is of a wrong clock, and of an age that nobody knows."""

_CLASSES: dict[Outcome, RetentionClass] = {
    "running": "live",
    "succeeded": "success",
    "failed": "failure",
    "cancelled": "success",
    "crashed": "failure",
}


def class_of(outcome: Outcome) -> RetentionClass:
    """The class a writer may create objects with: `live` while the run goes on, else the final one.

    A cancelled run is kept as long as one that succeeded: there is no failure to look into.
    """
    return _CLASSES[outcome]


@dataclass(frozen=True, slots=True)
class Standing:
    """What administrators signed about how long a run is kept, as far as it is believed."""

    held: datetime | None = None
    """Since when it is on hold; None when it is not, or was released."""
    merged: datetime | None = None
    """Since when what it made is known to be in the default branch upstream."""
    removed: datetime | None = None
    """When its bundles were removed."""
    erased: datetime | None = None
    """When all of it was."""


NOTHING: Final = Standing()


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


def epochs(run: Sequence[Committed]) -> list[tuple[int, ...]]:
    """The checkpoints that have a bundle, by number, put together where one is based on another; in order."""
    groups: dict[int, list[int]] = {}
    for one in run:
        if one.record.bundle is None:
            continue
        group = [one.record.seq]
        for other in {
            id(groups[base]): groups[base] for base in one.record.bundle.bases if base in groups
        }.values():
            group += other
        group.sort()
        groups.update(dict.fromkeys(group, group))
    return sorted({tuple(group) for group in groups.values()})


def classes(
    run: Sequence[Committed], *, keep: int, standing: Standing = NOTHING
) -> dict[int, RetentionClass]:
    """The class that the bundle of each checkpoint should have by now, by number.

    The records are given in the order of their numbers. What was created `live` becomes `intermediate` when
    the whole epoch is superseded, beyond the newest `keep` bundles; what is left of a run that has ended gets
    the class of its outcome. A merged run goes to the short clock, `success`. Nothing on hold is shortened.
    """
    with_bundle = [one for one in run if one.record.bundle is not None]
    newest = {one.record.seq for one in with_bundle[-max(keep, 1) :]}
    outcome = run[-1].record.outcome if run else "running"
    old = {seq for epoch in epochs(run) if not newest.intersection(epoch) for seq in epoch}
    found: dict[int, RetentionClass] = {}
    for one in with_bundle:
        seq, created = one.record.seq, one.record.retention
        found[seq] = created
        if standing.held is not None:
            found[seq] = "hold"
        elif created == "live":
            found[seq] = "intermediate" if seq in old else class_of(outcome)
        if standing.merged is not None and found[seq] in ("live", "failure"):
            found[seq] = "success"
    return found


def promised(
    run: Sequence[Committed],
    having: Mapping[int, RetentionClass],
    days: Mapping[RetentionClass, int | None] = DAYS,
) -> dict[int, datetime | None]:
    """Until when each checkpoint can be restored at least, by number; None without end.

    `having` is the class that each bundle has. A bundle that needs others is good for no longer than they.
    """
    found: dict[int, datetime | None] = {}
    for one in run:
        bundle, seq = one.record.bundle, one.record.seq
        if bundle is None:
            continue
        end = _end(one, having.get(seq, one.record.retention), days)
        ends = [end.at if end else None, *(found.get(base) for base in bundle.bases if base in found)]
        found[seq] = min((at for at in ends if at is not None), default=None)
    return found


def endings(run: Sequence[Committed], standing: Standing = NOTHING) -> dict[int, Ending | None]:
    """For each checkpoint of a run, by number, the earliest time at which its bundle may be gone, or None.

    The records are given in the order of their numbers, the last of them the newest. The class at creation
    counts, and for one that was created `live` also what it may be shortened to since: the final class of its
    outcome or of the run's, and `intermediate` from the time on at which its whole epoch was superseded; for
    one of a merged run, `success` from then on. Where a base may be gone, what needs it may be too. Nothing
    that had not expired when a hold began may go.
    """
    superseded = _superseded(run)
    outcome = run[-1].record.outcome if run else "running"
    found: dict[int, Ending | None] = {}
    for one in run:
        bundle, seq = one.record.bundle, one.record.seq
        if bundle is None:
            continue
        own = _first(_possible(one, outcome, superseded.get(seq), standing))
        bases = [found[base] for base in bundle.bases if base in found]
        found[seq] = _first(iter((own, *bases)))
    if standing.held is None:
        return found
    return {seq: end if end and end.at <= standing.held else None for seq, end in found.items()}


def earliest_end(one: Committed, later: Sequence[Committed]) -> Ending | None:
    """The earliest time at which the bundle of a record may be gone, by the records after it; None: never."""
    return endings((one, *later)).get(one.record.seq)


def expired_since(one: Committed, later: Sequence[Committed], now: datetime) -> Ending | None:
    """How a bundle that is gone has expired; None if it may not be gone at `now`: then it is damage."""
    end = earliest_end(one, later)
    return end if end is not None and end.at <= now else None


def _superseded(run: Sequence[Committed]) -> dict[int, datetime]:
    """When the first bundle after the whole epoch of each was committed; the last epoch is not in."""
    bundles = {one.record.seq: one for one in run if one.record.bundle is not None}
    found: dict[int, datetime] = {}
    for epoch in epochs(run):
        after = next((one for seq, one in bundles.items() if seq > epoch[-1]), None)
        if after is not None:
            found.update(dict.fromkeys(epoch, after.at))
    return found


def _possible(
    one: Committed, outcome: Outcome, superseded: datetime | None, standing: Standing
) -> Iterator[Ending | None]:
    created = one.record.retention
    yield _end(one, created)
    if created == "live":
        yield _end(one, class_of(one.record.outcome))
        yield _end(one, class_of(outcome))
        if superseded is not None:
            yield _not_before(superseded, _end(one, "intermediate"))
    if standing.merged is not None and created in ("live", "failure"):
        yield _not_before(standing.merged, _end(one, "success"))


def _not_before(at: datetime, end: Ending | None) -> Ending | None:
    return Ending(max(end.at, at), end.retention) if end else None


def _end(
    one: Committed, retention: RetentionClass, days: Mapping[RetentionClass, int | None] = DAYS
) -> Ending | None:
    count = days[retention]
    try:
        return (
            None if count is None or one.at < BEGINNING else Ending(one.at + timedelta(days=count), retention)
        )
    except OverflowError:
        return None


def _first(ends: Iterator[Ending | None]) -> Ending | None:
    return min((end for end in ends if end is not None), key=lambda end: end.at, default=None)
