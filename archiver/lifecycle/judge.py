"""Do the rules of a bucket let each class live as long as it should, and nothing die by mistake?

What S3 does: of two rules that expire one object the shorter wins; no rule can say "no tag"; in a bucket with
versions an expiration only puts a marker in front, and the old version goes by a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, get_args

from archiver import layout
from archiver.lifecycle.parse import Rule
from archiver.lifecycle.rules import EXPIRING, Wanted
from archiver.model.record import RetentionClass

CLASSES: Final[tuple[RetentionClass, ...]] = get_args(RetentionClass)

_REMEDY = "`archiver lifecycle apply` puts rules that fit beside those of others, which it leaves as they are"
_KEPT = (layout.STORE, layout.RECORDS, layout.BUNDLES, layout.EFFECTS, layout.NOTES, layout.AUDIT)
_SLOW = {"GLACIER", "DEEP_ARCHIVE"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said of rules; `rules` are the names of those that it is about."""

    verdict: Literal["warning", "failure"]
    text: str
    remedy: str
    rules: tuple[str, ...] = ()


def judge(rules: Iterable[Rule], wanted: Wanted) -> list[Finding]:
    """What is to be said of the rules, for that store; nothing where they fit.

    A failure deletes, sooner or later, what is promised to be there longer.
    """
    here = [rule for rule in rules if rule.meets(wanted.prefix)]
    return [
        *_indiscriminate(here, wanted),
        *_classes(here, wanted),
        *_overlaps(here, wanted.tag),
        *_missing(here, wanted),
        *_uploads(here, wanted.prefix),
        *_versions(here, wanted),
        *_storage(here),
    ]


def uncovered(rules: Iterable[Rule], wanted: Wanted) -> list[RetentionClass]:
    """The classes of which not all objects of the store would ever expire, though they should."""
    here = list(rules)
    if any(rule.expires and not rule.tags and _whole(rule, wanted.prefix) for rule in here):
        return []
    found = {word for rule, word in _expiring(here, wanted.tag) if _whole(rule, wanted.prefix)}
    return [word for word in EXPIRING if word not in found]


def _whole(rule: Rule, prefix: str) -> bool:
    return rule.covers(prefix) and not rule.sized


def _expiring(rules: Iterable[Rule], tag: str) -> list[tuple[Rule, str]]:
    """Rules that expire a class, with the class. An object has no other tag than its class."""
    return [(rule, rule.tags[tag]) for rule in rules if rule.expires and set(rule.tags) == {tag}]


def _indiscriminate(rules: Iterable[Rule], wanted: Wanted) -> Iterator[Finding]:
    kept = [wanted.prefix + part for part in _KEPT]
    for rule in rules:
        if rule.tags or not any(map(rule.meets, kept)):
            continue
        if rule.expires:
            yield Finding(
                "failure",
                f"{rule.name} expires objects {_after(rule)}, whatever their class, so also those on "
                "hold and those without a class",
                f"let it name a class (tag) or another prefix; {_REMEDY}",
                (rule.name,),
            )
        if wanted.versioned and rule.noncurrent_days is not None:
            yield Finding(
                "failure",
                f"{rule.name} removes old versions after {_days(rule.noncurrent_days)}, whatever their "
                "class, so also those on hold",
                f"remove it, or let it name another prefix: old versions go by the rule of their class; "
                f"{_REMEDY}",
                (rule.name,),
            )


def _classes(rules: Iterable[Rule], wanted: Wanted) -> Iterator[Finding]:
    tag = wanted.tag
    for rule in rules:
        if tag in rule.tags and (rule.tags[tag] not in CLASSES or len(rule.tags) > 1):
            which = ", ".join(f"{key}={value}" for key, value in sorted(rule.tags.items()))
            yield Finding(
                "warning",
                f"{rule.name} matches nothing: no object here is tagged {which}",
                f"the tag {tag} stands alone and is one of {', '.join(CLASSES)}",
                (rule.name,),
            )
        if rule.tags.get(tag) == "hold" and rule.noncurrent_days is not None:
            yield _of_hold(rule, f"removes old versions on hold after {_days(rule.noncurrent_days)}")
    for rule, word in _expiring(rules, tag):
        if word == "hold":
            yield _of_hold(rule, f"expires objects on hold {_after(rule)}")
        elif word in CLASSES:
            yield from _too_short(rule, word, wanted.days)


