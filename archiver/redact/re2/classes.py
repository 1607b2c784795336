"""Sets of characters by their names: `\\d`, `[[:alnum:]]`, `\\p{Lu}`, and the escapes of single ones."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Final

from archiver.redact.re2.tree import LAST, Chars


def _set(text: str) -> Chars:
    return Chars.of((ord(text[at]), ord(text[at + 1])) for at in range(0, len(text), 2))


_POSIX: Final = {
    "alnum": _set("09AZaz"),
    "alpha": _set("AZaz"),
    "ascii": _set("\x00\x7f"),
    "blank": _set("\t\t  "),
    "cntrl": _set("\x00\x1f\x7f\x7f"),
    "digit": _set("09"),
    "graph": _set("!~"),
    "lower": _set("az"),
    "print": _set(" ~"),
    "punct": _set("!/:@[`{~"),
    "space": _set("\t\r  "),
    "upper": _set("AZ"),
    "word": _set("09AZaz__"),
    "xdigit": _set("09AFaf"),
}
_PERL: Final = {"d": _POSIX["digit"], "w": _POSIX["word"], "s": _set("\t\n\f\r  ")}
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_POSIX_NAME = re.compile(r"\[:(\^?)(\w+):\]")
_HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|([A-Z]))")
_FOLDED: Final = 64
"""Letters outside ASCII whose other case is looked for, in one set."""


def posix(text: str, at: int) -> tuple[Chars, int] | None:
    """The set that `[:name:]` at this place names, and its width; None where there is none."""
    match = _POSIX_NAME.match(text, at)
    if match is None or match[2] not in _POSIX:
        return None
    made = _POSIX[match[2]]
    return made.complement() if match[1] else made, len(match[0])


def escape(text: str, at: int) -> tuple[Chars, int]:
    """The character or set of the escape at this place, and where it ends; raises `ValueError`."""
    char = text[at + 1 : at + 2]
    if char.lower() in _PERL:
        made = _PERL[char.lower()]
        return made if char.islower() else made.complement(), at + 2
    code: int | None = _CONTROLS.get(char)
    width = 2
    if match := _HEX.match(text, at):
        code, width = int(match[1] or match[2], 16), len(match[0])
    elif match := _OCTAL.match(text, at):
        code, width = int(match[1], 8), len(match[0])
    elif match := _PROPERTY.match(text, at):
        made = _category(match[3] or match[4])
        return made.complement() if (match[1] == "P") != bool(match[2]) else made, at + len(match[0])
    elif code is None and char and (not char.isalnum() or not char.isascii()):
        code = ord(char)
    if code is None or code > LAST:
        raise ValueError(f"the escape {text[at : at + 2]!r} means nothing in RE2")
    return Chars(((code, code),)), at + width


def folded(made: Chars) -> Chars:
    """The set with both cases of its letters."""
    more = list(made.ranges)
    for low, high in made.ranges:
        for first, last, other in ((65, 90, 32), (97, 122, -32)):
            if low <= last and first <= high:
                more.append((max(low, first) + other, min(high, last) + other))
        if high > 0x7F and high - low < _FOLDED:
            for code in range(max(low, 0x80), high + 1):
                more += [(ord(x), ord(x)) for x in (chr(code).lower(), chr(code).upper()) if len(x) == 1]
    return Chars.of(more)


def _category(name: str) -> Chars:
    if name == "Any":
        return Chars(((0, LAST),))
    found = [span for known, spans in _categories().items() if known.startswith(name) for span in spans]
    if not found or len(name) > 2:
        raise ValueError(f"the class \\p{{{name}}} is no general category, and scripts are not known")
    return Chars.of(found)


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    """Every general category of Unicode with its ranges."""
    found: dict[str, list[tuple[int, int]]] = {}
    at = 0
    for name, run in groupby(map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))):
        size = sum(1 for _ in run)
        found.setdefault(name, []).append((at, at + size - 1))
        at += size
    return found
