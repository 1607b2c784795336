"""Rules as a bucket has them, anybody's: what each one is about and what it does.

Read as S3 means them, in the old form (a prefix beside the rule) and the new one (a filter). Of what is not
understood the reading is taken that deletes more, for a check must not promise what it cannot see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a date that cannot be read: it has come already."""


@dataclass(frozen=True, slots=True)
class Move:
    """A transition: after how many days, or on which date, and to which storage class."""

    storage: str
    days: int | None = None
    date: datetime | None = None
    noncurrent: bool = False
    newer: int = 0
    """Newest old versions that are not moved."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One enabled rule; what it does not do is None."""

    name: str
    prefix: str = ""
    """Of keys, so that of the store is at its beginning."""
    tags: Mapping[str, str] = field(default_factory=dict)
    greater: int | None = None
    less: int | None = None
    """Bytes that an object must have more, or fewer, than."""
    days: int | None = None
    """Until current objects expire."""
    date: datetime | None = None
    """From when on every current object expires."""
    markers: bool = False
    """Whether it removes markers that hide nothing any more."""
    noncurrent_days: int | None = None
    newer: int = 0
    """Newest old versions that it leaves."""
    abort_days: int | None = None
    moves: tuple[Move, ...] = ()

    @property
    def id(self) -> str:
        """As the bucket calls it; a number where it has no name."""
        return self.name.removeprefix("rule ")

    @property
    def sized(self) -> bool:
        """It is about objects of some sizes only."""
        return self.greater is not None or self.less is not None

    @property
    def expires(self) -> bool:
        """It makes current objects go, or hides them."""
        return self.days is not None or self.date is not None

    def covers(self, prefix: str) -> bool:
        """It applies to everything below the prefix."""
        return prefix.startswith(self.prefix)

    def meets(self, prefix: str) -> bool:
        """It applies to something below the prefix."""
        return prefix.startswith(self.prefix) or self.prefix.startswith(prefix)


def parse(rules: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The enabled rules of a lifecycle configuration, as boto3 gives it."""
    return [
        rule_of(rule, f"rule {rule.get('ID') or number}")
        for number, rule in enumerate(rules, start=1)
        if rule.get("Status") == "Enabled"
    ]


def rule_of(rule: Mapping[str, Any], name: str) -> Rule:
    """One rule, whether or not it is enabled."""
    outer = rule.get("Filter") or {}
    inner = outer.get("And") or outer
    expiration = rule.get("Expiration") or {}
    noncurrent = rule.get("NoncurrentVersionExpiration") or {}
    return Rule(
        name=name,
        prefix=prefix_of(rule),
        tags=_tags(inner),
        greater=inner.get("ObjectSizeGreaterThan") or None,  # S3 and Terraform write 0 for none
        less=inner.get("ObjectSizeLessThan"),
        days=expiration.get("Days"),
        date=_date(expiration.get("Date")),
        markers=expiration.get("ExpiredObjectDeleteMarker") is True,
        # Some servers take a number of versions alone: what is beyond it goes at once.
        noncurrent_days=noncurrent.get("NoncurrentDays", 0) if noncurrent else None,
        newer=noncurrent.get("NewerNoncurrentVersions") or 0,
        abort_days=(rule.get("AbortIncompleteMultipartUpload") or {}).get("DaysAfterInitiation"),
        moves=_moves(rule),
    )


def prefix_of(rule: Mapping[str, Any]) -> str:
    """What the keys start with that the rule is about."""
    outer = rule.get("Filter") or {}
    inner = outer.get("And") or outer
    return str(inner.get("Prefix") or rule.get("Prefix") or "")


def _tags(where: Mapping[str, Any]) -> dict[str, str]:
    tags = [*where.get("Tags", []), *([where["Tag"]] if "Tag" in where else [])]
    return {str(tag["Key"]): str(tag["Value"]) for tag in tags}


def _moves(rule: Mapping[str, Any]) -> tuple[Move, ...]:
    current = [*rule.get("Transitions", []), *([rule["Transition"]] if "Transition" in rule else [])]
    old = rule.get("NoncurrentVersionTransitions", [])
    return (
        *(Move(str(one.get("StorageClass")), one.get("Days"), _date(one.get("Date"))) for one in current),
        *(
            Move(
                str(one.get("StorageClass")),
                one.get("NoncurrentDays"),
                noncurrent=True,
                newer=one.get("NewerNoncurrentVersions") or 0,
            )
            for one in old
        ),
    )


def _date(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return LONG_AGO
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
