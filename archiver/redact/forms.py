"""Formats of credentials as facts: `"ghp_{alnum:36}"` is a trigger, a confirmation and a generator.

A form is text with runs `{class:n}`, `{class:n,m}`, `{class:n,}` and choices `{=a|b|c}`. From one form come
the minimal-length trigger for Vectorscan, the exact `re` pattern, and sample values for tests.
"""

from __future__ import annotations

import functools
import random
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass

_LOWER, _UPPER, _DIGIT = string.ascii_lowercase, string.ascii_uppercase, string.digits

CLASSES: dict[str, tuple[str, str]] = {
    "digit": ("0-9", _DIGIT),
    "hex": ("0-9a-f", _DIGIT + "abcdef"),
    "HEX": ("0-9A-F", _DIGIT + "ABCDEF"),
    "hexi": ("0-9a-fA-F", _DIGIT + "abcdefABCDEF"),
    "lower": ("a-z", _LOWER),
    "upper": ("A-Z", _UPPER),
    "alpha": ("a-zA-Z", _LOWER + _UPPER),
    "alnum": ("a-zA-Z0-9", _LOWER + _UPPER + _DIGIT),
    "lownum": ("a-z0-9", _LOWER + _DIGIT),
    "upnum": ("A-Z0-9", _UPPER + _DIGIT),
    "word": ("a-zA-Z0-9_", _LOWER + _UPPER + _DIGIT + "_"),
    "url": ("a-zA-Z0-9_\\-", _LOWER + _UPPER + _DIGIT + "_-"),
    "urlp": ("a-zA-Z0-9_=\\-", _LOWER + _UPPER + _DIGIT + "_-"),
    "dot": ("a-zA-Z0-9_.\\-", _LOWER + _UPPER + _DIGIT + "_.-"),
    "unres": ("a-zA-Z0-9_.~\\-", _LOWER + _UPPER + _DIGIT + "_.-~"),
    "b64": ("a-zA-Z0-9+/", _LOWER + _UPPER + _DIGIT + "+/"),
    "b64p": ("a-zA-Z0-9+/=", _LOWER + _UPPER + _DIGIT + "+/"),
    "b64any": ("a-zA-Z0-9+/_\\-", _LOWER + _UPPER + _DIGIT + "+/_-"),
    "b32": ("A-Z2-7", _UPPER + "234567"),
    "bech32": ("A-Z0-9", "023456789ACDEFGHJKLMNPQRSTUVWXYZ"),
    "base58": ("1-9A-HJ-NP-Za-km-z", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
}
"""Name of a run of characters: its body as a character class, and the alphabet samples are drawn from."""

_PART = re.compile(r"\{=([^{}]*)\}|\{(\w+)(?::(\d+)(,(\d*))?)?\}")
_UUID = "{hexi:8}-{hexi:4}-{hexi:4}-{hexi:4}-{hexi:12}"
_ENOUGH = 14
_ENOUGH_AFTER_SHORT = 36
_BEFORE = 4
_MOST_WIDTHS = 64
_UNBOUNDED = 4096
_TELLING = 3
_LEAST = 5
"""Characters that a trigger with less fixed text has to ask for."""
_EVEN_MORE = 8


@functools.cache
def compiled(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """The pattern of a rule, compiled when it is first needed: most of thousands never are."""
    return re.compile(pattern, flags)


@functools.cache
def _members(name: str) -> str:
    """All characters of a class."""
    return "".join(re.findall(f"[{CLASSES[name][0]}]", string.printable))


class FormError(ValueError):
    """A form that does not parse."""


@dataclass(frozen=True, slots=True)
class Run:
    """`low` to `high` characters of one class."""

    name: str
    low: int
    high: int

    @property
    def body(self) -> str:
        return CLASSES[self.name][0]


Part = str | tuple[str, ...] | Run


@dataclass(frozen=True, slots=True)
class Form:
    """One parsed form."""

    text: str
    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str) -> Form:
        """Parse a form; raises `FormError`."""
        spread = text.replace("{uuid}", _UUID)
        parts: list[Part] = []
        at = 0
        for match in _PART.finditer(spread):
            _literal(parts, spread[at : match.start()], text)
            at = match.end()
            parts.append(_part(match, text))
        _literal(parts, spread[at:], text)
        if not parts:
            raise FormError("a form is empty")
        return cls(text, tuple(parts))

    def pattern(self) -> bytes:
        """The exact `re` pattern, without boundaries; a run is never given back where that cannot help."""
        out: list[str] = []
        for index, part in enumerate(self.parts):
            if isinstance(part, Run):
                high = "" if part.high == _UNBOUNDED else str(part.high)
                count = f"{{{part.low}}}" if part.low == part.high else f"{{{part.low},{high}}}"
                out.append(f"[{part.body}]{count}{'+' if self._ends_run(index) else ''}")
            elif isinstance(part, tuple):
                out.append("(?:" + "|".join(map(re.escape, part)) + ")")
            else:
                out.append(re.escape(part))
        return "".join(out).encode()

    def _ends_run(self, index: int) -> bool:
        """True when what follows a run cannot begin with a character of the run."""
        run, after = self.parts[index], self.parts[index + 1 : index + 2]
        if not isinstance(run, Run) or run.low == run.high:
            return False
        if not after:
            return True
        following = after[0]
        if isinstance(following, Run):
            return False
        options = following if isinstance(following, tuple) else (following,)
        return not any(option == "" or option[0] in _members(run.name) for option in options)

    def trigger(self) -> tuple[bytes, tuple[int, ...]]:
        """The Vectorscan pattern, and how many bytes before its end the form may begin in decoded text.

        It is the longest literal of the form and a few characters around it, so that the engine has something
        rare to look for; confirmation reads the rest. It matches whatever stands before or after, also where
        JSON writes `/` as `\\/`: a scan of raw JSON text misses nothing that decoded text would show. Raises
        `FormError` for a form with too little fixed text to be looked for.
        """
        anchor = self._anchor()
        # A short literal is common in base64, so more of what follows it is asked for.
        enough = _ENOUGH if self._size(anchor) > 3 else _ENOUGH_AFTER_SHORT
        out, asked = self._before(anchor)
        widths = _sums(map(_widths, self.parts[:anchor]))
        rest = self.parts[anchor:]
        if (even := self._even(anchor)) is not None:
            out.append(even)
            rest, asked = (), _ENOUGH
            widths = _sums([widths, _widths(self.parts[anchor]), set(range(1, _EVEN_MORE + 1))])
        for part in rest:
            if isinstance(part, Run):
                count = min(part.low, enough - min(asked, enough))
                out.append(_trigger_run(part, count))
                asked += count
                widths = _sums([widths, {count}])
                if asked >= enough or part.low != part.high or count < part.low:
                    break
            else:
                options = part if isinstance(part, tuple) else (part,)
                out.append("(?:" + "|".join(map(_trigger_literal, options)) + ")")
                asked += max(map(len, options))
                widths = _sums([widths, _widths(part)])
        self._check_asked(self._size(anchor), asked)
        return "".join(out).encode(), tuple(sorted(widths, reverse=True))

    def _even(self, anchor: int) -> str | None:
        """The trigger of a long literal of one character, which would end all along a run of it.

        So another character is asked for behind it; a few more of the same may stand between them.
        """
        literal, after = self.parts[anchor], self.parts[anchor + 1 : anchor + 2]
        if not isinstance(literal, str) or len(literal) < _ENOUGH or len(set(literal)) > 1 or not after:
            return None
        members = _members(after[0].name) if isinstance(after[0], Run) and after[0].low else ""
        others = members.replace(literal[0], "") + ("\\" if "/" in members else "")
        return f"{_trigger_literal(literal)}[{re.escape(others)}]" if literal[0] in members else None

    def _check_asked(self, fixed: int, asked: int) -> None:
        """Refuse a trigger that would fire all over a text."""
        if not fixed or (fixed < _TELLING and asked < _LEAST):
            raise FormError(
                f"form {self.text!r} has too little fixed text to be looked for: "
                "give the rule `beside` with `near` or `named`"
            )

    def _anchor(self) -> int:
        """Index of the longest literal; the first part where there is none."""
        return max(range(len(self.parts)), key=self._size)

    def _size(self, index: int) -> int:
        part = self.parts[index]
        return 0 if isinstance(part, Run) else _shortest(part)

    def _before(self, anchor: int) -> tuple[list[str], int]:
        """A few characters of the run before the anchor."""
        part = self.parts[anchor - 1] if anchor else None
        if not isinstance(part, Run):
            return [], 0
        count = min(part.low, _BEFORE)
        return [_trigger_run(part, count)], count

    def is_telling(self) -> bool:
        """True when fixed text of at least three letters or digits is part of the form."""
        return any(
            not isinstance(part, Run)
            and min(
                len(re.sub("[^A-Za-z0-9]", "", text)) for text in ((part,) if isinstance(part, str) else part)
            )
            >= _TELLING
            for part in self.parts
        )

    def sample(self, rng: random.Random) -> str:
        """One value of this form."""
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, Run):
                high = part.high if part.high < part.low + 24 else part.low + 8
                alphabet = CLASSES[part.name][1]
                out.append("".join(rng.choices(alphabet, k=rng.randint(part.low, high))))
            else:
                out.append(part if isinstance(part, str) else rng.choice(part))
        return "".join(out)


