"""A year of a store in a bucket, in memory: runs, sweeps, lifecycle rules, and what must hold all the time.

What is promised is told here from the facts alone, in the plainest way there is, so that a mistake in
`archiver.retention` or in the plan of a sweep shows.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from test_retention import committed

from archiver import layout
from archiver.compact import Marks
from archiver.epochs import Based, Epochs, Reason, Terms
from archiver.lifecycle.parse import Rule, parse
from archiver.lifecycle.rules import Wanted as Rules
from archiver.lifecycle.rules import rules
from archiver.lifecycle.simulate import Version, simulate
from archiver.model.checkpoint import Outcome
from archiver.model.manifest import BaseRef, Manifest, ManifestMember
from archiver.model.record import RetentionClass
from archiver.pack import Packed
from archiver.retention import DAYS, NONCURRENT_DAYS, Committed, Standing, class_of
from archiver.tagging.planning import Change, Known, There, Wanted, next_time, ordered, wanted

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)
OUTAGE: Final = 5 * DAY
"""How long no sweep comes at most."""
TAG: Final = "archiver-class"
EPOCH: Final = 4
"""Bundles of an epoch at most."""
TERMS: Final = Terms("rules", frozenset({"key"}))
FINAL: Final[tuple[Outcome, ...]] = ("succeeded", "failed", "cancelled", "crashed")

Want = Callable[..., list[Wanted]]
Order = Callable[..., list[Change]]


@dataclass
class Bundle:
    """An object, with what the facts say of it."""

    name: str
    created: datetime
    tag: RetentionClass
    record: Committed | None = None
    bases: tuple[int, ...] = ()
    hidden: datetime | None = None
    gone: bool = False
    least: int = 10**6
    """The fewest days that it was ever entitled to."""
    fact: tuple[RetentionClass, datetime] | None = None
    """The class that the facts give it, and since when."""
    due: tuple[tuple[RetentionClass, datetime | None], datetime | None] | None = None
    """When a rule does something to it, as long as its tag stays and it is hidden or not."""

    over: bool = False
    """Whether nothing is promised of it any more: what it is entitled to never grows."""

    def spared(self, now: datetime) -> bool:
        """Whether no rule does anything to it yet: that need not be simulated each night."""
        if self.due is None or self.due[0] != (self.tag, self.hidden):
            return False
        return self.due[1] is None or now < self.due[1]


@dataclass
class Run:
    """A run with all that was ever stored of it."""

    name: str
    records: list[Committed] = field(default_factory=list)
    bundles: dict[int, Bundle] = field(default_factory=dict)
    orphans: list[Bundle] = field(default_factory=list)
    standing: Standing = field(default_factory=Standing)
    held: set[str] = field(default_factory=set)
    """What was there when a hold began, or came since."""
    epochs: Epochs = field(default_factory=lambda: Epochs(EPOCH))
    """What the process knows that writes it."""
    settled: tuple[datetime | None, tuple[object, ...]] | None = None
    """When it is due, and what it was like, when a sweep had nothing left to do."""

    @property
    def outcome(self) -> Outcome:
        return self.records[-1].record.outcome if self.records else "running"

    def all(self) -> Iterator[Bundle]:
        yield from self.bundles.values()
        yield from self.orphans

    def there(self) -> dict[There, Bundle]:
        return {
            There(one.name.partition(":")[2], one.created, "" if one.hidden else "current"): one
            for one in self.all()
            if not one.gone
        }

    def facts(self) -> tuple[object, ...]:
        """What lists and notes show: a sweep looks at the run again when it is another."""
        return len(self.records), len(self.orphans), self.standing


class Year:
    """One year; `violations` has what must not have happened."""

    def __init__(
        self, seed: int, *, want: Want = wanted, order: Order = ordered, runs: int = 5, told: bool = False
    ) -> None:
        """`told`: the mistake of calling acknowledged what was only sealed."""
        self._told = told
        self._random = random.Random(seed)
        self._want, self._order = want, order
        self._keep = self._random.choice((1, 2, 5))
        self._versioned = self._random.random() < 0.5
        longer = self._random.choice((0, 0, 3, 40))
        self.days: Mapping[RetentionClass, int | None] = {
            word: None if least is None else least + longer for word, least in DAYS.items()
        }
        asked = Rules("", self._versioned, TAG, self.days)
        self._rules: list[Rule] = parse(rules(asked))
        self._runs = [Run(f"run-{number}") for number in range(runs)]
        self.now = START
        self.violations: list[str] = []
        self.seen: dict[str, int] = {}
        """How often what happened, so that a test sees that it did."""

    def play(self) -> Year:
        for at, what, *more in heapq.merge(*self._schedules(), key=lambda one: one[0]):
            self.now = at
            what(*more)
            if self.violations:
                break
        return self

    # --- what happens -------------------------------------------------------------------------------------

    def _schedules(self) -> list[list[Any]]:
        end = START + 365 * DAY
        found: list[list[Any]] = [[(START + day * DAY, self._midnight) for day in range(1, 366)]]
        at, sweeps = START, []
        while at < end:
            at += OUTAGE * self._random.random() if self._random.random() < 0.3 else timedelta(hours=6)
            sweeps.append((at, self._sweep))
        found.append(sweeps)
        for run in self._runs:
            at, events = START + self._random.random() * 200 * DAY, []
            for _ in range(self._random.randrange(5, 45)):
                gap = self._random.choice((timedelta(minutes=20), timedelta(hours=7), DAY, 9 * DAY))
                at += gap * self._random.random()
                events.append((at, self._event, run))
            found.append(events)
        return found

    def _event(self, run: Run) -> None:
        what = self._random.choices(
            ("save", "finish", "claim", "orphan", "hold", "release", "merged"), (12, 3, 1, 1, 1, 2, 1)
        )[0]
        self._count(what)
        if what in ("save", "finish"):
            self._save(run, self._random.choice(FINAL) if what == "finish" else "running")
        elif what == "claim":
            seq = len(run.records) + 1
            run.records.append(committed(seq, self.now, kind="claim", outcome=run.outcome))
            run.epochs = Epochs(EPOCH)
        elif what == "orphan":
            run.orphans.append(self._put(run, 90_000 + len(run.orphans), "live"))
        elif what == "hold" and run.standing.held is None:
            run.standing = replace(run.standing, held=self.now, released=None)
            self._settle(run, whole=True)
            run.held = {one.name for one in run.all() if not one.gone}
        elif what == "release" and run.standing.held is not None:
            run.standing = replace(run.standing, held=None, released=self.now)
            run.held.clear()
        elif what == "merged" and run.standing.merged is None and run.outcome in ("failed", "crashed"):
            run.standing = replace(run.standing, merged=self.now)
        self._facts(run)

    def _save(self, run: Run, outcome: Outcome) -> None:
        seq = len(run.records) + 1
        if self._random.random() < 0.05:  # the process died, and another one goes on
            run.epochs = Epochs(EPOCH)
        choice = run.epochs.choose(TERMS, outcome, self.now)
        if isinstance(choice, Based) and self._random.random() < 0.1:
            choice = "size"
        bases = choice.base.chain if isinstance(choice, Based) else ()
        run.epochs.sealed(seq, _packed(seq, choice), Marks(), TERMS, self.now, choice)
        if outcome == "running" and self._random.random() < 0.1:
            self._skip(run, seq)
            return
        if any(base not in run.bundles for base in bases):
            self._wrong(f"{run.name}: {seq} needs a bundle that never came into the store: {bases}")
            return
        self._count(f"{len(bases)} bases")
        bundle = self._put(run, seq, class_of(outcome))
        run.records.append(
            replace(
                committed(seq, self.now, outcome=outcome, retention=bundle.tag, bases=bases), stored=self.now
            )
        )
        bundle.record, bundle.bases = run.records[-1], bases
        run.bundles[seq] = bundle
        if self._random.random() < 0.8:  # else the answer was lost, or another process has delivered it
            run.epochs.acknowledged(seq, layout.bundle_name("r", seq, "0" * 16))
        if run.standing.held is not None:
            self._settle(run, whole=True)
            run.held.add(bundle.name)

    def _skip(self, run: Run, seq: int) -> None:
        """It gave up its bundle on the way."""
        self._count("skipped")
        run.records.append(committed(seq, self.now, kind="skipped", outcome="running"))
        if self._told:
            run.epochs.acknowledged(seq, layout.bundle_name("r", seq, "0" * 16))

    def _put(self, run: Run, seq: int, tag: RetentionClass) -> Bundle:
        name = layout.bundle_name("r", seq, "0" * 16)
        return Bundle(f"{run.name}:{name}", self.now, tag)

    def _sweep(self) -> None:
        """As a sweep does, that leaves alone what was settled, until something comes or its time does."""
        self._count("sweep")
        for run in self._runs:
            if self._nothing_to_do(run):
                continue
            whole = self._random.random() < 0.7
            self._settle(run, whole=whole)
            due = next_time(Known(tuple(run.records), run.standing), run.there(), self.now)
            run.settled = (due, run.facts()) if whole else None

    def _nothing_to_do(self, run: Run) -> bool:
        if run.settled is None:
            return False
        due, was = run.settled
        return was == run.facts() and (due is None or self.now < due)

    def _settle(self, run: Run, *, whole: bool) -> None:
        """As the sweeper does it; it may die at any change."""
        there = run.there()
        known = Known(tuple(run.records), run.standing)
        wants = self._want(known, list(there), keep=self._keep, now=self.now)
        tags = {place: one.tag for place, one in there.items()}
        by_name = {(place.name, place.version): one for place, one in there.items()}
        changes = self._order(wants, tags, known)
        for change in changes if whole else changes[: self._random.randrange(len(changes) + 1)]:
            by_name[change.name, change.version].tag = change.to
            self._count(f"{change.was} to {change.to}")
            self._in_order(run)

    def _midnight(self) -> None:
        """The rules of the bucket do what they do."""
        for run in self._runs:
            for one in run.all():
                if one.gone or one.spared(self.now):
                    continue
                version = Version(one.name, one.created, {TAG: one.tag}, 1, noncurrent_since=one.hidden)
                marker = [Version(one.name, one.hidden, marker=True)] if one.hidden else []
                versioning = "on" if self._versioned else "off"
                (*_, (_, fate)) = simulate(self._rules, [*marker, version], self.now, versioning=versioning)
                dues = [event.at for event in (fate.hidden, fate.deleted) if event is not None]
                one.due = (one.tag, one.hidden), min(dues, default=None)
                if fate.hidden is not None and fate.hidden.at <= self.now:
                    one.hidden = self.now
                    self._count("hidden")
                if fate.deleted is not None and fate.deleted.at <= self.now:
                    one.gone = True
                    self._count("gone")
        self._promises()
        self._leftovers()

    # --- what must hold -----------------------------------------------------------------------------------

    def _in_order(self, run: Run) -> None:
        """At no moment a bundle outlives, by its class, one that it needs."""
        for seq, one in run.bundles.items():
            for base in one.bases:
                needed = run.bundles[base]
                if not (one.gone or needed.gone) and _days(needed.tag) < _days(one.tag):
                    self._wrong(f"{run.name}: {seq} is {one.tag}, and needs {base}, which is {needed.tag}")

    def _facts(self, run: Run) -> None:
        """Notice what an event means for the bundles of its run."""
        for seq, one in run.bundles.items():
            fact = self._fact(run, seq)
            if one.fact is None or one.fact[0] != fact:
                one.fact = (fact, self.now)
            count = self.days[fact]
            if count is not None:
                one.least = min(one.least, count)

    def _fact(self, run: Run, seq: int) -> RetentionClass:
        if run.standing.held is not None:
            return "hold"
        found = cast("Committed", run.bundles[seq].record).record.retention
        if found == "live":
            newest = sorted(run.bundles)[-self._keep :]
            connected = {seq}
            while (
                more := {
                    two
                    for one in run.bundles
                    for two in (one, *run.bundles[one].bases)
                    if connected.intersection((one, *run.bundles[one].bases))
                }
                - connected
            ):
                connected |= more
            found = class_of(run.outcome) if connected.intersection(newest) else "intermediate"
        if run.standing.merged and run.outcome != "running" and found in ("live", "failure"):
            return "success"
        return found

    def _promises(self) -> None:
        for run in self._runs:
            for one in run.all():
                if one.name in run.held and (one.gone or one.hidden) and not self._was_hidden(run, one):
                    self._wrong(f"{run.name}: {one.name} is on hold and gone")
            for seq, one in run.bundles.items():
                if one.over:
                    continue
                needs = self._needs(run, seq)
                until = min(two.created + min(two.least, 10**4) * DAY for two in needs)
                one.over = until <= self.now
                if not one.over and any(two.hidden or two.gone for two in needs):
                    self._wrong(f"{run.name}: {seq} was promised until {until}, and is gone ({one.tag})")

    def _was_hidden(self, run: Run, one: Bundle) -> bool:
        """A marker that lay over it before the hold began is not taken away; the version stays."""
        since = run.standing.held
        return not one.gone and one.hidden is not None and since is not None and one.hidden <= since

    def _needs(self, run: Run, seq: int) -> list[Bundle]:
        found: dict[int, Bundle] = {}
        todo = [seq]
        while todo:
            at = todo.pop()
            if at not in found:
                found[at] = run.bundles[at]
                todo += run.bundles[at].bases
        return list(found.values())

    def _leftovers(self) -> None:
        """What has expired is gone once the sweeper had its time, and the rules theirs."""
        for run in self._runs:
            for one in run.bundles.values():
                if one.fact is not None and (count := self.days[one.fact[0]]) is not None:
                    due = max(one.created + count * DAY, one.fact[1] + 3 * OUTAGE)
                    self._demand_gone(run, one, due, one.fact[0])
            for one in run.orphans:
                if run.standing.held is None:
                    since = max(one.created + 2 * DAY, run.standing.released or START)
                    count = self.days["intermediate"] or 0
                    due = max(one.created + count * DAY, since + 3 * OUTAGE)
                    self._demand_gone(run, one, due, "intermediate")

    def _demand_gone(self, run: Run, one: Bundle, due: datetime, word: RetentionClass) -> None:
        late = self.now - due - DAY
        if late > timedelta() and not (one.hidden or one.gone):
            self._wrong(f"{run.name}: {one.name} ({one.tag}) should be gone since {due}")
        old = max((due, one.hidden)) if one.hidden else due
        if self._versioned and self.now > old + (NONCURRENT_DAYS[word] or 0) * DAY + 2 * DAY and not one.gone:
            self._wrong(f"{run.name}: old {one.name} ({one.tag}) should be gone since {old}")

    def _wrong(self, text: str) -> None:
        self.violations.append(f"{self.now}: {text}")

    def _count(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1


def _packed(seq: int, choice: Based | Reason) -> Packed:
    """A bundle whose only member is new each time."""
    digest = f"{seq:064d}"
    held = ManifestMember(path="checkpoint.json", mode=0o644, size=1, sha256=digest)
    fields: dict[str, Any] = {}
    if isinstance(choice, Based):
        ref = BaseRef(bundle=choice.base.bundle, sha256=choice.base.manifest_sha256)
        fields = {"format": 2, "base": ref}
    manifest = Manifest(run="r", seq=seq, schema_version=2, redaction_key="", members=(held,), **fields)
    bases = choice.base.chain if isinstance(choice, Based) else ()
    return Packed(manifest, manifest.sha256, 1, 1, (), bases)


def _days(word: RetentionClass) -> float:
    count = DAYS[word]
    return float("inf") if count is None else count
