"""The tables of our own rule files, turned into triggers and confirmers; rules/README.md explains them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from archiver.redact import confirm, patterns, shapes
from archiver.redact.assigned import JUDGES
from archiver.redact.checksums import CHECKSUMS
from archiver.redact.engine import Expression
from archiver.redact.forms import Form, FormError, compiled
from archiver.redact.near import REACH
from archiver.redact.patterns import Allow, Pattern, PatternError
from archiver.redact.ruleset import DEFAULT, OWN, Rule, RuleError, RuleSet

_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CODED: Final[dict[str, Callable[[bytes, int], shapes.Places]]] = {
    "pem": shapes.pem,
    "manifest": shapes.manifest,
    "cookie": shapes.cookie,
}
_HEAD = frozenset({"id", "kind", "about", "source", "match", "reject"})
_FORMAT = _HEAD | {"forms", "boundary", "near", "named", "beside", "reach", "checksum"}
_CONTEXT = _HEAD | {"trigger", "pattern", "reach", "code", "judge"}
_PATTERN = _HEAD | {"pattern", "keywords", "entropy", "group", "allow"}

COST_PATTERN: Final = 2
"""Low: a text with many vain triggers of one rule is honest more often than an attack."""
COST_CONTEXT: Final = 8
_COST_FORM, _COST_CODED = 1, 20


@dataclass(frozen=True, slots=True)
class Source:
    """A text with rules: the name of its file, and the pack they belong to."""

    name: str
    text: str
    pack: str = DEFAULT


Take = Callable[[RuleSet, Mapping[str, Any], Source], None]
"""Takes up one table; raises `RuleError`."""


def kinds() -> tuple[tuple[str, Take], ...]:
    """The tables of a rule file, and what takes one up."""
    return ("rule", _format), ("context", _context), ("pattern", _pattern)


def rule(table: Mapping[str, Any], source: Source, fields: frozenset[str], **more: Any) -> Rule:
    """What every table says of its rule; raises `RuleError` naming the field."""
    unknown = set(table) - fields
    if unknown:
        name = table.get("id", "?")
        raise RuleError(f"rule {name} has the unknown field {min(unknown)!r}", min(unknown))
    for name in ("id", "kind"):
        if not isinstance(table.get(name), str):
            raise RuleError(f"{name!r} is missing or no text", name)
        if _WORD.fullmatch(table[name]) is None:
            raise RuleError(f"{name} {table[name]!r} is not lower-case words joined by hyphens", name)
    for name in ("about", "source"):
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise RuleError(f"rule {table['id']} has no {name}", name)
    return Rule(
        table["id"],
        table["kind"],
        table["about"],
        table["source"],
        match=texts(table, "match"),
        reject=texts(table, "reject"),
        pack=source.pack,
        origin=source.name,
        **more,
    )


def texts(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field that is a list of texts."""
    value = table.get(name)
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
        raise RuleError(f"{name} is no list of texts", name)
    return tuple(value)


def _whole(table: Mapping[str, Any], name: str, default: int) -> int:
    value = table.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100_000:
        raise RuleError(f"{name} is no whole number", name)
    return value


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise RuleError(f"{name!r} is missing or no text", name)
    return value


def _forms(table: Mapping[str, Any], name: str) -> tuple[Form, ...]:
    try:
        return tuple(map(Form.parse, texts(table, name)))
    except FormError as error:
        raise RuleError(str(error), name) from error


