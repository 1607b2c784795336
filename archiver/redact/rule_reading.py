"""A pass over rule files: takes up what can be used, and notes what is wrong with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from archiver.redact import gitleaks, rule_tables
from archiver.redact.rule_tables import Source
from archiver.redact.ruleset import OWN, OwnPattern, RuleError, RuleSet

SETTINGS: Final = "redaction.patterns"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a rule of a file; `line` counts from 1, 0 where it is not known."""

    name: str
    line: int
    message: str


@dataclass(slots=True)
class Reading:
    """A pass over rule files: what came of it, and what is wrong with them."""

    made: RuleSet
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """What a file asks for and does not get, though it can be used."""


def read_own(reading: Reading, source: Source, document: Mapping[str, Any], disabled: frozenset[str]) -> None:
    """A file in our form."""
    kinds = rule_tables.kinds()
    for table in sorted(set(document) - {"names", *(name for name, _ in kinds)}):
        line = locate(source.text, table, 0)
        reading.problems.append(Problem(source.name, line, f"unknown table {table!r}"))
    for kind, take in kinds:
        _each(reading, source, document, kind, disabled, partial(_taken, take, reading.made, source))


def _taken(take: rule_tables.Take, made: RuleSet, source: Source, table: Mapping[str, Any]) -> None:
    take(made, table, source)


def _each(
    reading: Reading,
    source: Source,
    document: Mapping[str, Any],
    kind: str,
    disabled: frozenset[str],
    take: Callable[[Mapping[str, Any]], None],
) -> None:
    """Every table of one kind; what is wrong with one is noted with its line."""
    tables = document.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        reading.problems.append(
            Problem(source.name, locate(source.text, kind, 0), f"{kind} is no list of tables")
        )
        return
    for number, table in enumerate(tables):
        if table.get("id") in disabled:
            reading.made.disabled += (table["id"],)
            continue
        try:
            take(table)
        except (RuleError, ValueError, TypeError, re.error) as error:
            line = locate(source.text, kind, number, getattr(error, "field", ""))
            reading.problems.append(Problem(source.name, line, str(error)))


def read_gitleaks(reading: Reading, source: Source, document: Mapping[str, Any]) -> None:
    """A file in the form of gitleaks."""
    try:
        file = gitleaks.File(document, source)
    except RuleError as error:
        reading.problems.append(Problem(source.name, locate(source.text, error.field, 0), str(error)))
        return

    def take(table: Mapping[str, Any]) -> None:
        note = file.take(reading.made, table)
        if note:
            number = document["rules"].index(table)
            reading.notes.append(Problem(source.name, locate(source.text, "rules", number), note))

    reading.notes.extend(Problem(source.name, locate(source.text, "extend", 0), note) for note in file.notes)
    _each(reading, source, document, "rules", frozenset(), take)


def read_pattern(reading: Reading, one: OwnPattern) -> None:
    """A pattern of the settings."""
    head = {
        "id": one.id,
        "kind": one.kind or one.id,
        "about": "a pattern of the settings",
        "source": SETTINGS,
    }
    what = (
        {"forms": [one.form]} if one.form is not None else {"pattern": one.pattern, "keywords": one.keywords}
    )
    take = dict(rule_tables.kinds())["pattern" if one.form is None else "rule"]
    try:
        take(reading.made, head | what, Source(SETTINGS, "", OWN))
    except RuleError as error:
        reading.problems.append(Problem(SETTINGS, 0, str(error)))


def locate(text: str, kind: str, number: int, name: str = "") -> int:
    """The line of a field in the table `number` (from 0) of a kind, else of its header; 0 if not found."""
    header = re.compile(rf"\s*\[\[?\s*[\"']?{re.escape(kind)}[\"']?\s*\]\]?")
    wanted = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", re.IGNORECASE)
    seen, found = -1, 0
    lines = text.splitlines()
    for line, content in enumerate(lines, start=1):
        if header.match(content):
            seen += 1
            if seen > number:
                break
            found = line if seen == number else found
        elif seen == number and name and wanted.match(content):
            return line
    assigned = re.compile(rf"\s*{re.escape(kind)}\s*=")
    return found or next((at for at, content in enumerate(lines, start=1) if assigned.match(content)), 0)
