"""Rules are data: this module reads them from TOML and turns each into triggers and confirmers.

A file holds `[[rule]]` tables (the format of a credential), `[[context]]` tables (text around any secret) and
at most one `[names]` table. The fields are explained in rules/README.md.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archiver.errors import RedactionUnavailableError
from archiver.redact import confirm, shapes
from archiver.redact.assigned import JUDGES, Assigned
from archiver.redact.checksums import CHECKSUMS
from archiver.redact.confirm import Confirm
from archiver.redact.engine import Expression
from archiver.redact.forms import Form
from archiver.redact.names import Names
from archiver.redact.near import REACH, Near

_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CODED: Final[dict[str, Callable[[bytes, int], shapes.Places]]] = {
    "pem": shapes.pem,
    "manifest": shapes.manifest,
    "cookie": shapes.cookie,
}
_HEAD = frozenset({"id", "kind", "about", "source", "match", "reject"})
_FORMAT = _HEAD | {"forms", "boundary", "near", "named", "beside", "reach", "checksum"}
_CONTEXT = _HEAD | {"trigger", "pattern", "reach", "code", "judge"}

_COST_FORM, _COST_CONTEXT, _COST_CODED = 2, 8, 20


class RuleError(ValueError):
    """A rule that cannot be used."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: what it is called, where its format is stated, and its examples."""

    id: str
    kind: str
    about: str
    source: str
    forms: tuple[Form, ...] = ()
    beside: tuple[Form, ...] = ()
    """Forms that count only near a word of `near`, or as values of names with a word of `named`."""
    near: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    specific: bool = False
    """True for the format of one provider, whose name says more than the context it stands in."""
    match: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()


@dataclass(slots=True)
class RuleSet:
    """All rules in use; what expression `n` triggers is confirmed by `confirms[n]`."""

    assigned: Assigned
    rules: list[Rule] = field(default_factory=list)
    expressions: list[Expression] = field(default_factory=list)
    confirms: list[Confirm] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    near: Near = field(default_factory=Near)
    version: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of each file of rules in force."""

    def index(self, rule_id: str) -> int:
        """The place of a rule; raises `KeyError`."""
        for index, rule in enumerate(self.rules):
            if rule.id == rule_id:
                return index
        raise KeyError(rule_id)

    def add(self, rule: Rule) -> int:
        """Take up one more rule and give its index; raises `RuleError` when its id is taken."""
        if any(rule.id == other.id for other in self.rules):
            raise RuleError(f"a second rule {rule.id}")
        self.rules.append(rule)
        return len(self.rules) - 1

    def trigger(self, expression: Expression, confirmer: Confirm, cost: int) -> None:
        """One more trigger; `cost` is what a confirmation takes, in microseconds or so."""
        self.expressions.append(expression)
        self.costs.append(cost)
        self.confirms.append(confirmer)


def load(extra: Iterable[Path] = ()) -> RuleSet:
    """The package's rules and those of the files named; raises `RedactionUnavailableError`."""
    try:
        folder = resources.files("archiver.redact") / "rules"
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        texts = [(entry.name, entry.read_text("utf-8")) for entry in entries if entry.name.endswith(".toml")]
        texts += [(str(path), path.read_text("utf-8")) for path in extra]
    except (OSError, UnicodeDecodeError) as error:
        raise RedactionUnavailableError(
            f"a rule file cannot be read: {error}", remedy="mend or remove the file, then save again"
        ) from error
    return parse(texts)


