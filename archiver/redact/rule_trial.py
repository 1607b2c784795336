"""What the rules say of one text: what they find, and what they looked at in vain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from archiver.redact import rules
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.negatives import is_filler
from archiver.redact.ruleset import Chosen, Rule
from archiver.redact.scrub import Scrubber

_AROUND: Final = 512
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A secret by its place, in bytes from the beginning."""

    start: int
    end: int
    rule: str
    kind: str


@dataclass(frozen=True, slots=True)
class Vain:
    """A trigger that led to nothing: where it ends, whose it is, and why as far as that is cheaply known."""

    end: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Trial:
    """All that was found, in order; and up to 200 triggers in vain, one for each rule and place."""

    found: tuple[Found, ...]
    vain: tuple[Vain, ...]


def trial(data: bytes, chosen: Chosen, *, explain: bool = False) -> Trial:
    """Look at a text with the rules chosen; raises `RedactionUnavailableError`."""
    made = rules.load(chosen)
    finder = Finder(made)
    scrubber = Scrubber(finder, ExactMatcher(()), Ledger(bytes(32)))
    found = []
    for edit in scrubber.text_edits(data):
        rule = scrubber.rule_of(edit)
        kind = made.rules[made.index(rule)].kind if rule in made else rule
        found.append(Found(edit.start, edit.end, rule, kind))
    vain = tuple(_vain(finder, data, found)) if explain else ()
    return Trial(tuple(found), vain)


def _vain(finder: Finder, data: bytes, found: list[Found]) -> Iterator[Vain]:
    made = finder.rules
    seen: set[tuple[str, int]] = set()
    for end, number in sorted(set(finder.hits(data))):
        if number >= len(made.expressions) or any(one.start < end <= one.end for one in found):
            continue
        if made.confirms[number](data, end):
            continue
        owner = made.owners[number]
        rule = made.rules[owner] if owner >= 0 else None
        name = rule.id if rule else "names and words"
        place = (name, end // 16)
        if place not in seen and len(seen) < _MOST:
            seen.add(place)
            yield Vain(end, name, _why(rule, data[max(0, end - _AROUND) : end + _AROUND]))


def _why(rule: Rule | None, window: bytes) -> str:
    if rule is None:
        return "a name or word that may introduce a secret, but no value after it that looks like one"
    if rule.pattern is not None:
        text = window.decode("utf-8", "replace")
        if rule.pattern.find.search(text) is None:
            return "the expression does not match there"
        return "the expression matches, but keywords, entropy or an allowlist say no"
    for form in rule.forms:
        match = re.search(form.pattern(), window)
        if match is not None and is_filler(match[0]):
            return "it looks made up, as in documentation"
        if match is not None:
            return "it has the form, but is part of something longer"
    if rule.forms:
        return "it begins like the form and goes on otherwise"
    return "the text around it fits, but the value does not look like a secret"
