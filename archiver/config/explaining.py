"""What is wrong with a value of the configuration, in the words of the file and not of the program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PlainSerializer, ValidationError

from archiver.config.settings import PatternSettings, Settings, leaves
from archiver.config.sweeping import SourceSettings
from archiver.config.values import duration_text, size_text
from archiver.errors import ConfigError

DOCUMENTATION = "CONFIGURATION.md in the documentation explains every key"

_MOST_SHOWN = 80
"""Characters of a wrong value."""
_LONG_WORD = re.compile(r"(?<![\w+/=.~-])(?![/.~])[\w+/=.~-]{16,}")
"""But for paths."""
_MIXED = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d")
_ABSENT = object()
_TABLES: dict[str, type[BaseModel]] = {"sweep.sources": SourceSettings, "redaction.patterns": PatternSettings}
"""Keys whose values are lists of tables."""
_KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "finite": "a whole number",
    "path": "a path",
    "string": "text",
    "time": "a length of time, such as 7d, 36h, 90m or 10s",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
    "mapping": "a table",
}
"""What a value must be, by the first word of pydantic's type of error."""
_BOUNDS = {
    "greater_than": ("gt", "more than", "longer than"),
    "greater_than_equal": ("ge", "at least", "at least"),
    "less_than": ("lt", "less than", "shorter than"),
    "less_than_equal": ("le", "at most", "at most"),
}


def variable(key: tuple[str, ...]) -> str:
    """The environment variable of a key."""
    return "ARCHIVER_" + "__".join(key).upper()


def explained(
    error: ValidationError, path: Path | None, from_file: Mapping[str, Any], flags: Mapping[str, Any]
) -> ConfigError:
    """The first problem, with the place its value came from."""
    first = error.errors()[0]
    key, rest = _split(first["loc"])
    dotted = ".".join(key)
    where, variables = _origin(key, path, from_file, flags)
    if first["type"] == "extra_forbidden":
        if dotted in _TABLES and rest:
            *entry, field = rest
            known = set(_TABLES[dotted].model_fields)
            text = f"{where}: {dotted}{_place(entry)} has no key {_veiled(repr(field))}"
            return ConfigError(text, remedy=like(str(field), known))
        known = {".".join(name) for name, _ in leaves()} if len(key) > 1 else set(Settings.model_fields)
        text = f"{where}: there is no key {_veiled(repr(dotted))}"
        return ConfigError(text, remedy=like(dotted, known))
    text = f"{where}: {_veiled(f'{dotted}{_place(rest)}: {_wrong(first, key)}')}"
    return ConfigError(text, remedy=_set_singly(key) if variables else DOCUMENTATION)


def _veiled(text: str) -> str:
    """The text without long words that may be a credential in the wrong place; no rules are loaded yet."""
    return _LONG_WORD.sub(lambda found: "…" if _MIXED.search(found[0]) else found[0], text)


def _split(loc: tuple[int | str, ...]) -> tuple[tuple[str, ...], list[int | str]]:
    """The key, or as much of it as there is, and where in its value the problem lies."""
    known = [name for name, _ in leaves()]
    for end in range(len(loc), 0, -1):
        if loc[:end] in known:
            return next(name for name in known if name == loc[:end]), list(loc[end:])
    return tuple(map(str, loc)), []


def _place(rest: list[int | str]) -> str:
    """`[2].kind`: entries of a list are counted from 1."""
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in rest)


def _origin(
    key: tuple[str, ...], path: Path | None, from_file: Mapping[str, Any], flags: Mapping[str, Any]
) -> tuple[str, bool]:
    """Where the value stands, and whether that is one variable for a whole section."""
    if _at(flags, key) is not _ABSENT:
        return "flags", False
    for name, section in ((variable(key), len(key) == 1), (variable(key[:1]), True)):
        if name in os.environ:
            return f"environment variable {name}", section
    return (str(path) if _at(from_file, key) is not _ABSENT else "defaults"), False


def _at(values: Any, key: tuple[str, ...]) -> Any:
    for part in key:
        if not isinstance(values, Mapping) or part not in values:
            return _ABSENT
        values = values[part]
    return values


def _set_singly(key: tuple[str, ...]) -> str:
    example = next((name for name, _ in leaves() if name[0] == key[0]), None)
    return f"set its keys one by one, such as {variable(example)}" if example else DOCUMENTATION


def _wrong(problem: Any, key: tuple[str, ...]) -> str:
    """What the value must be. Never pydantic's words: they name types of Python."""
    kind, context = problem["type"], problem.get("ctx", {})
    value = problem["input"]
    if kind == "value_error":
        return str(problem["msg"]).removeprefix("Value error, ")
    if kind == "missing":
        return "is missing, and must be given"
    if kind == "literal_error":
        return f"must be {context['expected']}, not {_shown(value)}"
    if kind in _BOUNDS:
        return _bound(kind, key)
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "string_pattern_mismatch":
        return f"{_shown(value)} does not fit the pattern {context['pattern']}"
    must = _KINDS.get(kind.split("_")[0])
    return f"must be {must}, not {_shown(value)}" if must else f"cannot be {_shown(value)}"


def _bound(kind: str, key: tuple[str, ...]) -> str:
    """The bound as the file writes it; pydantic tells that of a length of time in the words of Python."""
    name, of_numbers, of_times = _BOUNDS[kind]
    field = dict(leaves()).get(key)
    about = () if field is None else field.metadata
    limits = [getattr(one, name) for one in about if hasattr(one, name)]
    if not limits:
        return "is out of bounds"
    limit = max(limits) if name in ("gt", "ge") else min(limits)
    if isinstance(limit, timedelta):
        return f"must be {of_times} {duration_text(limit)}"
    sized = any(isinstance(one, PlainSerializer) and one.func is size_text for one in about)
    return f"must be {of_numbers} {size_text(limit) if sized else limit}"


def _shown(value: Any) -> str:
    """A wrong value as TOML would have it, cut; of a list or table only that it is one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "SECRET-KEY" in value.upper():
            return "a secret key"
        return repr(value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…")
    if isinstance(value, int | float):
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        return text if len(text) <= _MOST_SHOWN else "a number of that size"
    if value is None or isinstance(value, Mapping):
        return "null" if value is None else "a table"
    return "a list" if isinstance(value, list | tuple) else "a date or time"


def like(name: str, known: set[str]) -> str:
    """The key that was probably meant; else, of a section that exists, those it has."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}? {DOCUMENTATION}"
    section, dot, _ = name.rpartition(".")
    beside = sorted(one.removeprefix(f"{section}.") for one in known if dot and one.startswith(f"{section}."))
    return f"[{section}] has {', '.join(beside)}; {DOCUMENTATION}" if beside else DOCUMENTATION