def _literal(parts: list[Part], text: str, form: str) -> None:
    if "{" in text or "}" in text:
        raise FormError(f"form {form!r} has a brace that belongs to no run")
    if text:
        parts.append(text)


def _part(match: re.Match[str], form: str) -> Part:
    choices, name, low, more, high = match.groups()
    if choices is not None:
        return tuple(choices.split("|"))
    if name not in CLASSES:
        raise FormError(f"form {form!r} names the unknown class {name!r}")
    least = int(low or 1)
    most = least if more is None else int(high) if high else _UNBOUNDED
    if not 0 <= least <= most <= _UNBOUNDED:
        raise FormError(f"form {form!r} has a run that cannot be")
    return Run(name, least, most)


def _widths(part: Part) -> set[int]:
    if isinstance(part, Run):
        if part.high - part.low > _MOST_WIDTHS:
            raise FormError("a run before the longest literal of a form has too many lengths")
        return set(range(part.low, part.high + 1))
    return {len(option) for option in (part if isinstance(part, tuple) else (part,))}


def _sums(sets: Iterable[set[int]]) -> set[int]:
    total = {0}
    for widths in sets:
        total = {one + other for one in total for other in widths}
    return total


def _shortest(part: str | tuple[str, ...]) -> int:
    return len(part) if isinstance(part, str) else min(map(len, part))


def _trigger_run(part: Run, count: int) -> str:
    body = part.body + "\\\\" if "/" in part.body else part.body
    return f"[{body}]{{{count}}}" if count else ""


def _trigger_literal(text: str) -> str:
    return re.escape(text).replace("/", "\\\\*/")
