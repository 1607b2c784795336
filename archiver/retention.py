"""How long what is kept: the one definition of classes and days, pure decisions from records alone.

    classes(run)    which class each bundle should have by now
    promised(run)   until when each bundle is there at least
    endings(run)    from when on a bundle that is gone may have expired; before that it is damage

Expiry is by age alone, counted from an object's creation: lifecycle rules of a bucket know nothing else. So
what a checkpoint promises is the least that its bundle and the bundles it is based on promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    released: datetime | None = None
    """Since when it is not on hold any more; None where it was not released, or is held again."""


NOTHING: Final = Standing()


@dataclass(frozen=True, slots=True)
class Committed:
    """A verified record and when the store got it."""

    record: Record
    written: datetime
    stored: datetime | None = None
    """When the store got its bundle, as far as that was looked at: a bundle comes before its record."""

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
        if one.record.bundle is not None:
            _join(groups, one.record.seq, one.record.bundle.bases)
    return sorted({tuple(sorted(group)) for group in groups.values()})


def _join(groups: dict[int, list[int]], seq: int, bases: Iterable[int]) -> list[int]:
    """Put a bundle into the group of its bases, which become one; returns that."""
    joined = list({id(groups[base]): groups[base] for base in bases if base in groups}.values())
    group = max(joined, key=len, default=[])
    for other in joined:
        if other is not group:
            group += other
            groups.update(dict.fromkeys(other, group))
    group.append(seq)
    groups[seq] = group
    return group


def classes(
    run: Sequence[Committed], *, keep: int, standing: Standing = NOTHING
) -> dict[int, RetentionClass]:
    """The class that the bundle of each checkpoint should have by now, by number.

    The records are given in the order of their numbers. What was created `live` becomes `intermediate` when
    the whole epoch is superseded, beyond the newest `keep` bundles; what is left of a run that has ended gets
    the class of its outcome. A merged run goes to the short clock, `success`, unless it goes on. What another
    bundle needs is kept as long as that one. On hold all is.
    """
    with_bundle = [one for one in run if one.record.bundle is not None]
    if standing.held is not None:
        return dict.fromkeys((one.record.seq for one in with_bundle), "hold")
    newest = {one.record.seq for one in with_bundle[-max(keep, 1) :]}
    outcome = run[-1].record.outcome if run else "running"
    old = {seq for epoch in epochs(run) if not newest.intersection(epoch) for seq in epoch}
    found: dict[int, RetentionClass] = {}
    for one in with_bundle:
        seq, created = one.record.seq, one.record.retention
        found[seq] = created
        if created == "live":
            found[seq] = "intermediate" if seq in old else class_of(outcome)
        if standing.merged is not None and outcome != "running" and found[seq] in ("live", "failure"):
            found[seq] = "success"
    for one in reversed(with_bundle):
        for base in one.record.bundle.bases if one.record.bundle else ():
            if base in found and is_shorter(found[base], found[one.record.seq]):
                found[base] = found[one.record.seq]
    return found


def is_shorter(one: RetentionClass, other: RetentionClass) -> bool:
    """Whether objects of one class are kept less long than those of the other."""
    ours, theirs = DAYS[one], DAYS[other]
    return ours is not None and (theirs is None or ours < theirs)


def promised(
    run: Sequence[Committed],
    having: Mapping[int, RetentionClass],
    days: Mapping[RetentionClass, int | None] = DAYS,
) -> dict[int, datetime | None]:
    """Until when each checkpoint can be restored at least, by number; None without end.

    `having` is the class that each bundle has. A bundle that needs others is good for no longer than they.
    Age counts from when the store got the bundle, where that is known.
    """
    found: dict[int, datetime | None] = {}
    for one in run:
        bundle, seq = one.record.bundle, one.record.seq
        if bundle is None:
            continue
        since = one.at if one.stored is None else min(one.at, one.stored)
        end = _end(since, having.get(seq, one.record.retention), days)
        ends = [end.at if end else None, *(found.get(base) for base in bundle.bases if base in found)]
        found[seq] = min((at for at in ends if at is not None), default=None)
    return found


def endings(run: Sequence[Committed], standing: Standing = NOTHING) -> dict[int, Ending | None]:
    """For each checkpoint of a run, by number, the earliest time at which its bundle may be gone, or None.

    The records are given in the order of their numbers, the last of them the newest. The class at creation
    counts, and for one that was created `live` also what it may have been shortened to since: the class of
    an outcome that the run had from then on, and `intermediate` from the time on at which its epoch, as far
    as it was there by then, was superseded; for one of a merged run, `success` from then on. Where a base may
    be gone, what needs it may be too. Nothing that had not expired when a hold began may go.
    """
    superseded, outcomes = _superseded(run), _outcomes(run)
    found: dict[int, Ending | None] = {}
    for place, one in enumerate(run):
        bundle, seq = one.record.bundle, one.record.seq
        if bundle is None:
            continue
        own = _first(_possible(one, outcomes[place], superseded.get(seq), standing))
        bases = [found[base] for base in bundle.bases if base in found]
        found[seq] = _first(iter((own, *bases)))
    if standing.held is None:
        return found
    return {seq: end if end and end.at <= standing.held else None for seq, end in found.items()}


def _superseded(run: Sequence[Committed]) -> dict[int, datetime]:
    """When a bundle outside the epoch of each was committed after it; the last epoch is not in.

    An epoch may grow afterwards: what it was by then is what could be shortened.
    """
    groups: dict[int, list[int]] = {}
    waiting: set[int] = set()
    found: dict[int, datetime] = {}
    for one in run:
        if one.record.bundle is None:
            continue
        group = _join(groups, one.record.seq, one.record.bundle.bases)
        passed = waiting.difference(group)
        found.update(dict.fromkeys(passed, one.at))
        waiting = (waiting - passed) | {one.record.seq}
    return found


def _outcomes(run: Sequence[Committed]) -> list[dict[RetentionClass, datetime]]:
    """For each record, since when the run had outcomes of each class, from that record on."""
    found: list[dict[RetentionClass, datetime]] = []
    since: dict[RetentionClass, datetime] = {}
    for one in reversed(run):
        retention = class_of(one.record.outcome)
        if retention not in since or one.at < since[retention]:
            since = {**since, retention: one.at}
        found.append(since)
    found.reverse()
    return found


def _possible(
    one: Committed,
    outcomes: Mapping[RetentionClass, datetime],
    superseded: datetime | None,
    standing: Standing,
) -> Iterator[Ending | None]:
    created = one.record.retention
    yield _end(one.at, created)
    if created == "live":
        for retention, since in outcomes.items():
            yield _not_before(since, _end(one.at, retention))
        if superseded is not None:
            yield _not_before(superseded, _end(one.at, "intermediate"))
    if standing.merged is not None and created in ("live", "failure"):
        yield _not_before(standing.merged, _end(one.at, "success"))


def _not_before(at: datetime, end: Ending | None) -> Ending | None:
    return Ending(max(end.at, at), end.retention) if end else None


def _end(
    since: datetime, retention: RetentionClass, days: Mapping[RetentionClass, int | None] = DAYS
) -> Ending | None:
    count = days[retention]
    try:
        return (
            None if count is None or since < BEGINNING else Ending(since + timedelta(days=count), retention)
        )
    except OverflowError:
        return None


def _first(ends: Iterator[Ending | None]) -> Ending | None:
    return min((end for end in ends if end is not None), key=lambda end: end.at, default=None)
