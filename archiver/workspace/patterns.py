"""Patterns in gitignore syntax, and what they say of one path whose folders are known already.

The library `pathspec` reads a pattern and makes a regular expression of it. That expression also fits what
lies below a folder that the pattern fits, and steps back over all ways to fit; here a pattern is asked about
each folder before anything in it, so it has to fit the path itself, and patterns come from folders that
anybody may write to, so no path may take long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

MAX_PATTERN: Final = 1024
"""Characters of a pattern."""
_SPECIAL: Final = re.compile(r"[*?\[\\/]")
_CLASS: Final = re.compile(r"\[:[^\]]*:\]")
_DOUBLED: Final = re.compile(r"--|&&|~~|\|\|")
_SET: Final = re.compile(r"\\.|\[\^/\][*+]?|\[(?P<no>\^?)(?P<of>\]?[^\]]*)\]", re.DOTALL)
_STAR: Final = re.compile(
    r"\[\^/\]\*"
    r"(?P<rest>(?:\\.|\[\^/\](?![*+])|\(\?!/\)|\[(?!\^/\])\^?\]?[^\]]*\]|[^\\\[/(])*)"
    r"(?=\[\^/\]\*)",
    re.DOTALL,
)
_FIRSTS: Final = 256
"""First characters of names for which the rules are kept apart."""
_ANYWHERE: Final = "^(?:.+/)?"
_BETWEEN: Final = "(?:/.+)?"
"""What the library makes of `**` at the beginning and between two steps."""
_FOLDER: Final = "(?P<ps_d>/)"


class PatternError(ValueError):
    """Why a line is no pattern that can be used."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: `ignores` what it fits, or takes it back (`!`).

    `step`: it is about a name anywhere, which is `name`, or begins with `first` if that is not empty.
    """

    regex: re.Pattern[str] | None
    name: str
    first: str
    ignores: bool
    folders: bool
    step: bool

    def fits(self, text: str) -> bool:
        """Whether it fits the path or name itself; that of a folder ends in `/`."""
        found = self.regex.search(text) if self.regex is not None else None
        if found is None:
            return False
        if not found.re.groups:
            return found.end() < len(text)
        return found.lastgroup is None or found.end() == len(text)


def rule(line: str) -> Rule | None:
    """The rule of one line, None for a comment or an empty one; `PatternError` for what cannot be used."""
    if len(line) > MAX_PATTERN:
        raise PatternError(f"it has {len(line)} characters, more than {MAX_PATTERN}")
    if _CLASS.search(line):
        raise PatternError("classes of characters such as [:alpha:] are not known here")
    if line.rstrip().endswith("/**/"):  # folders at any depth in it; the library takes the folder itself
        line = f"{line.rstrip()}*/"
    try:
        text, ignores = GitIgnoreSpecPattern.pattern_to_regex(line)
        if text is None or ignores is None:
            return None
        regex = re.compile(_bounded(text), re.DOTALL)
    except PatternError:
        raise
    except (ValueError, re.error, RecursionError) as error:
        raise PatternError("it is not well formed") from error
    body = line.rstrip().removeprefix("!")
    folders, plain = body.endswith("/"), body.removesuffix("/")
    if not _SPECIAL.search(plain):
        return Rule(None, plain, "", ignores, folders, step=True)
    first = "" if _SPECIAL.match(plain) else plain[0]
    return Rule(regex, "", first, ignores, folders, step="/" not in plain)


def _bounded(text: str) -> str:
    """The library's expression without what can take long, or fits more than one step of a path.

    `$` also fits before a line end, which names may have. A set of characters must not take a `/`. A star
    that another one follows takes as little as it can and never steps back: what fits after a longer way fits
    after the shortest. The same holds for `**`, which stands for any number of steps.
    """
    if text == ".":  # every path
        return "^"
    if text == _FOLDER:  # every folder
        return f"^.*{_FOLDER}"
    text = _STAR.sub(r"(?>[^/]*?\g<rest>)", _SET.sub(_set, text.replace("|$)", r"|\Z)")))
    first, *others = text.split(_BETWEEN)
    anywhere = first.startswith(_ANYWHERE)
    first = first.removeprefix(_ANYWHERE)
    if not others:
        return f"^(?:[^/]+/)*{first}" if anywhere else first
    if anywhere:
        first = f"^(?>(?:[^/]+/)*?{first}(?=/))"
    *middle, last = others
    return first + "".join(f"(?>(?:/[^/]+)*?{part}(?=/))" for part in middle) + f"(?:/[^/]+)*{last}"


def _set(found: re.Match[str]) -> str:
    members = found["of"]
    if members is None:
        return found[0]
    if _DOUBLED.search(members):
        raise PatternError("a set of characters names one twice")
    escaped = members.replace("[", r"\[").replace("]", r"\]")
    return f"(?!/)[{found['no']}{escaped}]"


class Patterns:
    """Rules in order: the last one that fits a path decides over it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._names: dict[str, list[tuple[int, Rule]]] = {}
        self._steps: list[tuple[int, Rule]] = []
        self._paths: list[tuple[int, Rule]] = []
        for place, one in enumerate(rules):
            if one.regex is None:
                self._names.setdefault(one.name, []).append((place, one))
            else:
                (self._steps if one.step else self._paths).append((place, one))
        self._steps.reverse()
        self._paths.reverse()
        self._by_first: dict[str, list[tuple[int, Rule]]] = {}

    def verdict(self, path: str, name: str, folder: bool) -> bool | None:
        """True for a path that is to be ignored, False for one that was taken back, None where nothing fits.

        The folders that it lies in must not be ignored themselves.
        """
        best, ignores = -1, None
        for place, one in self._names.get(name, ()):
            if folder or not one.folders:
                best, ignores = place, one.ignores
        steps = self._by_first.get(name[0])
        if steps is None:
            steps = self._beginning_with(name[0])
        if not steps and not self._paths:  # nearly always, and asked of every file
            return ignores
        end = "/" if folder else ""
        for rules, text in ((steps, name + end), (self._paths, path + end)):
            for place, one in rules:
                if place < best:
                    break
                if one.fits(text):
                    best, ignores = place, one.ignores
                    break
        return ignores

    def _beginning_with(self, first: str) -> list[tuple[int, Rule]]:
        """The rules about a name anywhere that may fit one which begins with this character."""
        found = [(place, one) for place, one in self._steps if one.first in ("", first)]
        if len(self._by_first) < _FIRSTS:
            self._by_first[first] = found
        return found


def ways(lines: Sequence[str]) -> list[Rule]:
    """Rules that fit the folders which lead to what these patterns fit.

    Only a pattern that names its way does so: one about a name anywhere would lead everywhere.
    """
    found = []
    for line in lines:
        one = rule(line)
        if one is None or one.step or not one.ignores:
            continue
        steps = line.rstrip().strip("/").split("/")
        for count in range(1, len(steps)):
            way = "/".join(steps[:count])
            leading = rule(f"/{way}/*" if steps[count - 1] == "**" else f"/{way}/")
            if leading is not None:
                found.append(leading)
    return found
