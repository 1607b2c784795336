"""What the rules of a bucket do to the objects of a store, against what is promised of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from archiver.errors import UnsafeLifecycleError
from archiver.lifecycle.bucket import Bucket, Contents, Seen
from archiver.lifecycle.judge import Finding, judge, uncovered
from archiver.lifecycle.parse import Rule, parse
from archiver.lifecycle.promises import Promise, Promises
from archiver.lifecycle.rules import RawRule, is_own
from archiver.lifecycle.simulate import Fate, simulate
from archiver.model.record import RetentionClass
from archiver.parallel import in_order

if TYPE_CHECKING:
    from archiver.sampling import Sample
    from archiver.setup import Setup

FEW: Final = 5
"""Objects of one rule that are named."""


@dataclass(frozen=True, slots=True)
class Early:
    """An object, or an old version of one, that a rule takes before its promise ends."""

    name: str
    version: str | None
    """Its id, of an old version."""
    at: datetime
    """When it is deleted or hidden."""
    promised: datetime | None
    """None: without end."""
    why: str


@dataclass(slots=True)
class OfRule:
    """What one rule does to the objects that were looked at."""

    rule: Rule
    own: bool
    """Whether it is one of the rules that this store needs."""
    takes: int = 0
    """Objects that it takes, sooner or later."""
    next: datetime | None = None
    """When it takes the first of them."""
    early: int = 0
    """Those of them that it takes before their promise ends."""
    first: list[Early] = field(default_factory=list)
    """The first few of those, by the time at which they go."""

    def add(self, at: datetime, broken: Early | None) -> None:
        """Count one that it takes."""
        self.takes += 1
        self.next = at if self.next is None else min(self.next, at)
        if broken is not None:
            self.early += 1
            self.first = sorted([*self.first, broken], key=lambda one: (one.at, one.name))[:FEW]


@dataclass(slots=True)
class Report:
    """What a check found; `rules` has each enabled rule that touches the store."""

    rules: list[OfRule]
    findings: list[Finding]
    """What is to be said of the rules alone, whatever lies in the store."""
    uncovered: list[RetentionClass]
    looked: int = 0
    """Versions that were looked at."""
    total: int = 0
    """Versions that there are."""
    early: int = 0
    """Those that go before their promise ends."""
    newly: list[Early] = field(default_factory=list)
    """The first few that would go too early, and later or not at all by the rules that are there now."""
    newly_early: int = 0
    """All of those."""
    unclassed: int = 0
    unclassed_names: list[str] = field(default_factory=list)
    moved: dict[str, int] = field(default_factory=dict)
    """Objects by the storage class that a rule moves them to."""
    remarks: list[str] = field(default_factory=list)

    @property
    def unsafe(self) -> list[OfRule]:
        """Rules that take something before its promise ends."""
        return [one for one in self.rules if one.early]

    def error(self) -> UnsafeLifecycleError | None:
        """The error of what goes too early; None where nothing does."""
        found = self.unsafe
        if not found:
            return None
        first = min((one for rule in found for one in rule.first), key=lambda one: one.at)
        what = f"{self.early} object{'' if self.early == 1 else 's'}"
        names = ", ".join(one.rule.name for one in found)
        error = UnsafeLifecycleError(
            f"{names} would delete {what} before {'its' if self.early == 1 else 'their'} promise ends, "
            f"first {first.name} on {first.at:%Y-%m-%d} ({first.why})",
            remedy=_remedy(found),
        )
        error.details = {"early": self.early, "rules": [one.rule.id for one in found]}
        return error

    def add_newly(self, broken: Early) -> None:
        """Count one that goes too early by the new rules alone."""
        self.newly_early += 1
        self.newly = sorted([*self.newly, broken], key=lambda one: (one.at, one.name))[:FEW]


def _remedy(found: Sequence[OfRule]) -> str:
    if all(one.own for one in found):
        return (
            "`archiver lifecycle apply` puts the days right; where they are right the tag of an object is "
            "wrong: `archiver sweep` of the role that retags corrects it, and `archiver hold RUN` keeps a run"
        )
    return (
        "narrow those rules to another prefix or one class, or remove them where they are made; "
        "`archiver lifecycle show` has them"
    )


def check(
    bucket: Bucket,
    setup: Setup | None,
    *,
    now: datetime,
    rules: Sequence[RawRule] | None = None,
    sample: Sample | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Report:
    """What the rules of the bucket, or these `rules` in their place, do to what lies in the store.

    With `setup` promises are computed from verified records, else from tags alone. `tick` is called for each
    version that was looked at. With `rules`, what they take too early and those of the bucket do not is
    counted too. Raises the store's errors; what is wrong with one run is a remark.
    """
    raw = bucket.configuration.rules if rules is None else rules
    wanted = bucket.wanted
    names = {f"rule {rule.get('ID')}" for rule in raw if is_own(rule, wanted.prefix)}
    parsed = [rule for rule in parse(raw) if rule.meets(wanted.prefix)]
    of_rule = {rule.name: OfRule(rule, rule.name in names) for rule in parsed}
    report = Report(
        list(of_rule.values()), judge(parsed, wanted), uncovered(parsed, wanted), remarks=list(bucket.remarks)
    )
    contents = Contents(bucket, sample)
    promises = Promises(setup, wanted.days)
    parallel = bucket.s3.options.aws.parallel
    with closing(in_order(promises.of, contents.folders(tick), workers=parallel)) as promised:
        for folder in promised:
            versions = [one.version for one, _ in folder]
            fates = simulate(parsed, versions, now, versioning=bucket.versioning)
            for (one, promise), (_, fate) in zip(folder, fates, strict=True):
                _count(report, of_rule, one, promise, fate)
            if rules is not None:
                _compare(report, folder, parsed, bucket, now)
    report.total = contents.total
    said = sorted(set(promises.remarks))
    report.remarks += [*([contents.without_versions] if contents.without_versions else []), *said]
    return report


def _compare(
    report: Report,
    folder: Sequence[tuple[Seen, Promise | None]],
    rules: Sequence[Rule],
    bucket: Bucket,
    now: datetime,
) -> None:
    """Add what goes too early by the rules, and not so early by those that the bucket has."""
    versions = [one.version for one, _ in folder]
    before = simulate(bucket.rules, versions, now, versioning=bucket.versioning)
    after = simulate(rules, versions, now, versioning=bucket.versioning)
    for (one, promise), (_, old), (_, new) in zip(folder, before, after, strict=True):
        for then, event in ((old.first, new.first), (old.deleted, new.deleted)):
            if event is None or (then is not None and then.at <= event.at):
                continue
            broken = _early(one, promise, event.at)
            if broken is not None:
                report.add_newly(broken)
                break


def _count(
    report: Report,
    of_rule: dict[str, OfRule],
    one: Seen,
    promise: Promise | None,
    fate: Fate,
) -> None:
    report.looked += 1
    if one.retention is None and not one.version.marker:
        report.unclassed += 1
        if len(report.unclassed_names) < FEW:
            report.unclassed_names.append(one.name)
    for _, move, _rule in fate.moves:
        report.moved[move.storage] = report.moved.get(move.storage, 0) + 1
    if fate.first is not None:
        at = fate.first.at
        broken = _early(one, promise, at)
        report.early += broken is not None
        of_rule[fate.first.rule.name].add(at, broken)
    later = fate.deleted
    if fate.hidden is not None and later is not None and later.rule is not fate.hidden.rule:
        # Hidden by one rule and removed by another: the second one takes it for good.
        of_rule[later.rule.name].add(later.at, _early(one, promise, later.at))


def _early(one: Seen, promise: Promise | None, at: datetime) -> Early | None:
    """None where it may be gone by then."""
    if promise is None or (promise.until is not None and at >= promise.until):
        return None
    old = one.version.noncurrent_since is not None
    return Early(one.name, one.version.id if old else None, at, promise.until, promise.why)
