"""What of a folder is left out: by the defaults, its own file, and what the caller says, in this order."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from typing import Final

from archiver.errors import ConfigError
from archiver.workspace.defaults import MARKED, PATTERNS, REPOSITORY
from archiver.workspace.options import CaptureOptions
from archiver.workspace.patterns import PatternError, Patterns, Rule, rule, ways

MAX_OWN_FILE: Final = 1 << 18
"""Bytes of a folder's own file of patterns."""
_MAX_OWN_RULES: Final = 512
"""Each is held against each path, and whoever writes to the folder writes them."""


class Within(Enum):
    """What was decided over a path; of a folder, what lies in it begins with that."""

    TAKEN = auto()
    """As long as no pattern says otherwise."""
    INCLUDED = auto()
    """Asked for by name: no pattern ignores anything in it."""
    WAY = auto()
    """Ignored, and leads to what is asked for."""
    IGNORED = auto()
    HISTORY = auto()
    """The history of a repository."""


class Ignoring:
    """Decides over one path after the other, folders before what lies in them."""

    def __init__(self, options: CaptureOptions, own: Iterable[Rule] = ()) -> None:
        """From what a caller chose and the rules of the folder's own file; `ConfigError` for no pattern."""
        defaults = [default.pattern for default in PATTERNS] if options.defaults else []
        self._patterns = Patterns([*_rules(defaults), *own, *_rules(options.ignore)])
        self._included = Patterns(_rules(options.include)) if options.include else None
        self._ways = Patterns(ways(options.include))
        self._defaults = options.defaults

    def decide(self, path: str, name: str, folder: bool, around: int, within: Within) -> Within:
        """What becomes of a path; `around` is a handle of its folder, `within` the decision over that."""
        if self._included is not None:
            asked = self._included.verdict(path, name, folder)
            if asked or (asked is None and within is Within.INCLUDED):
                return Within.INCLUDED
        left_out = Within.IGNORED
        if within is not Within.WAY:
            verdict = self._patterns.verdict(path, name, folder)
            if verdict is None and folder and self._defaults:
                verdict = name == REPOSITORY or _is_marked(name, around)
                left_out = Within.HISTORY if name == REPOSITORY else left_out
            if not verdict:
                return Within.TAKEN
        if folder and self._ways.verdict(path, name, folder):
            return Within.WAY
        return left_out


def _is_marked(name: str, around: int) -> bool:
    for marked in MARKED:
        if marked.name == name:
            with suppress(OSError):
                os.stat(marked.marker, dir_fd=around)
                return True
    return False


def _rules(lines: Iterable[str]) -> list[Rule]:
    found = []
    for line in lines:
        try:
            one = rule(line)
        except PatternError as error:
            raise ConfigError(
                f"the pattern {line[:100]!r} cannot be used: {error}",
                remedy="write it as in a .gitignore file, each pattern by itself",
            ) from error
        if one is not None:
            found.append(one)
    return found


def own_rules(content: bytes) -> tuple[list[Rule], list[str]]:
    """The rules of a folder's own file, and what is wrong with lines of it that are none."""
    rules: list[Rule] = []
    problems = []
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), 1):
        try:
            one = rule(line)
        except PatternError as error:
            problems.append(f"its line {number} does not count: {error}")
            continue
        if one is not None and len(rules) == _MAX_OWN_RULES:
            problems.append(
                f"its line {number} and those after it do not count: {_MAX_OWN_RULES} came before"
            )
            break
        if one is not None:
            rules.append(one)
    return rules, problems
