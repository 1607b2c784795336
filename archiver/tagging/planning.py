"""Which classes of a run's objects have to change, and in which order; pure.

records, notes, lists  →  wanted: the class that each object should have
wanted, present tags   →  ordered: the changes, none of which leaves a bundle behind what it needs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from archiver import layout, retention
from archiver.errors import InvalidNameError
from archiver.model import utc_text
from archiver.model.record import RetentionClass
from archiver.retention import ORPHAN_AFTER, Committed, Standing

LONGEST: Final[RetentionClass] = "live"
"""What a bundle gets back whose class is not known from a record: the class of a run that goes on."""


@dataclass(frozen=True, slots=True)
class There:
    """An object of the run that lists show."""

    name: str
    modified: datetime
    """When the store got it."""
    version: str | None = None
    """Its id where each version is looked at; None for the object as it is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The class that an object should have, and why."""

    there: There
    to: RetentionClass
    why: str
    at: int
    """Its place in the chain; 0 for what no bundle needs."""


@dataclass(frozen=True, slots=True)
class Change:
    """A class that has to change, or has."""

    name: str
    version: str | None
    was: RetentionClass
    to: RetentionClass
    why: str

    @property
    def shortens(self) -> bool:
        """Whether the object is kept less long afterwards."""
        return retention.is_shorter(self.to, self.was)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a run."""

    run: Sequence[Committed]
    """Its verified records from the first on, in the order of their numbers."""
    standing: Standing = retention.NOTHING
    whole: bool = True
    """Whether these are all the records it has or had: else nothing is shortened."""


def wanted(known: Known, there: Iterable[There], *, keep: int, now: datetime) -> list[Wanted]:
    """The class that each object should have; nothing of those that are fine whatever they have.

    Of a run on hold that is `hold` for everything. Of others, bundles are looked at; and once a hold was
    released, the rest too. `now` is the time by the clock of the store.
    """
    bundles = {one.record.bundle.name: one for one in known.run if one.record.bundle is not None}
    due = retention.classes(known.run, keep=keep, standing=known.standing)
    words = _Words(known)
    found = []
    for one in there:
        kind = _kind(one.name)
        committed = bundles.get(one.name)
        if kind is None or kind == "note":
            continue
        if known.standing.held is not None:
            at = committed.record.seq if committed else 0
            found.append(Wanted(one, "hold", words.held, at))
        elif committed is not None:
            seq = committed.record.seq
            found.append(Wanted(one, due[seq], words.of(due[seq]), seq))
        elif kind == "bundle":
            found.extend(_orphan(one, known, now))
        elif known.standing.released is not None:
            found.append(Wanted(one, "record", words.released, 0))
    return found


def ordered(
    wants: Iterable[Wanted], tags: Mapping[There, RetentionClass | None], known: Known
) -> list[Change]:
    """The changes that bring each object from the tag it has to the class it should have.

    First what is kept longer, bases before what needs them; then what is kept less long, the other way round.
    So at no moment a bundle outlives one that it needs, if none did before. An object without a class never
    expires, and is left so. One on hold is left alone, unless its run was released.
    """
    changes = []
    for want in wants:
        was = tags.get(want.there)
        if was is None or was == want.to or (was == "hold" and known.standing.released is None):
            continue
        change = Change(want.there.name, want.there.version, was, want.to, want.why)
        if change.shortens and not known.whole:
            continue
        changes.append((want.at, change))
    longer = sorted((one for one in changes if not one[1].shortens), key=lambda one: one[0])
    shorter = sorted((one for one in changes if one[1].shortens), key=lambda one: -one[0])
    return [change for _, change in (*longer, *shorter)]


def next_time(known: Known, there: Iterable[There], now: datetime) -> datetime | None:
    """When something changes although nothing was added: an orphan comes of age. By the store's clock."""
    if known.standing.held is not None:
        return None
    named = {one.record.bundle.name for one in known.run if one.record.bundle is not None}
    young = (
        one.modified + ORPHAN_AFTER for one in there if _kind(one.name) == "bundle" and one.name not in named
    )
    return min((at for at in young if at > now), default=None)


def _orphan(one: There, known: Known, now: datetime) -> Iterator[Wanted]:
    """A bundle that no record names: it is given up when it is so old that none ever will."""
    if known.whole and one.modified + ORPHAN_AFTER <= now:
        days = ORPHAN_AFTER.days
        yield Wanted(one, "intermediate", f"no record has named it for {days} days", 0)
    elif known.standing.released is not None:
        yield Wanted(one, LONGEST, "the run was released, and no record names it yet", 0)


def _kind(name: str) -> str | None:
    try:
        return layout.parse(name).kind
    except InvalidNameError:
        return None


class _Words:
    """Why a class is what it is."""

    def __init__(self, known: Known) -> None:
        standing = known.standing
        outcome = known.run[-1].record.outcome if known.run else "running"
        self.held = f"on hold since {utc_text(standing.held)}" if standing.held else ""
        self.released = f"released on {utc_text(standing.released)}" if standing.released else ""
        ended = "it goes on" if outcome == "running" else f"the run has {_SAID[outcome]}"
        merged = standing.merged is not None and outcome != "running"
        self._words: dict[RetentionClass, str] = {
            "intermediate": "superseded by later checkpoints",
            "success": "what the run made is merged" if merged and outcome != "succeeded" else ended,
            "failure": ended,
            "live": ended,
        }

    def of(self, to: RetentionClass) -> str:
        return self._words.get(to) or self.released or "as it was created"


_SAID: Final = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "been cancelled",
    "crashed": "crashed",
}
