"""The rules that the classes need in a bucket, and how they join those that are there.

    archiver-success      what is tagged so expires after its days; in a bucket with versions, old ones too
    archiver-uploads      unfinished uploads are aborted
    archiver-markers      markers that hide nothing any more are removed (in a bucket with versions)

Days come from `archiver.retention`, as those of `terraform/` do. No rule is for `hold`, and none that deletes
objects is without a class: so what is on hold, and what has no tag, never goes, whatever version it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from archiver.lifecycle.parse import prefix_of, rule_of
from archiver.model.record import RetentionClass
from archiver.retention import ABORT_DAYS, DAYS, NONCURRENT_DAYS

EXPIRING: Final = tuple(word for word, days in DAYS.items() if days is not None)
_NAMES: Final = (*EXPIRING, "uploads", "markers")

RawRule = dict[str, Any]
"""A rule as boto3 gives and takes it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a store needs: where it lies, and how long what is in it is kept."""

    prefix: str
    """What the keys of the store start with; empty, or ending in a slash."""
    versioned: bool
    """Whether the bucket keeps versions, or may hold some from before that was suspended."""
    tag: str
    """The key of the tag that has the class."""
    days: Mapping[RetentionClass, int | None]
    """By class, as `archiver.retention.DAYS`, or longer."""


def rules(wanted: Wanted, *, shared: bool = False) -> list[RawRule]:
    """The rules, in a fixed order; `shared` where their plain names are those of another store's."""
    found = [_of_class(word, wanted) for word in EXPIRING]
    everything = {"Prefix": wanted.prefix}
    found.append(
        _rule("uploads", everything, {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": ABORT_DAYS}})
    )
    if wanted.versioned:
        found.append(_rule("markers", everything, {"Expiration": {"ExpiredObjectDeleteMarker": True}}))
    if shared:
        for rule in found:
            rule["ID"] += f"-{short_hash(wanted.prefix)}"
    return found


def _of_class(word: RetentionClass, wanted: Wanted) -> RawRule:
    tag = {"Key": wanted.tag, "Value": word}
    where = {"And": {"Prefix": wanted.prefix, "Tags": [tag]}} if wanted.prefix else {"Tag": tag}
    does: dict[str, Any] = {"Expiration": {"Days": wanted.days[word]}}
    if wanted.versioned:
        does["NoncurrentVersionExpiration"] = {"NoncurrentDays": NONCURRENT_DAYS[word]}
    return _rule(word, where, does)


def _rule(word: str, where: dict[str, Any], does: dict[str, Any]) -> RawRule:
    return {"ID": f"archiver-{word}", "Status": "Enabled", "Filter": where, **does}


def short_hash(prefix: str) -> str:
    """Tells the rules of stores apart that share a bucket."""
    return hashlib.sha256(prefix.encode()).hexdigest()[:8]


def is_own(rule: Mapping[str, Any], prefix: str) -> bool:
    """Whether a rule of the bucket is one of this store's: by its name, and by its prefix.

    A plain name with another prefix is that of another store; one with the hash of the own prefix is not.
    """
    name = str(rule.get("ID") or "")
    plain = {f"archiver-{word}" for word in _NAMES}
    if name in {f"{one}-{short_hash(prefix)}" for one in plain}:
        return True
    return name in plain and prefix_of(rule) == prefix


def ours(present: Iterable[RawRule], wanted: Wanted) -> list[RawRule]:
    """The rules that this store needs beside those that are there, under names that nobody else uses."""
    plain = {rule["ID"] for rule in rules(wanted)}
    shared = any(rule.get("ID") in plain and not is_own(rule, wanted.prefix) for rule in present)
    return rules(wanted, shared=shared)


def merge(present: Sequence[RawRule], wanted: Wanted) -> list[RawRule]:
    """All rules that the bucket is to have: those of others as they are and where they are, then the own.

    But for those in the old form: S3 refuses rules of both forms together, so they get a filter that says
    the same.
    """
    others = [_with_filter(rule) for rule in present if not is_own(rule, wanted.prefix)]
    return [*others, *ours(present, wanted)]


def _with_filter(rule: RawRule) -> RawRule:
    if "Prefix" not in rule or rule.get("Filter"):
        return rule
    rest = {key: value for key, value in rule.items() if key != "Prefix"}
    return {**rest, "Filter": {"Prefix": rule["Prefix"]}}


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rules say the same, however a server writes them down."""
    alike = rule_of(one, "") == rule_of(other, "")
    return alike and one.get("ID") == other.get("ID") and one.get("Status") == other.get("Status")


@dataclass(frozen=True, slots=True)
class Drift:
    """A rule that is not as it should be."""

    name: str
    kind: str
    """`missing`, `changed`, `disabled`, or `superfluous` (an own name that is not needed)."""
    text: str


def drift(present: Sequence[RawRule], wanted: Wanted) -> list[Drift]:
    """How the own rules that are there differ from those that should be."""
    should = {rule["ID"]: rule for rule in ours(present, wanted)}
    have = {str(rule.get("ID")): rule for rule in present if is_own(rule, wanted.prefix)}
    found = [
        Drift(name, *_difference(have.get(name), rule))
        for name, rule in should.items()
        if name not in have or not same(have[name], rule)
    ]
    extra = [name for name in have if name not in should]
    return [*found, *(Drift(name, "superfluous", f"{name} is not needed") for name in extra)]


def _difference(have: Mapping[str, Any] | None, should: Mapping[str, Any]) -> tuple[str, str]:
    name = should["ID"]
    if have is None:
        return "missing", f"{name} is missing"
    if have.get("Status") != "Enabled":
        return "disabled", f"{name} is disabled"
    now, then = rule_of(have, ""), rule_of(should, "")
    fields = (
        ("prefix", "prefix"), ("tags", "tags"), ("days", "days"), ("date", "date"), ("markers", "markers"),
        ("greater", "size from"), ("less", "size up to"), ("noncurrent_days", "days of old versions"),
        ("newer", "old versions left"), ("abort_days", "days of uploads"), ("moves", "moves"),
    )  # fmt: skip
    differing = [
        f"{text} {_shown(getattr(now, word))}, not {_shown(getattr(then, word))}"
        for word, text in fields
        if getattr(now, word) != getattr(then, word)
    ]
    return "changed", f"{name} has {'; '.join(differing)}"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={word}" for key, word in sorted(value.items())) or "none"
    return "none" if value in (None, "", ()) else str(value)
