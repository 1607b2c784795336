"""Rules that are one expression in RE2's syntax: of gitleaks files, of packs, and of the user's own.

The expression runs in a bounded window of decoded text around a trigger. Its meaning is that of gitleaks: the
secret is the group `secretGroup`, else the first group that took something, else the whole match; it is
dropped when its entropy is not above the rule's, or when an allowlist says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from archiver.redact import re2
from archiver.redact.confirm import NOTHING, Confirm, Spans
from archiver.redact.engine import Expression
from archiver.redact.judge import entropy

BACK: Final = 1024
AHEAD: Final = 2048
"""Bytes before and after the end of a trigger that the expression sees, or what its shortest match needs."""
_MOST_AHEAD: Final = 16_384
_FROM_WORD: Final = 256
"""Bytes before a keyword that the expression sees where the keyword is its trigger."""
_EDGE: Final = 8
_TELLING: Final = 3
"""Letters of fixed text that make an expression its own trigger."""
_PLAIN = re.compile(r"[A-Za-z0-9_.:=\-@~+*%!?#$()\[\]{},;^| ]+")
_FLAGS: Final = re.ASCII | re.MULTILINE

Target = Literal["secret", "match", "line"]


class PatternError(ValueError):
    """An expression that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Allow:
    """One allowlist: what it looks at, and what makes it drop a finding."""

    patterns: tuple[re.Pattern[str], ...] = ()
    target: Target = "secret"
    stopwords: tuple[str, ...] = ()
    every: bool = False
    """True when each kind of condition has to hold, not only one."""

    def drops(self, secret: str, match: str, line: Callable[[], str]) -> bool:
        """True when the finding is to be left alone."""
        text = secret if self.target == "secret" else match if self.target == "match" else line()
        said: list[bool] = []
        if self.patterns:
            said.append(any(pattern.search(text) for pattern in self.patterns))
        if self.stopwords:
            low = secret.lower()
            said.append(any(word in low for word in self.stopwords))
        return bool(said) and (all(said) if self.every else any(said))


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression with its conditions."""

    node: re2.Node
    find: re.Pattern[str]
    group: int = 0
    """The group that is the secret; 0: the first that took something."""
    keywords: tuple[bytes, ...] = ()
    entropy: float = 0.0
    allow: tuple[Allow, ...] = ()

    def triggers(self) -> Iterator[Expression]:
        """What the engine looks for: the expression itself, or its keywords where it has no fixed text."""
        if self.by_keyword:
            for word in self.keywords:
                yield Expression(re.escape(_plain(word)), caseless=True)
        else:
            yield Expression(re2.trigger(self.node))

    @property
    def by_keyword(self) -> bool:
        """True when the keywords are what is looked for first."""
        return re2.literal(self.node) < _TELLING and all(_plain(word) for word in self.keywords or (b"",))

    def secrets(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int, re.Match[str]]]:
        """Every secret in a text from `begin` to `end`, with the match it is part of."""
        for match in self.find.finditer(text, begin, end):
            span = self._secret(match)
            if span[0] < span[1] and not self._dropped(text, match, span):
                yield *span, match

    def _secret(self, match: re.Match[str]) -> tuple[int, int]:
        if self.group:
            return match.span(self.group)
        spans = (match.span(number) for number in range(1, match.re.groups + 1))
        return next((span for span in spans if span[0] < span[1]), match.span())

    def _dropped(self, text: str, match: re.Match[str], span: tuple[int, int]) -> bool:
        secret = text[slice(*span)]
        if self.entropy and entropy(secret.encode("utf-8", "surrogateescape")) <= self.entropy:
            return True

        def line() -> str:
            stop = text.find("\n", match.end())
            return text[text.rfind("\n", 0, match.start()) + 1 : stop if stop >= 0 else len(text)]

        return any(allow.drops(secret, match[0], line) for allow in self.allow)


def compiled(text: str) -> tuple[re2.Node, re.Pattern[str]]:
    """An expression in RE2's syntax, for Python; raises `PatternError` with what is wrong."""
    try:
        node = re2.parse(text)
        why = re2.why_costly(node)
        if why is not None:
            raise PatternError(why)
        return node, re.compile(re2.python(node), _FLAGS)
    except (re2.ExpressionError, re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from error


def pattern(
    text: str,
    *,
    group: int | str = 0,
    keywords: tuple[str, ...] = (),
    least: float = 0.0,
    allow: tuple[Allow, ...] = (),
) -> Pattern:
    """A usable pattern; `least` is the entropy that a secret has to pass; raises `PatternError`."""
    node, find = compiled(text)
    if not re2.shortest(node):
        raise PatternError("it matches a text without characters")
    if re2.shortest(node) > _MOST_AHEAD:
        raise PatternError(f"it asks for more than {_MOST_AHEAD} characters")
    if not keywords and re2.telling(node) < re2.TELLING:
        raise PatternError("it has too little fixed text to be looked for: give the rule keywords")
    names = {name: number for number, name in re2.groups(node).items() if name}
    number = names.get(group, 0) if isinstance(group, str) else group
    if (group and not number) or number not in {0, *re2.groups(node)}:
        raise PatternError(f"there is no group {group!r}")
    words = tuple(word.lower().encode() for word in keywords if word)
    return Pattern(node, find, number, words, least, allow)


def confirm(rule: int, pattern: Pattern) -> Confirm:
    """Confirms an expression around a trigger."""
    by_keyword = pattern.by_keyword and bool(pattern.keywords)
    back = _FROM_WORD if by_keyword else BACK
    ahead = min(_MOST_AHEAD, max(AHEAD, 2 * re2.shortest(pattern.node)))
    keywords = pattern.keywords

    def confirm(data: bytes, end: int) -> Spans:
        low = max(0, end - back)
        low = max(low, data.rfind(b"\0", low, end) + 1)
        stop = data.find(b"\0", end, end + ahead)
        high = stop if stop >= 0 else min(len(data), end + ahead)
        if keywords and not by_keyword:
            near = data[low:high].lower()
            if not any(word in near for word in keywords):
                return NOTHING
        edge = max(0, low - _EDGE)
        edge = max(edge, data.rfind(b"\0", edge, low) + 1)
        window = data[edge : min(len(data), high + _EDGE) if stop < 0 else high]
        found = tuple(
            (edge + start, edge + to, rule)
            for start, to, began, ended in _found(pattern, window, low - edge, high - edge)
            if by_keyword or began < end - edge <= ended
        )
        return found or NOTHING

    return confirm


def _found(pattern: Pattern, window: bytes, low: int, high: int) -> Iterator[tuple[int, int, int, int]]:
    """The secrets of a window and the matches around them, as offsets in bytes."""
    text = window.decode("utf-8", "surrogateescape")
    if len(text) == len(window):
        for start, end, match in pattern.secrets(text, low, high):
            yield start, end, *match.span()
        return

    def at(offset: int) -> int:
        return len(text[:offset].encode("utf-8", "surrogateescape"))

    begin = len(window[:low].decode("utf-8", "surrogateescape"))
    stop = len(window[:high].decode("utf-8", "surrogateescape"))
    for start, end, match in pattern.secrets(text, begin, stop):
        yield at(start), at(end), at(match.start()), at(match.end())


def _plain(word: bytes) -> bytes:
    """The longest part of a keyword that JSON text shows as it is."""
    runs = _PLAIN.findall(word.decode("utf-8", "replace"))
    best = max(runs, key=len, default="")
    return best.encode() if len(best) >= min(2, len(word)) else b""
