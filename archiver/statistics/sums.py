"""Sums of records and of audit entries; pure, and as small for a million runs as for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from archiver.audit.sessions import session_of
from archiver.model.audit import Act
from archiver.model.record import Record

MOST: Final = 1e300
"""Sums end here, so that what a writer signed of itself, however large, leaves a number that JSON has."""
DAMAGED: Final = "damaged"
"""In place of an outcome, for a run that cannot be read or is not whole."""
ACTIONS: Final = ("restore", "refuse", "accept", "session")
"""What is looked for in the audit."""


@dataclass(slots=True)
class Timing:
    """How long something took: how often it was measured, all of it together, and the longest; in seconds."""

    count: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.seconds / self.count if self.count else None

    def add(self, count: int, seconds: float, slowest: float) -> None:
        self.count += count
        self.seconds = min(self.seconds + seconds, MOST)
        self.slowest = max(self.slowest, slowest)


@dataclass(slots=True)
class Avoided:
    """What had been used up to the checkpoints that claims go on from: that is not used again."""

    unknown: int = 0
    """Claims of checkpoints that say nothing of what was used."""
    seconds: float = 0.0
    tokens: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    """By currency."""

    def claim(self, record: Record) -> None:
        """A claim repeats the spend of its checkpoint."""
        spend = record.spend
        tokens = spend.tokens_in + spend.tokens_out
        self.unknown += not (tokens or spend.cost or spend.seconds)
        self.tokens += tokens
        self._time_and_money(spend.seconds, {spend.currency: spend.cost} if spend.cost else {})

    def add(self, other: Avoided) -> None:
        self.unknown += other.unknown
        self.tokens += other.tokens
        self._time_and_money(other.seconds, other.cost)

    def _time_and_money(self, seconds: float, cost: dict[str, float]) -> None:
        self.seconds = min(self.seconds + seconds, MOST)
        for currency, amount in cost.items():
            self.cost[currency] = min(self.cost.get(currency, 0.0) + amount, MOST)


@dataclass(slots=True)
class Sums:
    """What records say, of one run or of many."""

    runs: Counter[str] = field(default_factory=Counter)
    """By the outcome of their newest record, or `DAMAGED`."""
    records: Counter[str] = field(default_factory=Counter)
    """By kind: checkpoints, claims, skipped ones."""
    raw: int = 0
    compacted: int = 0
    stored: int = 0
    """Bytes of all checkpoints as they were saved; some of those bundles may have expired."""
    findings: Counter[str] = field(default_factory=Counter)
    """By rule, of the newest checkpoint of each run: each save finds what those before it found."""
    left_out: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    """By status, of the newest record of each run; `undecided` are some of the others."""
    avoided: Avoided = field(default_factory=Avoided)

    def add(self, other: Sums) -> None:
        """Add what another run came to."""
        self.runs += other.runs
        self.records += other.records
        self.raw += other.raw
        self.compacted += other.compacted
        self.stored += other.stored
        self.findings += other.findings
        self.left_out += other.left_out
        self.effects += other.effects
        self.avoided.add(other.avoided)


def sums_of(records: Iterable[Record], *, whole: bool, since: datetime | None) -> Sums:
    """What one run came to, by its records in their order; those before `since` only where it is the newest.

    Of a run that is not `whole` the records that hold together count, and its outcome is `DAMAGED`.
    """
    sums = Sums()
    newest = last = None
    for record in records:
        newest = record
        last = record if record.bundle is not None else last
        if since is None or record.recorded_at >= since:
            _count(sums, record)
    sums.runs[DAMAGED if newest is None or not whole else newest.outcome] += 1
    if last is not None:
        sums.findings.update(last.findings)
        sums.left_out += last.left_out
    if newest is not None:
        effects = newest.effects
        for status in ("proposed", "in_progress", "confirmed", "uncertain"):
            sums.effects[status] += getattr(effects, status)
        sums.effects["undecided"] += len(effects.undecided)
    return sums


def _count(sums: Sums, record: Record) -> None:
    sums.records[record.kind] += 1
    if record.bundle is not None:
        sums.raw += record.sizes.raw
        sums.compacted += record.sizes.compacted
        sums.stored += record.sizes.stored
    if record.kind == "claim":
        sums.avoided.claim(record)


@dataclass(slots=True)
class Audited:
    """What was written down about runs: as much as whoever acted wrote down, and no more."""

    restores: int = 0
    refused: int = 0
    """Restores that were refused because the world had changed."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Probes, by name, that somebody went on in spite of."""
    sessions: int = 0
    """Sessions of the library that said at their end what they came to."""
    duplicates_prevented: int = 0
    steps_replayed: int = 0
    failed: int = 0
    """Saves that sessions could not make."""
    create: Timing = field(default_factory=Timing)
    restore: Timing = field(default_factory=Timing)
    unread: int = 0
    """Objects that do not open or do not hold."""
    unknown: int = 0
    """Objects signed by keys that no list of trusted keys has: what they say is not counted."""

    def add(self, act: Act) -> None:
        """Count an entry by somebody who is believed; one that is a part of a look or a drill is neither."""
        if act.within:
            return
        self.restores += act.action == "restore"
        self.refused += act.action == "refuse"
        probes = act.detail.get("probes")
        if act.action == "accept" and isinstance(probes, list):
            self.accepted.update({one for one in probes if isinstance(one, str)})
        session = session_of(act)
        if session is None:
            return
        self.sessions += 1
        self.duplicates_prevented += session.duplicates_prevented
        self.steps_replayed += session.steps_replayed
        self.failed += session.failed
        self.create.add(session.checkpoints, session.create_seconds, session.slowest_create)
        if session.restore_seconds:
            self.restore.add(1, session.restore_seconds, session.restore_seconds)
