"""When a bundle of a running run is based on an earlier one, and when it is full; pure.

    an epoch    a full bundle and those that are based on it, each on the newest that the store had by then
    a base      a bundle that this process has sealed, and whose record the store has acknowledged to it

An epoch ends with the number of its bundles, after a day, where rules or recipients change, with the run, and
where an increment would not be much smaller than a full bundle. A process begins with a full one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from archiver.compact import Marks
from archiver.model import Member, Outcome
from archiver.pack import Base, Held, Packed

LONGEST: Final = timedelta(days=1)
"""From the first bundle of an epoch to the last: what is promised of one is promised of all."""
LARGEST: Final = 0.6
"""The part of all bytes from which on an increment does not pay."""

_TEXTS: Final = 4
"""The newest of those that wait for the store keep their texts; what is based on another goes without."""

Reason = Literal["unacknowledged", "count", "age", "rules", "recipients", "end", "size"]
"""Why a bundle is full. `unacknowledged`: nothing is known to be in the store that it could be based on."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same in all bundles of an epoch: how they were scanned, and whom they are sealed to."""

    rules: str
    """The fingerprint of redaction: its rules, and the values that are registered as secret."""
    recipients: frozenset[str]


@dataclass(frozen=True, slots=True)
class Based:
    """What the next bundle is based on."""

    base: Base
    marks: Marks
    """Where its compaction stood."""


@dataclass(slots=True)
class _Made:
    """A bundle that was sealed here."""

    seq: int
    epoch: int
    """The number of the first bundle of its epoch, and (`began`) when that was made."""
    began: datetime
    terms: Terms
    marks: Marks
    packed: Packed
    under: dict[str, Held]
    """The table that it is based on; empty for a full one."""


class Epochs:
    """The bundles of one run that one process seals; used by one thread."""

    def __init__(self, every: int) -> None:
        """`every`: bundles of an epoch."""
        self._every = every
        self._waiting: dict[int, _Made] = {}
        self._newest: _Made | None = None
        self._base: Base | None = None
        self._all: dict[str, Held] = {}
        """The table of the base."""
        self._counts: Counter[int] = Counter()

    def choose(self, terms: Terms, outcome: Outcome, now: datetime) -> Based | Reason:
        """What the next bundle is to be based on, or why it is to be full."""
        newest, base = self._newest, self._base
        if outcome != "running":
            return "end"
        if newest is None or base is None:
            return "unacknowledged"
        if self._counts[newest.epoch] >= self._every or len(base.chain) >= self._every:
            return "count"
        if not timedelta() <= now - newest.began < LONGEST:
            return "age"
        if newest.terms != terms:
            return "rules" if newest.terms.rules != terms.rules else "recipients"
        return Based(base, newest.marks)

    def sealed(
        self, seq: int, packed: Packed, marks: Marks, terms: Terms, now: datetime, because: Based | Reason
    ) -> None:
        """A bundle was made; nobody knows yet whether it comes into the store."""
        if isinstance(because, Based):
            newest = self._newest
            if newest is None or self._base is not because.base:
                return  # another has become the base meanwhile, and what this one has is not known any more
            made = _Made(seq, newest.epoch, newest.began, terms, marks, packed, self._all)
        else:
            made = _Made(seq, seq, now, terms, marks, packed, {})
            if because != "unacknowledged":
                self._end(seq)
            if because == "end":
                return  # it has the class of the outcome, which may be shorter than that of what comes after
        self._counts[made.epoch] += 1
        self._waiting[seq] = made
        for number in sorted(self._waiting)[:-_TEXTS]:
            old = self._waiting[number]
            old.packed = replace(old.packed, text=b"")

    def acknowledged(self, seq: int, name: str) -> None:
        """The store has the record of that number, which commits its bundle under this name."""
        made = self._waiting.pop(seq, None)
        if made is None:
            return
        before = self._newest
        if before is not None and (made.epoch, seq) <= (before.epoch, before.seq):
            return
        self._all = self._table(made)
        chain = (*made.packed.bases, seq)
        self._newest, self._base = (
            made,
            Base(name, made.packed.manifest_sha256, chain, self._all, made.packed.text),
        )
        self._waiting = {number: one for number, one in self._waiting.items() if number > seq}

    def _end(self, seq: int) -> None:
        """What comes next is not based on anything before."""
        self._newest = self._base = None
        self._waiting = {number: one for number, one in self._waiting.items() if one.epoch >= seq}

    def _table(self, made: _Made) -> dict[str, Held]:
        """All that it has: the table of its base, changed, or copied where another needs that still."""
        manifest = made.packed.manifest
        needed = any(one.under is made.under for one in self._waiting.values())
        table = dict(made.under) if needed else made.under
        for path in manifest.dropped:
            del table[path]
        for member in manifest.members:
            table[member.path] = (member.size, member.sha256, member.mode)
        return table


def pays(members: Iterable[Member], table: Mapping[str, Held], kept: int = 0) -> bool:
    """Whether enough is in the table of a base for the bundle to be an increment.

    `kept`: bytes of what lies there besides these members.
    """
    here, total = 0, kept
    for member in members:
        total += member.size
        if table.get(member.path) != (member.size, member.sha256, member.mode):
            here += member.size
    return here < LARGEST * total


__all__ = ["LARGEST", "LONGEST", "Based", "Epochs", "Reason", "Terms", "pays"]
