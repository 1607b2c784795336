"""Finds secrets in one buffer: triggers by Vectorscan, confirmation in windows, overlaps settled."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from archiver.redact.engine import Engine, Expression, Hit
from archiver.redact.placeholder import PLACEHOLDER
from archiver.redact.rules import RuleSet
from archiver.redact.views import INVISIBLE

SEPARATOR: Final = b"\n\x00\n"
"""Stands between the pieces of a joined buffer; no rule matches across it."""

# JSON text that writes printable ASCII or ESC as `\\u00XX` has to be decoded before triggers can see it.
# `<`, `>`, `&` and `'`, which some writers always escape, are part of no token; the unseen may split one.
_NEEDS_DECODING = Expression(
    rb"\\u00(1[bB]|2[0-57-9a-fA-F]|3[0-9abdfABDF]|[4-7][0-9a-fA-F]|[aA][dD])|\\u(20(0[b-fB-F]|60)|[fF][eE][fF][fF])|"
    + b"|".join(map(re.escape, INVISIBLE))
)
_FREE_COST = 8_000
_BYTES_A_COST = 16
_CHEAP = 2
_BACKSLASH = 0x5C


class Span(NamedTuple):
    """One secret: its bytes in the buffer and the index of its rule."""

    start: int
    end: int
    rule: int


class Finder:
    """The rules, compiled; holds no state between calls."""

    def __init__(self, rules: RuleSet) -> None:
        """Compile the rules; raises `RedactionUnavailableError`."""
        self.rules = rules
        self._engine = Engine([*rules.expressions, _NEEDS_DECODING])
        self._escapes = Engine([_NEEDS_DECODING])
        self._confirmed = len(rules.expressions)
        self._specific = [rule.specific for rule in rules.rules]
        self.flood = len(rules.rules)
        """Rule index of a region with more triggers than are confirmed."""

    def hits(self, data: bytes) -> list[Hit]:
        """Every trigger in raw JSON text or decoded text, by end offset."""
        return self._engine.scan(data)

    def escaped(self, data: bytes) -> list[int]:
        """End offsets of escapes of printable ASCII: what follows them can be read only when decoded."""
        return [end for end, _ in self._escapes.scan(data)]

    def find(self, data: bytes) -> list[Span]:
        """The secrets in decoded text, in order, not overlapping."""
        hits = self._engine.scan(data)
        return self.confirm(data, hits) if hits else []

    def confirm(self, data: bytes, hits: list[Hit]) -> list[Span]:
        """The secrets that the given triggers lead to, in order, not overlapping.

        Work is bounded: past a cost of vain confirmations that no honest text reaches, the rest of the piece
        counts as one secret, because such text is an attack.
        """
        found: list[Span] = []
        confirms, costs = self.rules.confirms, self.rules.costs
        budget = _FREE_COST + len(data) // _BYTES_A_COST
        flooded, inside, covered = -1, 0, 0
        last = None
        for hit in sorted(hits):
            end, number = hit
            if hit == last or number >= self._confirmed or end <= flooded:
                continue
            last = hit
            cost = costs[number]
            if inside < end <= covered and cost > _CHEAP:
                continue  # only the format of a provider says more of what is found already
            if budget < 0:
                flooded = data.find(SEPARATOR, end)
                flooded = len(data) if flooded < 0 else flooded
                found.append(Span(end, flooded, self.flood))
                continue
            spans = confirms[number](data, end)
            budget -= 0 if spans else cost
            for start, stop, rule in spans:
                # A backslash at the end belongs to an escape that was written out.
                while stop > start and data[stop - 1] == _BACKSLASH:
                    stop -= 1  # noqa: PLW2901 - trimmed on purpose
                if stop > start:
                    found.append(Span(start, stop, rule))
                    inside, covered = start, stop
        if found and b"[REDACTED:" in data:
            found = _beside_placeholders(data, found)
        return self._settle(found) if len(found) > 1 else found

    def _settle(self, found: Iterable[Span]) -> list[Span]:
        """Join overlapping spans; the most telling rule of those that overlap gives its name."""
        settled: list[Span] = []
        for span in sorted(found):
            if not settled or span.start >= settled[-1].end:
                settled.append(span)
                continue
            last = settled[-1]
            settled[-1] = Span(last.start, max(last.end, span.end), self._better(last, span))
        return settled

    def _better(self, one: Span, other: Span) -> int:
        return max(one, other, key=lambda span: (self.tells(span.rule), span.end - span.start)).rule

    def is_format(self, rule: int) -> bool:
        """True for a rule that knows a credential by its own characters."""
        return 0 <= rule < self.flood and self._specific[rule]

    def tells(self, rule: int) -> int:
        """How much a rule says of what it found: a known value (-1) most, a format more than context."""
        if rule < 0:
            return 3
        if rule == self.flood:
            return 0
        return 2 if self._specific[rule] else 1


def _beside_placeholders(data: bytes, found: list[Span]) -> list[Span]:
    """The spans that touch no placeholder: what redaction wrote is never redacted again."""
    placed = [match.span() for match in PLACEHOLDER.finditer(data)]
    starts = [start for start, _ in placed]
    kept: list[Span] = []
    for span in found:
        index = bisect_right(starts, span.end - 1) - 1
        if index < 0 or placed[index][1] <= span.start:
            kept.append(span)
    return kept
