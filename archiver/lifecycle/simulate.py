"""What S3 does with objects by lifecycle rules, whosesoever: pure, for as many objects as there are.

- Days count from creation (of an old version: from when it became one), rounded up to midnight UTC. A date
  counts for every object that is there, also for those that come later.
- Of several rules that fit the earliest wins. A rule fits by prefix, by all of its tags, and by size.
- Without versions an expired object is gone. With versions it is hidden: it becomes an old version, which a
  rule for old versions removes. While versions are suspended that holds too, but for what has no version id:
  it is gone, for the marker in front has none either and takes its place, also that of an old version.
- A marker that hides nothing any more goes by a rule for markers, or by one that expires by age.
- What storage class something is moved to is reported, and changes nothing.
- A lock of a version only puts off its end; locks differ from version to version, so none is counted on.

Where a rule leaves the newest old versions, those count that are old now: that others go first is not
foreseen, so more is expected to go than may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from itertools import groupby
from typing import Final, Literal

from archiver.lifecycle.parse import Move, Rule

Versioning = Literal["off", "on", "suspended"]
NO_ID: Final = "null"
"""What stands for the id of a version that was put while the bucket kept none."""


@dataclass(frozen=True, slots=True)
class Version:
    """One object, or one version of it, or a marker."""

    key: str
    """As the bucket has it: with the prefix of the store."""
    created: datetime
    tags: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    noncurrent_since: datetime | None = None
    """When something newer came over it; None for what is there now."""
    marker: bool = False
    id: str = NO_ID


@dataclass(frozen=True, slots=True)
class Event:
    """That a rule does something, and when: never before the time of the simulation."""

    at: datetime
    rule: Rule


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a version if nobody does anything to it; None: nothing, ever."""

    hidden: Event | None = None
    """A marker is put in front of it: who asks for it is told that it is gone."""
    deleted: Event | None = None
    """It is gone for good."""
    moves: tuple[tuple[datetime, Move, Rule], ...] = ()

    @property
    def first(self) -> Event | None:
        """From when on a reader does not find it, and by which rule."""
        return self.hidden or self.deleted

    def is_gone(self, at: datetime) -> bool:
        """Whether it is gone for good by then."""
        return self.deleted is not None and self.deleted.at <= at


STAYS: Final = Fate()


def simulate(
    rules: Sequence[Rule], versions: Iterable[Version], now: datetime, *, versioning: Versioning = "off"
) -> Iterator[tuple[Version, Fate]]:
    """The fate of each, seen from `now`, in their order; versions of one key follow each other, newest first.

    What was due before `now` happens at `now`.
    """
    fitting = _Fitting(rules)
    for _, group in groupby(versions, key=lambda one: one.key):
        of_key = list(group)
        if len(of_key) == 1 and not of_key[0].marker and of_key[0].noncurrent_since is None:
            yield of_key[0], _current(of_key[0], fitting.of(of_key[0]), now, versioning)
        else:
            yield from _together(of_key, fitting, now, versioning)


def aborted(rules: Sequence[Rule], key: str, begun: datetime, now: datetime) -> Event | None:
    """When a rule aborts an unfinished upload of that key."""
    return _first(
        now,
        (
            (_days_after(begun, rule.abort_days), rule)
            for rule in rules
            if rule.abort_days is not None and key.startswith(rule.prefix)
        ),
    )


def midnight(at: datetime) -> datetime:
    """The next midnight UTC, or this moment if it is one."""
    at = at.astimezone(UTC)
    start = datetime.combine(at.date(), time(), UTC)
    return start if start == at else start + timedelta(days=1)


