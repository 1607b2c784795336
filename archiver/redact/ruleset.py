"""What rules are once they are read: their descriptions, their triggers, and what confirms them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from archiver.redact.assigned import Assigned
from archiver.redact.confirm import Confirm
from archiver.redact.engine import Expression
from archiver.redact.forms import Form
from archiver.redact.near import Near
from archiver.redact.patterns import Pattern

PACKS: Final = ("emails", "hosts", "identifiers")
"""Rules for what is no credential, which are used only where they are asked for."""
OWN: Final = "own"
"""The pack of rules that come from files and settings of the user."""
DEFAULT: Final = "default"


class RuleError(ValueError):
    """A rule that cannot be used; `field` is the one to blame, where it is one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class OwnPattern:
    """A rule of the settings: `pattern` in RE2's syntax, or else `form`."""

    id: str
    kind: str = ""
    pattern: str | None = None
    form: str | None = None
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rules are used beside those of the package, and which of the package are not."""

    files: tuple[Path, ...] = ()
    packs: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    patterns: tuple[OwnPattern, ...] = ()


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
    boundary: str = "word"
    pattern: Pattern | None = None
    pack: str = DEFAULT
    origin: str = ""
    """The file that the rule stands in."""

    @property
    def formats(self) -> int:
        """How many forms the rule knows; text around a secret and an expression count as one."""
        return len(self.forms) + len(self.beside) or 1


@dataclass(slots=True)
class RuleSet:
    """All rules in use; what expression `n` triggers is confirmed by `confirms[n]`."""

    assigned: Assigned
    rules: list[Rule] = field(default_factory=list)
    expressions: list[Expression] = field(default_factory=list)
    confirms: list[Confirm] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """The rule that each expression was made for; -1 where it serves several."""
    near: Near = field(default_factory=Near)
    version: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of each file of rules in force beside those of the package: packs and one's own."""
    disabled: tuple[str, ...] = ()
    """Rules of the package that are left out."""
    known: bool = False
    """True where the very same texts were read before without a fault: their expressions do compile, so each
    can wait for the first place that needs it."""
    _places: dict[str, int] = field(default_factory=dict)

    def index(self, rule_id: str) -> int:
        """The place of a rule; raises `KeyError`."""
        return self._places[rule_id]

    def __contains__(self, rule_id: str) -> bool:
        return rule_id in self._places

    def add(self, rule: Rule) -> int:
        """Take up one more rule and give its index; raises `RuleError` when its id is taken."""
        if rule.id in self._places:
            other = self.rules[self._places[rule.id]].origin
            raise RuleError(
                f"a second rule {rule.id}" + (f" (the first is in {other})" if other else ""), "id"
            )
        self.rules.append(rule)
        self._places[rule.id] = len(self.rules) - 1
        return len(self.rules) - 1

    def trigger(self, expression: Expression, confirmer: Confirm, cost: int, rule: int = -1) -> None:
        """One more trigger; `cost` is what a confirmation takes, in microseconds or so."""
        self.expressions.append(expression)
        self.costs.append(cost)
        self.confirms.append(confirmer)
        self.owners.append(rule)