def parse(texts: Iterable[tuple[str, str]]) -> RuleSet:
    """Rules from (file name, TOML text) pairs; raises `RedactionUnavailableError` naming file and rule."""
    digest = hashlib.sha256()
    documents: list[tuple[str, Mapping[str, Any]]] = []
    files: list[tuple[str, str]] = []
    for name, text in texts:
        files.append((Path(name).name, hashlib.sha256(text.encode()).hexdigest()))
        digest.update(f"{len(text)} {text}".encode())
        try:
            documents.append((name, tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise _broken(name, str(error)) from error
    made = _names(documents)
    for name, document in documents:
        try:
            _read(made, document)
        except KeyError as error:
            raise _broken(name, f"{error} is missing or unknown") from error
        except (ValueError, re.error, TypeError, AttributeError) as error:
            raise _broken(name, str(error)) from error
    for expression, confirmer in made.near.triggers():
        made.trigger(expression, confirmer, _COST_CONTEXT)
    if not any(rule.specific for rule in made.rules):
        raise _broken("of the package", "it holds no rules")
    made.version = digest.hexdigest()[:16]
    made.files = tuple(files)
    return made


def _broken(name: str, why: str) -> RedactionUnavailableError:
    return RedactionUnavailableError(
        f"rule file {name} cannot be used: {why}", remedy="mend or remove the file, then save again"
    )


def _names(documents: list[tuple[str, Mapping[str, Any]]]) -> RuleSet:
    tables = [(name, document["names"]) for name, document in documents if "names" in document]
    if len(tables) != 1:
        raise _broken("of the package", f"there are {len(tables)} [names] tables, not one")
    try:
        made = RuleSet(Assigned(Names(**tables[0][1]), 0))
    except (TypeError, AttributeError) as error:
        raise _broken(tables[0][0], str(error)) from error
    made.add(
        Rule(
            "assigned-secret",
            "secret",
            "a value assigned to a name that says secret",
            "https://12factor.net/config",
        )
    )
    made.trigger(
        Expression(made.assigned.names.trigger(), caseless=True),
        confirm.assignment(made.assigned),
        _COST_CONTEXT,
    )
    made.add(
        Rule(
            "encoded-secret",
            "secret",
            "a random token that is all of a text in hex or base64",
            "https://www.rfc-editor.org/rfc/rfc4648",
        )
    )
    return made


def _read(made: RuleSet, document: Mapping[str, Any]) -> None:
    unknown = set(document) - {"rule", "context", "names"}
    if unknown:
        raise RuleError(f"unknown table {min(unknown)!r}")
    for table in document.get("rule", ()):
        _format(made, table)
    for table in document.get("context", ()):
        _context(made, table)


def _rule(table: Mapping[str, Any], fields: frozenset[str], *, specific: bool) -> Rule:
    unknown = set(table) - fields
    if unknown:
        raise RuleError(f"rule {table.get('id', '?')} has the unknown field {min(unknown)!r}")
    for name in ("id", "kind"):
        if _WORD.fullmatch(table[name]) is None:
            raise RuleError(f"{name} {table[name]!r} is not lower-case words joined by hyphens")
    for name in ("about", "source"):
        if not str(table.get(name, "")).strip():
            raise RuleError(f"rule {table['id']} has no {name}")
    return Rule(
        table["id"],
        table["kind"],
        table["about"],
        table["source"],
        tuple(map(Form.parse, table.get("forms", ()))),
        tuple(map(Form.parse, table.get("beside", ()))),
        tuple(table.get("near", ())),
        tuple(table.get("named", ())),
        specific,
        tuple(table.get("match", ())),
        tuple(table.get("reject", ())),
    )


def _format(made: RuleSet, table: Mapping[str, Any]) -> None:
    rule = _rule(table, _FORMAT, specific=True)
    if not rule.forms and not rule.beside:
        raise RuleError(f"rule {rule.id} has no forms")
    if bool(rule.beside) != bool(rule.named or rule.near):
        raise RuleError(f"rule {rule.id} needs both `beside` and one of `near` and `named`, or neither")
    boundary = table.get("boundary", "word")
    if boundary not in confirm.BEFORE:
        raise RuleError(f"rule {rule.id} has the unknown boundary {boundary!r}")
    index = made.add(rule)
    proof = CHECKSUMS[table["checksum"]] if "checksum" in table else None
    for form in rule.forms:
        trigger, widths = form.trigger()
        confirmer = confirm.form(index, form.pattern(), boundary, widths, proof)
        made.trigger(Expression(trigger), confirmer, _COST_FORM)
    if rule.beside:
        _beside(made, rule, index, boundary, int(table.get("reach", REACH)))


def _beside(made: RuleSet, rule: Rule, index: int, boundary: str, reach: int) -> None:
    """Forms that a word has to introduce: on the same line, or as the name of a field."""
    pattern = b"|".join(form.pattern() for form in rule.beside)
    made.assigned.add(index, [re.sub("[^a-z0-9]", "", word) for word in rule.near + rule.named], pattern)
    if rule.near:
        telling = all(form.is_telling() for form in rule.beside)
        made.near.add(index, rule.near, pattern, boundary, reach, telling=telling)


def _context(made: RuleSet, table: Mapping[str, Any]) -> None:
    index = made.add(_rule(table, _CONTEXT, specific=False))
    if "code" in table:
        confirmer = confirm.shaped(index, _CODED[table["code"]])
    else:
        accept = JUDGES[table["judge"]]
        pattern, reach = table["pattern"].encode(), int(table.get("reach", 64))
        confirmer = confirm.context(index, table["trigger"].encode(), pattern, reach, accept)
    cost = _COST_CODED if "code" in table else _COST_CONTEXT
    made.trigger(Expression(table["trigger"].encode(), caseless=True), confirmer, cost)