def _format(made: RuleSet, table: Mapping[str, Any], source: Source) -> None:
    boundary = table.get("boundary", "word")
    one = rule(
        table,
        source,
        _FORMAT,
        forms=_forms(table, "forms"),
        beside=_forms(table, "beside"),
        near=texts(table, "near"),
        named=texts(table, "named"),
        specific=source.pack in (DEFAULT, OWN),
        boundary=boundary,
    )
    if not one.forms and not one.beside:
        raise RuleError(f"rule {one.id} has no forms", "id")
    if bool(one.beside) != bool(one.named or one.near):
        raise RuleError(f"rule {one.id} needs both `beside` and one of `near` and `named`, or neither", "id")
    if boundary not in confirm.BEFORE:
        raise RuleError(f"rule {one.id} has the unknown boundary {boundary!r}", "boundary")
    if table.get("checksum") not in {None, *CHECKSUMS}:
        raise RuleError(f"rule {one.id} has the unknown checksum {table['checksum']!r}", "checksum")
    try:
        triggers = [form.trigger() for form in one.forms]
    except FormError as error:
        raise RuleError(f"rule {one.id}: {error}", "forms") from error
    index = made.add(one)
    proof = CHECKSUMS[table["checksum"]] if "checksum" in table else None
    for form, (trigger, widths) in zip(one.forms, triggers, strict=True):
        confirmer = confirm.form(index, form.pattern(), boundary, widths, proof)
        made.trigger(Expression(trigger), confirmer, _COST_FORM, index)
    if one.beside:
        _beside(made, one, index, _whole(table, "reach", REACH))


def _beside(made: RuleSet, one: Rule, index: int, reach: int) -> None:
    """Forms that a word has to introduce: on the same line, or as the name of a field."""
    pattern = b"|".join(form.pattern() for form in one.beside)
    made.assigned.add(index, [re.sub("[^a-z0-9]", "", word) for word in one.near + one.named], pattern)
    if one.near:
        telling = all(form.is_telling() for form in one.beside)
        made.near.add(index, one.near, pattern, one.boundary, reach, telling=telling)


def _context(made: RuleSet, table: Mapping[str, Any], source: Source) -> None:
    one = rule(table, source, _CONTEXT)
    trigger = _text(table, "trigger").encode()
    if "code" in table:
        if table["code"] not in _CODED:
            raise RuleError(f"there is no code {table['code']!r}", "code")
        index = made.add(one)
        confirmer = confirm.shaped(index, _CODED[table["code"]])
    else:
        if table.get("judge") not in JUDGES:
            raise RuleError(f"there is no judge {table.get('judge')!r}", "judge")
        pattern, reach = _text(table, "pattern").encode(), _whole(table, "reach", 64)
        index = made.add(one)
        if not made.known:
            _try_context(one.id, trigger, pattern)
        confirmer = confirm.context(index, trigger, pattern, reach, JUDGES[table["judge"]])
    cost = _COST_CODED if "code" in table else COST_CONTEXT
    made.trigger(Expression(trigger, caseless=True), confirmer, cost, index)


def _try_context(rule_id: str, trigger: bytes, pattern: bytes) -> None:
    """Raises `RuleError` for expressions that would fail when they are first needed."""
    for name, text, flags in (("trigger", trigger, confirm.LEAD), ("pattern", pattern, 0)):
        try:
            groups = compiled(text, flags).groupindex
        except re.error as error:
            raise RuleError(f"rule {rule_id}: {error}", name) from error
        if name == "pattern" and "secret" not in groups:
            raise RuleError(f"rule {rule_id}: the pattern has no group `secret`", name)


def _pattern(made: RuleSet, table: Mapping[str, Any], source: Source) -> None:
    keywords = texts(table, "keywords")
    entropy = table.get("entropy", 0.0)
    if not isinstance(entropy, int | float) or isinstance(entropy, bool):
        raise RuleError("entropy is no number", "entropy")
    allowed = texts(table, "allow")
    try:
        allow = (Allow(tuple(patterns.compiled(text)[1] for text in allowed)),) if allowed else ()
    except PatternError as error:
        raise RuleError(f"rule {table.get('id', '?')}: {error}", "allow") from error
    try:
        pattern = patterns.pattern(
            _text(table, "pattern"),
            group=table.get("group", 0),
            keywords=keywords,
            least=float(entropy),
            allow=allow,
        )
    except PatternError as error:
        raise RuleError(f"rule {table.get('id', '?')}: {error}", "pattern") from error
    add_pattern(made, rule(table, source, _PATTERN, specific=source.pack == OWN, pattern=pattern), pattern)


def add_pattern(made: RuleSet, one: Rule, pattern: Pattern) -> None:
    """Take up a rule that is one expression."""
    index = made.add(one)
    confirmer = patterns.confirm(index, pattern)
    for expression in pattern.triggers():
        made.trigger(expression, confirmer, COST_PATTERN, index)
