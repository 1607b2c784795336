"""Formats of credentials as facts: `"ghp_{alnum:36}"` is a trigger, a confirmation and a generator.

A form is text with `{class:n}`, `{class:n,m}` and `{class:n,}` runs and `{=a|b|c}` choices. From one form come the
minimal-length trigger for Vectorscan, the exact `re` pattern, and sample values for tests.
"""

from __future__ import annotations

import random
import re
import string
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
    "dot": ("a-zA-Z0-9_.\\-", _LOWER + _UPPER + _DIGIT + "_.-"),
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
_ENOUGH = 12
_UNBOUNDED = 4096


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
        """The exact `re` pattern, without boundaries."""
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, Run):
                high = "" if part.high == _UNBOUNDED else str(part.high)
                count = f"{{{part.low}}}" if part.low == part.high else f"{{{part.low},{high}}}"
                out.append(f"[{part.body}]{count}")
            elif isinstance(part, tuple):
                out.append("(?:" + "|".join(map(re.escape, part)) + ")")
            else:
                out.append(re.escape(part))
        return "".join(out).encode()

    def trigger(self) -> tuple[bytes, int | None, int]:
        """The Vectorscan pattern, its width in decoded text when that is fixed, and its greatest width.

        It matches whatever stands before or after, and also where JSON writes `/` as `\\/`, so that a scan of
        raw JSON text never misses what a scan of the decoded text would find. It stops early: a shorter
        trigger is cheaper, and confirmation reads the rest.
        """
        last = self._last_literal()
        out: list[str] = []
        fixed, widest = True, 0
        for index, part in enumerate(self.parts):
            if isinstance(part, Run):
                low, high = part.low, part.high
                if index > last:
                    low = high = min(low, _ENOUGH)
                out.append(_trigger_run(part, low, high))
                fixed = fixed and low == high and "/" not in part.body
                widest += high
                if index > last:
                    break
            else:
                options = part if isinstance(part, tuple) else (part,)
                out.append("(?:" + "|".join(map(_trigger_literal, options)) + ")")
                fixed = fixed and len({len(option) for option in options}) == 1
                widest += max(map(len, options))
        return "".join(out).encode(), widest if fixed else None, min(widest, 1024)

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

    def _last_literal(self) -> int:
        """Index of the last part that is worth waiting for: a literal of two or more characters."""
        places = [
            index
            for index, part in enumerate(self.parts)
            if not isinstance(part, Run) and len(part if isinstance(part, str) else part[0]) >= 2
        ]
        # A literal at the very end (`…AA` of a key) costs a long automaton and says little more.
        if len(places) > 1 and places[-1] == len(self.parts) - 1 and places[-2] == 0:
            places.pop()
        return places[-1] if places else len(self.parts)


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


def _trigger_run(part: Run, low: int, high: int) -> str:
    body = part.body + "\\\\" if "/" in part.body else part.body
    if low == high:
        return f"[{body}]{{{low}}}"
    return f"[{body}]{{{low},}}" if high > 64 or "/" in part.body else f"[{body}]{{{low},{high}}}"


def _trigger_literal(text: str) -> str:
    return re.escape(text).replace("/", "\\\\*/")
