"""Formats that mean something only after a provider's word: `beebole_key=<40 hex>`, `box SECRET <32 …>`.

Hundreds of providers give out keys that look like anything. Each is one fact: the words of the provider, and
the form of the key. All words share a few triggers: a word, then soon either a word of access (`key`,
`token` …) or an assignment, then the beginning of a value. The exact form is confirmed in a bounded window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from archiver.redact.confirm import AFTER, BEFORE, NOTHING, Confirm, Spans
from archiver.redact.engine import Engine, Expression
from archiver.redact.forms import compiled
from archiver.redact.judge import is_plausible
from archiver.redact.placeholder import PLACEHOLDER

REACH: Final = 64
"""Bytes between the end of a word and the beginning of its value, unless the rule says otherwise."""
_INTO = 28
"""Bytes of a value that a trigger may have read."""
_BACK = 160
_WORDS_A_TRIGGER = 40
_SHORT_WORD = 5
_LONG_WORD = 5
_WORD = re.compile(r"[a-z0-9]+(?:[ _.\-][a-z0-9]+)*")
_PIECE = re.compile("[a-z0-9]+")
_SEPARATOR: Final = dict.fromkeys(map(ord, " _.-"), r"[ _.\-]?")

_ACCESS = "(?:key|token|secret|passw|pwd|cred|auth|access|private|bearer)"
_TAIL = r"[a-z0-9_]{0,12}(?:\sis|\swas)?"
_MARK = r"[\"'`:=>,.\-\s(\[|_\\]"
_SIGN = rf"(?:{_MARK}|\\[nrt])"
_MORE = _SIGN + "*"
"""Signs, as many as there are: counting them would cost the engine more than going on does."""
_SIGNS = _SIGN + _MORE
_APART = r"(?:[\"'`:=>,\s(\[|\\]|\\[nrt])" + _MORE
"""Signs that do not only join words: `claude-opus-4-5-20251101` is one name."""
_CHAR = r"[A-Za-z0-9+/_\-]"
_BEGIN = r"[A-Za-z0-9+/_\-=.~:]"
_ASSIGNED = rf"[\"'\s\\]*[:=]{_MORE}"
_AFTER_ACCESS = f"{_ACCESS}{_TAIL}(?:{_SIGNS}{_CHAR}{{0,15}}[0-9]{_BEGIN}{{10}}|{_ASSIGNED}{_CHAR}{{24}})"
"""A word of access and a value, in Vectorscan's syntax; it also matches where quotes and line ends are
escaped. The provider's word is looked for only where this is: a thousand words in the database would halve
its speed, and short ones or such of several pieces cost the most."""
_AFTER_WORD = (
    rf"(?:[^\x00]{{0,40}}?(?:{_ACCESS}{_TAIL}|[ _.\-]pat){_SIGNS}{_BEGIN}{{8}}"
    rf"|{_APART}{_CHAR}{{0,9}}[0-9]{_BEGIN}{{7}}"
    rf"|{_ASSIGNED}{_BEGIN}{{16}})"
)
"""What follows a word of one piece that is not too short: the value needs no word of access before it."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """One provider's form, and how far from its word it may stand."""

    rule: int
    pattern: bytes
    reach: int
    telling: bool
    """True for a form that holds fixed text of its own: such a value is not judged any further."""


@dataclass(slots=True)
class Near:
    """All words and the forms that may follow them."""

    _facts: dict[str, list[_Fact]] = field(default_factory=dict)

    def add(
        self, rule: int, words: Iterable[str], pattern: bytes, boundary: str, reach: int, *, telling: bool
    ) -> None:
        """A form that counts after one of these words (lower case; ` ` stands for any one separator)."""
        bounded = BEFORE[boundary] + b"(?P<secret>" + pattern + b")" + AFTER[boundary]
        for word in words:
            if _WORD.fullmatch(word) is None or len(word) < 2:
                raise ValueError(f"{word!r} is no lower-case word")
            self._facts.setdefault(word, []).append(_Fact(rule, bounded, reach, telling))

    def triggers(self) -> Iterator[tuple[Expression, Confirm]]:
        """What the engine looks for, and who confirms it."""
        words = sorted(self._facts)
        if not words:
            return
        confirm = self._confirm(words)
        yield Expression(_AFTER_ACCESS.encode(), caseless=True), confirm
        rare = [word for word in words if len(word) >= _LONG_WORD and " " not in word]
        for at in range(0, len(rare), _WORDS_A_TRIGGER):
            trigger = "|".join(map(_separated, rare[at : at + _WORDS_A_TRIGGER]))
            yield Expression(f"(?:{trigger}){_AFTER_WORD}".encode(), caseless=True), confirm

    def _confirm(self, words: list[str]) -> Confirm:
        lookup = Engine([Expression(_separated(word).encode(), caseless=True) for word in words])
        known = [(len(word), _is_short(word), self._facts[word]) for word in words]

        def confirm(data: bytes, end: int) -> Spans:
            starts = [at for at in range(max(1, end - _INTO), end) if _may_begin(data, at)]
            if not starts:
                return NOTHING
            low = max(0, end - _BACK)
            low = max(low, data.rfind(b"\0", low, end) + 1)
            window = _without_placeholders(data[low : starts[-1]])
            # The last word first; of those that end together, the longest.
            for stop, word in sorted(lookup.scan(window), key=lambda hit: (-hit[0], -known[hit[1]][0])):
                size, short, facts = known[word]
                if short and _is_glued(words[word], window, stop - size, stop):
                    continue
                for start in starts:
                    if start >= low + stop and (spans := _values(data, low + stop, start, facts)):
                        return spans
            return NOTHING

        return confirm


def _without_placeholders(window: bytes) -> bytes:
    """The same without the words of kinds: what redaction wrote says nothing of what stands beside it."""
    if b"[REDACTED:" not in window:
        return window
    return PLACEHOLDER.sub(lambda match: b" " * len(match[0]), window)


def _separated(word: str) -> str:
    """A word as a pattern of both engines: what stands between its pieces may be any sign, or none."""
    return word.translate(_SEPARATOR)


def _is_short(word: str) -> bool:
    """True for a word whose first piece may well be the end of another: `ibm`, `line token`."""
    return len(_PIECE.match(word)[0]) <= _SHORT_WORD  # type: ignore[index]  # a word begins with a piece


def _is_glued(word: str, data: bytes, low: int, stop: int) -> bool:
    """True where letters of the same case go before the word: `ibm` in `libmount`, not in `myIbmKey`."""
    match = compiled(_separated(word).encode() + rb"\Z", re.IGNORECASE).search(data, low, stop)
    at = match.start() if match is not None else low
    before, first = data[max(0, at - 1) : at], data[at : at + 1]
    return before.isalpha() and not (before.islower() and first.isupper())


def _may_begin(data: bytes, at: int) -> bool:
    """True where a value may begin: cheap, and the boundary of the rule decides."""
    before = data[at - 1 : at]
    return (
        not before.isalnum()
        or data[at - 2 : at - 1] == b"\\"
        or before == b"m"
        or data[at - 3 : at - 2] == b"%"
    )


def _values(data: bytes, behind: int, start: int, facts: list[_Fact]) -> Spans:
    """The value that begins at `start`, if a form of the word that ends at `behind` says so."""
    for fact in facts:
        match = compiled(fact.pattern).match(data, start) if start - behind <= fact.reach else None
        if match is not None and is_plausible(match["secret"], telling=fact.telling):
            return ((*match.span("secret"), fact.rule),)
    return NOTHING
