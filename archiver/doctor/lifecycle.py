"""Do the lifecycle rules of a bucket let each class live as long as it should, and nothing die by mistake?

What S3 does: of two rules that expire one object the shorter wins; no rule can say "no tag"; in a bucket with
versions an expiration only puts a marker in front, and the old version goes by a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, get_args

from archiver import layout
from archiver.doctor.check import Check, failure, ok, warning
from archiver.errors import RefusedError
from archiver.model.record import RetentionClass

CLASSES: Final = get_args(RetentionClass)
EXPIRING: Final = tuple(word for word in CLASSES if word != "hold")
RECORD_DAYS: Final = 400
NAME: Final = "lifecycle"

_REMEDY = "docs/S3.md has rules that fit; a put replaces all rules of the bucket, so read, merge and write"
_KEPT = (layout.STORE, layout.RECORDS, layout.BUNDLES, layout.EFFECTS, layout.NOTES, layout.AUDIT)
_SLOW = {"GLACIER", "DEEP_ARCHIVE"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One enabled rule; what it does not do is None."""

    name: str
    prefix: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    sized: bool = False
    """It is about objects of some sizes only."""
    days: int | None = None
    """Until current objects expire; 0 stands for a fixed date."""
    noncurrent_days: int | None = None
    abort_days: int | None = None
    storage: tuple[str, ...] = ()

    def covers(self, prefix: str) -> bool:
        """It applies to everything below the prefix."""
        return prefix.startswith(self.prefix)

    def meets(self, prefix: str) -> bool:
        """It applies to something below the prefix."""
        return prefix.startswith(self.prefix) or self.prefix.startswith(prefix)


