"""Rules are data: this module reads them from TOML and turns each into triggers and confirmers.

A file holds `[[rule]]` tables (the format of a credential), `[[context]]` tables (text around any secret),
`[[pattern]]` tables (one expression) and at most one `[names]` table; rules/README.md explains the fields. A
file of the user may also have the form of gitleaks.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archiver.errors import RedactionUnavailableError
from archiver.redact import confirm, engine, gitleaks, kept_rules, rule_tables
from archiver.redact.assigned import Assigned
from archiver.redact.engine import Expression
from archiver.redact.names import Names
from archiver.redact.rule_reading import (
    SETTINGS,
    Problem,
    Reading,
    locate,
    read_gitleaks,
    read_own,
    read_pattern,
)
from archiver.redact.rule_tables import Source
from archiver.redact.ruleset import DEFAULT, OWN, PACKS, Chosen, OwnPattern, Rule, RuleError, RuleSet

_Documents = list[tuple[Source, Mapping[str, Any]]]

_GENERIC = Rule(
    "assigned-secret",
    "secret",
    "a value assigned to a name that says secret",
    "https://12factor.net/config",
)
_ENCODED = Rule(
    "encoded-secret",
    "secret",
    "a random token that is all of a text in hex or base64",
    "https://www.rfc-editor.org/rfc/rfc4648",
)
_PACKAGE: Final = "of the package"
_REMEDY: Final = (
    "mend or remove the file, then save again; `archiver rules check FILE` says all that is wrong"
)


def load(chosen: Chosen = Chosen()) -> RuleSet:  # noqa: B008 - immutable
    """The rules of the package and those chosen; raises `RedactionUnavailableError`.

    One's own files are read each time, those of the package once in a process; so is made what is made of the
    same texts.
    """
    return parse(sources(chosen), chosen.disabled, chosen.patterns)


def sources(chosen: Chosen) -> tuple[Source, ...]:
    """The texts of all rule files; raises `RedactionUnavailableError` for one that cannot be read."""
    unknown = set(chosen.packs) - set(PACKS)
    if unknown:
        raise RedactionUnavailableError(
            f"there is no pack {min(unknown)!r} of rules", remedy=f"the packs are {', '.join(PACKS)}"
        )
    name = "archiver.redact"
    try:
        found = [*_of_package(), *map(_of_pack, sorted(set(chosen.packs)))]
        for path in chosen.files:
            name = str(path)
            found.append(Source(name, _regular(path).read_text("utf-8"), OWN))
    except (OSError, UnicodeDecodeError) as error:
        raise RedactionUnavailableError(
            f"rule file {name} cannot be read: {error}", remedy="mend or remove the file, then save again"
        ) from error
    return tuple(found)


@cache
def _of_package() -> tuple[Source, ...]:
    folder = resources.files("archiver.redact") / "rules"
    entries = sorted(
        (one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name
    )
    return tuple(Source(one.name, one.read_text("utf-8"), DEFAULT) for one in entries)


@cache
def _of_pack(pack: str) -> Source:
    file = resources.files("archiver.redact") / "packs" / f"{pack}.toml"
    return Source(file.name, file.read_text("utf-8"), pack)


def _regular(path: Path) -> Path:
    """The same path; `OSError` for a pipe, which would hold the save up for ever."""
    if path.exists() and not path.is_file():
        raise OSError("it is no regular file")
    return path


@lru_cache(maxsize=8)
def parse(
    texts: tuple[Source, ...], disabled: tuple[str, ...] = (), patterns: tuple[OwnPattern, ...] = ()
) -> RuleSet:
    """Rules from texts; raises `RedactionUnavailableError` naming file, line and rule."""
    version = _version(texts, disabled, patterns)
    held = kept_rules.load(version, len(texts))
    documents, problems = _documents(texts) if held is None else (list(zip(texts, held, strict=True)), [])
    reading = _read(documents, problems, disabled, patterns, known=held is not None)
    if reading.problems:
        problem = reading.problems[0]
        line = f"line {problem.line}: " if problem.line else ""
        raise _broken(problem.name, line + problem.message)
    _stamp(reading.made, texts, version, patterns)
    if held is None:
        kept_rules.store(version, [document for _, document in documents])
    return reading.made


def read(
    texts: Iterable[Source], disabled: tuple[str, ...] = (), patterns: tuple[OwnPattern, ...] = ()
) -> Reading:
    """Everything that can be read, and what is wrong with the rest; raises only for files without rules."""
    return _read(*_documents(texts), disabled, patterns)


def _read(
    documents: _Documents,
    problems: list[Problem],
    disabled: tuple[str, ...],
    patterns: tuple[OwnPattern, ...],
    *,
    known: bool = False,
) -> Reading:
    """`known` says that all of this was read before without a fault."""
    reading = Reading(_begin(documents, disabled), problems)
    made = reading.made
    made.known = known
    for source, document in documents:
        if source.pack == OWN and gitleaks.is_one(document):
            read_gitleaks(reading, source, document)
        else:
            read_own(reading, source, document, frozenset(disabled) if source.pack != OWN else frozenset())
    for one in patterns:
        read_pattern(reading, one)
    for expression, confirmer in made.near.triggers():
        made.trigger(expression, confirmer, rule_tables.COST_CONTEXT)
    if not any(rule.specific for rule in made.rules):
        raise _broken(_PACKAGE, "it holds no rules")
    left = set(disabled) - set(made.disabled)
    if left:
        raise RedactionUnavailableError(
            f"redaction.disabled_rules names {min(left)!r}, and no built-in rule in force has that id",
            remedy="`archiver rules list` names them",
        )
    return reading


def _version(texts: tuple[Source, ...], disabled: tuple[str, ...], patterns: tuple[OwnPattern, ...]) -> str:
    """A digest of all that says which rules are in force."""
    digest = hashlib.sha256()
    for source in texts:
        digest.update(f"{source.pack} {len(source.text)} {source.text}".encode())
    digest.update(repr((sorted(disabled), patterns)).encode())
    return digest.hexdigest()


def _stamp(made: RuleSet, texts: tuple[Source, ...], version: str, patterns: tuple[OwnPattern, ...]) -> None:
    """What the receipt says of the rules in force."""
    files = [
        (Path(source.name).name, hashlib.sha256(source.text.encode()).hexdigest())
        for source in texts
        if source.pack != DEFAULT  # those of the package are told by the version alone
    ]
    if patterns:
        files.append((SETTINGS, hashlib.sha256(repr(patterns).encode()).hexdigest()))
    made.version = version[:16]
    made.files = tuple(files)


def _broken(name: str, why: str) -> RedactionUnavailableError:
    return RedactionUnavailableError(f"rule file {name} cannot be used: {why}", remedy=_REMEDY)


def _documents(texts: Iterable[Source]) -> tuple[_Documents, list[Problem]]:
    documents: _Documents = []
    problems: list[Problem] = []
    for source in texts:
        try:
            documents.append((source, tomllib.loads(source.text)))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            at = re.search(r"line (\d+)", str(error))
            problems.append(Problem(source.name, int(at[1]) if at else 0, f"it is not TOML: {error}"))
    return documents, problems


def _begin(documents: _Documents, disabled: tuple[str, ...]) -> RuleSet:
    """A set that holds the rule for names that say secret."""
    tables = [(source, document["names"]) for source, document in documents if "names" in document]
    if len(tables) != 1:
        raise _broken(
            tables[-1][0].name if tables else _PACKAGE, f"there are {len(tables)} [names] tables, not one"
        )
    off = _GENERIC.id in disabled
    try:
        made = RuleSet(Assigned(Names(**tables[0][1]), None if off else 0))
    except (TypeError, AttributeError) as error:
        raise _broken(tables[0][0].name, str(error)) from error
    made.add(_GENERIC)
    made.add(_ENCODED)
    made.disabled = (_GENERIC.id,) if off else ()
    trigger = Expression(made.assigned.names.trigger(), caseless=True)
    made.trigger(trigger, confirm.assignment(made.assigned), rule_tables.COST_CONTEXT)
    return made


def blamed(made: RuleSet) -> RedactionUnavailableError | None:
    """The error that names the first rule of the user whose trigger the engine does not take, if any."""
    if engine.refused(Expression(b"any")) is not None:
        return None
    for expression, owner in zip(made.expressions, made.owners, strict=True):
        rule = made.rules[owner] if owner >= 0 else None
        if rule is not None and rule.pack == OWN and (why := engine.refused(expression)):
            return _broken(rule.origin, f"rule {rule.id}: the engine does not take it: {why}")
    return None


__all__ = [
    "DEFAULT",
    "OWN",
    "PACKS",
    "Chosen",
    "OwnPattern",
    "Problem",
    "Reading",
    "Rule",
    "RuleError",
    "RuleSet",
    "Source",
    "blamed",
    "load",
    "locate",
    "parse",
    "read",
    "sources",
]
