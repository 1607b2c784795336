"""Rule files in the form of gitleaks (https://github.com/gitleaks/gitleaks#configuration).

Each `[[rules]]` table becomes a rule of ours: `regex`, `secretGroup`, `entropy`, `keywords` and the
allowlists mean what they mean there. The text that a transcript shows has no path and no commit, so
conditions on those never hold. The rules of the package always stay: `useDefault` and `disabledRules` change
nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from archiver.redact import patterns, rule_tables
from archiver.redact.patterns import Allow, PatternError
from archiver.redact.rule_tables import Source
from archiver.redact.ruleset import Rule, RuleError, RuleSet

_TOP: Final = frozenset(
    {"title", "description", "extend", "rules", "allowlist", "allowlists", "minversion", "version"}
)
_RULE: Final = frozenset(
    {
        "id", "description", "regex", "path", "secretgroup", "entropy", "keywords", "tags", "allowlist",
        "allowlists", "report", "skipreport",
    }
)  # fmt: skip
_ALLOW: Final = frozenset(
    {
        "id", "description", "condition", "commits", "paths", "regextarget", "regexes", "stopwords",
        "targetrules",
    }
)  # fmt: skip
_EXTEND: Final = frozenset({"usedefault", "disabledrules"})
_SLUG = re.compile(r"[^a-z0-9]+")
_SOURCE: Final = "https://github.com/gitleaks/gitleaks#configuration"


def is_one(document: Mapping[str, Any]) -> bool:
    """True for a file in this form: its tables are called otherwise than ours."""
    keys = {key.lower() for key in document}
    return bool(keys & {"rules", "extend", "allowlist", "allowlists", "title"}) and not keys & {
        "rule",
        "context",
        "pattern",
        "names",
    }


class File:
    """One file: what its allowlists say of every rule in it."""

    def __init__(self, document: Mapping[str, Any], source: Source) -> None:
        """Raises `RuleError` for what is wrong outside its rules."""
        self._source = source
        self.notes: list[str] = []
        self._seen: set[str] = set()
        top = _lower(document)
        _known(top, _TOP, "the file")
        extend = _lower(_table(top, "extend"))
        if {"path", "url"} & set(extend):
            raise RuleError("extend.path: name that file in redaction.rule_files itself", "extend")
        _known(extend, _EXTEND, "extend")
        self._extends = bool(extend.get("usedefault"))
        if extend.get("disabledrules"):
            self.notes.append("disabledRules: built-in rules are left out by redaction.disabled_rules alone")
        self._shared = [
            (frozenset(_texts(table, "targetrules")), _allow(table)) for table in _allowlists(top, "the file")
        ]

    def take(self, made: RuleSet, given: Mapping[str, Any]) -> str | None:
        """Take up one rule; what is said of it that does not count here, or None. Raises `RuleError`."""
        table = _lower(given)
        name = table.get("id")
        if not isinstance(name, str) or not name.strip():
            raise RuleError("'id' is missing", "id")
        if name in self._seen:
            raise RuleError(f"a second rule {name}", "id")
        self._seen.add(name)
        if "required" in table:
            raise RuleError(f"rule {name}: rules that require others are not known here", "required")
        _known(table, _RULE, f"rule {name}")
        own = [_allow(entry) for entry in _allowlists(table, f"rule {name}")]
        if not table.get("regex"):
            return self._without_expression(name, table)
        shared = [allow for targets, allow in self._shared if not targets or name in targets]
        try:
            pattern = patterns.pattern(
                _text(table, "regex"),
                group=_number(table, "secretgroup", int),
                keywords=_texts(table, "keywords"),
                least=float(_number(table, "entropy", int | float)),
                allow=tuple(allow for allow in (*own, *shared) if allow is not None),
            )
        except PatternError as error:
            raise RuleError(f"rule {name}: {error}", "regex") from error
        slug = _SLUG.sub("-", name.lower()).strip("-") or "rule"
        about = str(table.get("description") or "").strip() or f"rule {name} of {self._source.name}"
        identity = f"gitleaks-{slug}" if slug in made else slug
        rule = Rule(
            identity, slug, about, _SOURCE, specific=True, pattern=pattern,
            pack=self._source.pack, origin=self._source.name,
        )  # fmt: skip
        rule_tables.add_pattern(made, rule, pattern)
        return None

    def _without_expression(self, name: str, table: Mapping[str, Any]) -> str:
        if table.get("path"):
            return f"rule {name} looks at paths alone: it finds nothing in texts"
        if not self._extends:
            raise RuleError(f"rule {name} has no regex", "id")
        return f"rule {name} changes a rule of gitleaks' own, which is not here"


def _allow(given: Mapping[str, Any]) -> Allow | None:
    """One allowlist; None where it can never hold."""
    table = _lower(given)
    _known(table, _ALLOW, "an allowlist")
    target = str(table.get("regextarget") or "secret").lower()
    if target not in ("secret", "match", "line"):
        raise RuleError(f"regexTarget {target!r} is none of secret, match, line", "regexTarget")
    condition = str(table.get("condition") or "OR").upper()
    if condition not in ("OR", "||", "AND", "&&"):
        raise RuleError(f"condition {condition!r} is neither OR nor AND", "condition")
    every = condition in ("AND", "&&")
    found = []
    for text in _texts(table, "regexes"):
        try:
            found.append(patterns.compiled(text)[1])
        except PatternError as error:
            raise RuleError(f"an allowlist: {error}", "regexes") from error
    stopwords = tuple(word.lower() for word in _texts(table, "stopwords"))
    if every and (_texts(table, "paths") or _texts(table, "commits")):
        return None
    return Allow(tuple(found), target, stopwords, every)  # type: ignore[arg-type]  # checked above


def _allowlists(table: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    """`[allowlist]`, as older files have it, and `[[allowlists]]`."""
    listed = table.get("allowlists", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise RuleError(f"{where}: allowlists is no list of tables", "allowlists")
    single = _table(table, "allowlist")
    return [_lower(one) for one in ([single] if single else []) + listed]


def _lower(table: Mapping[str, Any]) -> dict[str, Any]:
    """Names of fields are the same in any case."""
    return {key.lower(): value for key, value in table.items()}


def _known(table: Mapping[str, Any], fields: frozenset[str], where: str) -> None:
    unknown = set(table) - fields
    if unknown:
        raise RuleError(f"{where} has the unknown field {min(unknown)!r}", min(unknown))


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise RuleError(f"{name} is no table", name)
    return value


def _texts(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return rule_tables.texts(table, name)


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table[name]
    if not isinstance(value, str):
        raise RuleError(f"{name} is no text", name)
    return value


def _number(table: Mapping[str, Any], name: str, kind: Any) -> Any:
    value = table.get(name, 0)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RuleError(f"{name} is no number", name)
    return value