def parse(rules: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The enabled rules of a lifecycle configuration, as boto3 gives it."""
    return [
        _rule(rule, f"rule {rule.get('ID') or number}")
        for number, rule in enumerate(rules, start=1)
        if rule.get("Status") == "Enabled"
    ]


def _rule(rule: Mapping[str, Any], name: str) -> Rule:
    outer = rule.get("Filter") or {}
    inner = outer.get("And") or outer
    tags = [*inner.get("Tags", []), *([inner["Tag"]] if "Tag" in inner else [])]
    expiration = rule.get("Expiration") or {}
    days = expiration.get("Days", 0 if "Date" in expiration else None)
    return Rule(
        name=name,
        prefix=str(inner.get("Prefix") or rule.get("Prefix") or ""),
        tags={str(tag["Key"]): str(tag["Value"]) for tag in tags},
        sized="ObjectSizeGreaterThan" in inner or "ObjectSizeLessThan" in inner,
        days=days,
        noncurrent_days=(rule.get("NoncurrentVersionExpiration") or {}).get("NoncurrentDays"),
        abort_days=(rule.get("AbortIncompleteMultipartUpload") or {}).get("DaysAfterInitiation"),
        storage=tuple(str(step.get("StorageClass")) for step in rule.get("Transitions", [])),
    )


def judge(rules: Iterable[Rule], prefix: str, tag: str, *, versioned: bool) -> list[Check]:
    """What is to be said of the rules, for a store below `prefix` with the class of an object in `tag`."""
    here = [rule for rule in rules if rule.meets(prefix)]
    found = [
        *_indiscriminate(here, prefix),
        *_classes(here, tag),
        *_overlaps(here, tag),
        *_missing(here, prefix, tag),
        *_uploads(here, prefix),
        *_versions(here, prefix, versioned),
        *_storage(here),
    ]
    if found:
        return found
    return [ok(NAME, f"{len(here)} rules: each class expires by one of them alone, and uploads are aborted")]


def _expiring(rules: Iterable[Rule], tag: str) -> list[tuple[Rule, str, int]]:
    """Rules that expire a class, with the class and the days. An object has no other tag than its class."""
    return [
        (rule, rule.tags[tag], rule.days)
        for rule in rules
        if rule.days is not None and set(rule.tags) == {tag}
    ]


def _indiscriminate(rules: Iterable[Rule], prefix: str) -> Iterator[Check]:
    kept = [prefix + part for part in _KEPT]
    for rule in rules:
        if rule.days is not None and not rule.tags and any(map(rule.meets, kept)):
            yield failure(
                NAME,
                f"{rule.name} expires objects {_after(rule.days)}, whatever their class, so also those on "
                "hold and those without a class",
                f"let it name a class (tag) or another prefix; {_REMEDY}",
                RefusedError,
            )


def _classes(rules: Iterable[Rule], tag: str) -> Iterator[Check]:
    for rule in rules:
        if tag in rule.tags and (rule.tags[tag] not in CLASSES or len(rule.tags) > 1):
            which = ", ".join(f"{key}={value}" for key, value in sorted(rule.tags.items()))
            yield warning(
                NAME, f"{rule.name} matches nothing: no object here is tagged {which}", _one_of_classes(tag)
            )
    for rule, word, days in _expiring(rules, tag):
        if word == "hold":
            yield failure(
                NAME,
                f"{rule.name} expires objects on hold {_after(days)}; a hold has no end",
                f"remove it; {_REMEDY}",
                RefusedError,
            )
        elif word == "record" and days < RECORD_DAYS:
            yield warning(
                NAME,
                f"{rule.name} expires records {_after(days)}, so the history of a run cannot be verified for "
                f"the {RECORD_DAYS} days that it should",
                f"raise it to {RECORD_DAYS} days or more",
            )


def _one_of_classes(tag: str) -> str:
    return f"the tag {tag} stands alone and is one of {', '.join(CLASSES)}"


def _overlaps(rules: Iterable[Rule], tag: str) -> Iterator[Check]:
    for (one, word, days), (other, other_word, other_days) in combinations(_expiring(rules, tag), 2):
        if word == other_word and days != other_days and (one.meets(other.prefix)):
            yield warning(
                NAME,
                f"{one.name} ({_after(days)}) and {other.name} ({_after(other_days)}) both expire {word} "
                f"objects; the shorter wins, so they go {_after(min(days, other_days))}",
                "leave one rule for each class",
            )


def _missing(rules: Iterable[Rule], prefix: str, tag: str) -> Iterator[Check]:
    whole = {word for rule, word, _ in _expiring(rules, tag) if rule.covers(prefix) and not rule.sized}
    if any(rule.days is not None and not rule.tags and rule.covers(prefix) for rule in rules):
        return
    without = [word for word in EXPIRING if word not in whole]
    if without:
        which = (
            "nothing ever expires" if len(without) == len(EXPIRING) else f"{', '.join(without)} never expire"
        )
        yield warning(NAME, f"{which}: no rule names the class", _REMEDY)


def _uploads(rules: Iterable[Rule], prefix: str) -> Iterator[Check]:
    if not any(rule.abort_days is not None and rule.covers(prefix) for rule in rules):
        yield warning(
            NAME,
            "no rule aborts unfinished uploads: what a killed writer had sent stays, unseen and paid for",
            "add AbortIncompleteMultipartUpload after 7 days, without a tag",
        )


def _versions(rules: Iterable[Rule], prefix: str, versioned: bool) -> Iterator[Check]:
    if versioned and not any(rule.noncurrent_days is not None and rule.covers(prefix) for rule in rules):
        yield warning(
            NAME,
            "the bucket keeps versions and no rule expires old ones, so nothing that expires is ever gone",
            "add NoncurrentVersionExpiration, without a tag",
        )


def _storage(rules: Iterable[Rule]) -> Iterator[Check]:
    for rule in rules:
        slow = sorted(_SLOW.intersection(rule.storage))
        if slow:
            yield warning(
                NAME,
                f"{rule.name} moves objects to {slow[0]}, from where reading takes hours",
                "use GLACIER_IR, or keep what an incident may need where it can be read",
            )


def _after(days: int) -> str:
    return f"after {days} day{'' if days == 1 else 's'}" if days else "on a fixed date"