def _of_hold(rule: Rule, does: str) -> Finding:
    return Finding("failure", f"{rule.name} {does}; a hold has no end", f"remove it; {_REMEDY}", (rule.name,))


def _too_short(
    rule: Rule, word: RetentionClass, days: Mapping[RetentionClass, int | None]
) -> Iterator[Finding]:
    least = days[word]
    if least is None or (rule.date is None and rule.days is not None and rule.days >= least):
        return
    what = "records" if word == "record" else f"{word} objects"
    so = "the history of a run cannot be verified" if word == "record" else "what it removes early is damage"
    yield Finding(
        "failure",
        f"{rule.name} expires {what} {_after(rule)}, and they are promised for {least} days: {so}",
        f"raise it to {_days(least)} or more; {_REMEDY}",
        (rule.name,),
    )


def _overlaps(rules: Iterable[Rule], tag: str) -> Iterator[Finding]:
    for (one, word), (other, other_word) in combinations(_expiring(rules, tag), 2):
        if word == other_word and _after(one) != _after(other) and one.meets(other.prefix):
            shorter = min((one, other), key=lambda rule: -1 if rule.days is None else rule.days)
            yield Finding(
                "warning",
                f"{one.name} ({_after(one)}) and {other.name} ({_after(other)}) both expire {word} "
                f"objects; the shorter wins, so they go {_after(shorter)}",
                "leave one rule for each class",
                (one.name, other.name),
            )


def _missing(rules: Iterable[Rule], wanted: Wanted) -> Iterator[Finding]:
    without = uncovered(rules, wanted)
    if without:
        which = (
            "nothing ever expires" if len(without) == len(EXPIRING) else f"{', '.join(without)} never expire"
        )
        yield Finding("warning", f"{which}: no rule names the class", _REMEDY)


def _uploads(rules: Iterable[Rule], prefix: str) -> Iterator[Finding]:
    if not any(rule.abort_days is not None and rule.covers(prefix) for rule in rules):
        yield Finding(
            "warning",
            "no rule aborts unfinished uploads: what a killed writer had sent stays, unseen and paid for",
            _REMEDY,
        )


def _versions(rules: Iterable[Rule], wanted: Wanted) -> Iterator[Finding]:
    if not wanted.versioned:
        return
    removing = [rule for rule in rules if rule.noncurrent_days is not None and _whole(rule, wanted.prefix)]
    if any(not rule.tags for rule in removing):
        return
    found = {rule.tags[wanted.tag] for rule in removing if set(rule.tags) == {wanted.tag}}
    without = [word for word in EXPIRING if word not in found]
    if len(without) == len(EXPIRING):
        yield Finding(
            "warning",
            "the bucket keeps versions and no rule expires old ones, so nothing that expires is ever gone",
            _REMEDY,
        )
    elif without:
        yield Finding(
            "warning",
            f"no rule removes old versions of {', '.join(without)}, so what expires of them is never gone",
            _REMEDY,
        )


def _storage(rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        slow = sorted(_SLOW.intersection(move.storage for move in rule.moves))
        if slow:
            yield Finding(
                "warning",
                f"{rule.name} moves objects to {slow[0]}, from where reading takes hours",
                "use GLACIER_IR, or keep what an incident may need where it can be read",
                (rule.name,),
            )


def _after(rule: Rule) -> str:
    return "on a fixed date" if rule.days is None or rule.date is not None else f"after {_days(rule.days)}"


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"