class _Fitting:
    """Which rules fit an object; those that fit its tags are looked up once for all that have the same."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._by_tags: dict[frozenset[tuple[str, str]], list[Rule]] = {}

    def of(self, one: Version) -> list[Rule]:
        tags = frozenset(one.tags.items())
        known = self._by_tags.get(tags)
        if known is None:
            known = [rule for rule in self._rules if rule.tags.items() <= one.tags.items()]
            self._by_tags[tags] = known
        return [
            rule
            for rule in known
            if one.key.startswith(rule.prefix)
            and (rule.greater is None or one.size > rule.greater)
            and (rule.less is None or one.size < rule.less)
        ]


def _current(one: Version, rules: Sequence[Rule], now: datetime, versioning: Versioning) -> Fate:
    expired = _first(now, _expirations(one, rules))
    moves = _moved(one, rules)
    if expired is None:
        return Fate(moves=moves) if moves else STAYS
    if versioning == "off" or (versioning == "suspended" and one.id == NO_ID):
        return Fate(deleted=expired, moves=moves)
    gone = _first(now, _removals(expired.at, rules, newer=0))
    return Fate(hidden=expired, deleted=gone, moves=moves)


def _together(
    of_key: list[Version], fitting: _Fitting, now: datetime, versioning: Versioning
) -> Iterator[tuple[Version, Fate]]:
    """Several versions of one key: the newest is current, and its marker depends on those behind it."""
    found: list[Fate] = []
    old = 0
    for one in of_key:
        if one.noncurrent_since is None:
            found.append(STAYS if one.marker else _current(one, fitting.of(one), now, versioning))
            continue
        rules = fitting.of(one)
        newer = old + (found[0].hidden is not None if of_key[0].noncurrent_since is None else 0)
        gone = _first(now, _removals(one.noncurrent_since, rules, newer=newer))
        found.append(Fate(deleted=gone, moves=_moved(one, rules)))
        old += 1
    if of_key[0].marker and of_key[0].noncurrent_since is None:
        found[0] = _marker(of_key[0], found[1:], fitting.of(of_key[0]), now)
    if versioning == "suspended" and found[0].hidden is not None:
        found[1:] = [
            _replaced(fate, found[0].hidden) if one.id == NO_ID else fate
            for one, fate in zip(of_key[1:], found[1:], strict=True)
        ]
    yield from zip(of_key, found, strict=True)


def _replaced(fate: Fate, by: Event) -> Fate:
    """Of an old version without an id: the marker that hides the newest one has none either."""
    if fate.deleted is not None and fate.deleted.at <= by.at:
        return fate
    return Fate(deleted=by, moves=fate.moves)


def _marker(one: Version, behind: Sequence[Fate], rules: Sequence[Rule], now: datetime) -> Fate:
    """A marker goes when all that it hides is gone."""
    alone = now
    for fate in behind:
        if fate.deleted is None:
            return STAYS
        alone = max(alone, fate.deleted.at)
    by_marker = ((alone, rule) for rule in rules if rule.markers)
    by_age = ((max(alone, at), rule) for at, rule in _expirations(one, rules))
    return Fate(deleted=_first(now, (*by_marker, *by_age)))


def _expirations(one: Version, rules: Sequence[Rule]) -> Iterator[tuple[datetime, Rule]]:
    for rule in rules:
        if rule.days is not None:
            yield _days_after(one.created, rule.days), rule
        if rule.date is not None:
            yield max(rule.date, one.created), rule


def _removals(since: datetime, rules: Sequence[Rule], *, newer: int) -> Iterator[tuple[datetime, Rule]]:
    for rule in rules:
        if rule.noncurrent_days is not None and newer >= rule.newer:
            yield _days_after(since, rule.noncurrent_days), rule


def _moved(one: Version, rules: Sequence[Rule]) -> tuple[tuple[datetime, Move, Rule], ...]:
    since = one.noncurrent_since
    return tuple(
        (move.date or _days_after(one.created if since is None else since, move.days or 0), move, rule)
        for rule in rules
        for move in rule.moves
        if move.noncurrent == (since is not None)
    )


def _days_after(since: datetime, days: int) -> datetime:
    """The midnight at which so many days are over; the end of all time where there is no such day."""
    try:
        return midnight(since + timedelta(days=days))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _first(now: datetime, due: Iterable[tuple[datetime, Rule]]) -> Event | None:
    """The earliest of what is due, and not before now; of several at one time the first rule."""
    earliest = min(due, key=lambda pair: pair[0], default=None)
    return None if earliest is None else Event(max(earliest[0], now), earliest[1])
