"""Put the rules that a store needs into its bucket, and leave those of others as they are.

S3 replaces all rules at once and knows no condition for it. So they are read, merged, looked at, read again
right before they are put, and once more afterwards: what somebody else put meanwhile is noticed on either
side, but for a moment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from typing import Any

from archiver.errors import RefusedError, StoreError, UnsafeLifecycleError
from archiver.lifecycle.bucket import Bucket
from archiver.lifecycle.checking import Report
from archiver.lifecycle.judge import judge
from archiver.lifecycle.parse import parse
from archiver.lifecycle.rules import RawRule, is_own, merge, same
from archiver.store.s3 import rules as configured
from archiver.store.s3.rules import Configuration


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules that the bucket has, and those that it is to have."""

    bucket: Bucket
    merged: list[RawRule]

    @property
    def before(self) -> list[RawRule]:
        """As they were read."""
        return self.bucket.configuration.rules

    @property
    def others(self) -> list[RawRule]:
        """The rules of others, which stay."""
        return [rule for rule in self.before if not is_own(rule, self.bucket.wanted.prefix)]

    @property
    def changes(self) -> bool:
        """Whether there is anything to put."""
        return not alike(self.before, self.merged)

    def diff(self) -> list[str]:
        """The lines that a put takes away and adds, with some around them."""
        before, after = (_lines(rules) for rules in (self.before, self.merged))
        return list(
            unified_diff(before, after, "the rules of the bucket", "with those of this store", "", "", 2, "")
        )


def plan(bucket: Bucket) -> Plan:
    """What is to be put; `RefusedError` where a put would lose a part of somebody's rules."""
    unknown = bucket.configuration.unknown
    if unknown:
        raise RefusedError(
            f"rules of the bucket {bucket.s3.address.bucket} have parts that would be lost if they were put "
            f"again: {', '.join(unknown)}",
            remedy="add the rules with a tool of that server; `archiver lifecycle show --json` has them",
        )
    return Plan(bucket, merge(bucket.configuration.rules, bucket.wanted))


def refuse_unsafe(found: Plan, report: Report) -> None:
    """`UnsafeLifecycleError` where rules of others delete what is promised, now or once there is any."""
    others = [one for one in report.unsafe if not one.own]
    if others:
        error = report.error()
        assert error is not None  # noqa: S101 - there is something that goes too early
        error.remedy = f"{error.remedy}; --despite-others puts the rules all the same"
        raise error
    names = {f"rule {rule.get('ID')}" for rule in found.merged if is_own(rule, found.bucket.wanted.prefix)}
    for finding in judge(parse(found.merged), found.bucket.wanted):
        if finding.verdict == "failure" and not names.issuperset(finding.rules):
            raise UnsafeLifecycleError(
                finding.text,
                remedy="narrow that rule to another prefix or one class, or remove it where it is made; "
                "--despite-others puts the rules all the same",
            )


def refuse_newly_unsafe(found: Plan, report: Report) -> None:
    """`UnsafeLifecycleError` where a put makes own rules take what is promised: its tag is wrong."""
    if not (found.changes and report.newly):
        return
    first, count = report.newly[0], report.newly_early
    error = UnsafeLifecycleError(
        f"with these rules {count} object{'' if count == 1 else 's'} would go before "
        f"{'its' if count == 1 else 'their'} promise ends, and not so early without them, by a tag that is "
        f"wrong: first {first.name} on {first.at:%Y-%m-%d} ({first.why})",
        remedy="`archiver sweep` of the role that retags corrects tags, and `archiver hold RUN` keeps a run; "
        "--despite-tags puts the rules all the same",
    )
    error.details = {"early": count, "first": [one.name for one in report.newly]}
    raise error


def apply(found: Plan) -> None:
    """Put the merged rules; `RefusedError` if they are no longer what was read, and the store's errors.

    `StoreError` also where the server keeps something else than was sent.
    """
    s3 = found.bucket.s3
    before = configured.get(s3)
    if not _equal(before, found.bucket.configuration):
        raise RefusedError(
            f"somebody changed the rules of the bucket {s3.address.bucket} meanwhile; nothing was put",
            remedy="run it again: it then works on the rules that are there now",
        )
    configured.put(s3, Configuration(found.merged, before.more))
    differing = differences(found.merged, configured.get(s3).rules)
    if differing:
        raise StoreError(
            f"the bucket {s3.address.bucket} has other rules now than were sent: {'; '.join(differing)}",
            remedy="`archiver lifecycle check` says what they would delete; if nobody else changes them, "
            "this server does not keep rules as they are sent, and no rule of it can be relied on",
        )


def differences(sent: Sequence[RawRule], stored: Sequence[RawRule]) -> list[str]:
    """How stored rules differ from those that were sent, whatever their order."""
    have = {str(rule.get("ID")): rule for rule in stored}
    want = {str(rule.get("ID")): rule for rule in sent}
    return [
        *(f"{name} is not there" for name in want if name not in have),
        *(
            f"{name} came back otherwise"
            for name in want
            if name in have and not same(want[name], have[name])
        ),
        *(f"{name} is new" for name in have if name not in want),
    ]


def alike(one: Sequence[RawRule], other: Sequence[RawRule]) -> bool:
    """Whether both have the same rules, whatever their order."""
    return len(one) == len(other) and not differences(one, other)


def _equal(one: Configuration, other: Configuration) -> bool:
    return (
        one.more == other.more and one.unknown == other.unknown and _lines(one.rules) == _lines(other.rules)
    )


def _lines(rules: Sequence[RawRule]) -> list[str]:
    """One rule after the other, by name: a server gives them in any order."""
    ordered = sorted(rules, key=lambda rule: str(rule.get("ID")))
    return [line for rule in ordered for line in text(rule).splitlines()]


def text(rule: RawRule) -> str:
    """A rule as indented JSON."""
    return json.dumps(rule, indent=2, sort_keys=True, default=plain)


def plain(value: Any) -> str:
    """What JSON has no form for: a date of a rule."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
