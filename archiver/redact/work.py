"""The confirmation of the triggers of one text, with an end to it.

Work is bounded: past a cost of vain confirmations, and past a number of secrets, that no honest text reaches,
the rest of a piece counts as one secret, because such text is an attack.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from archiver.redact.confirm import Spans
from archiver.redact.ruleset import RuleSet

CHEAP: Final = 2
"""What the confirmation of a provider's format costs at most, of what `RuleSet.costs` says."""
SEPARATOR: Final = b"\n\x00\n"
"""Stands between the pieces of a joined buffer; no rule matches across it."""
_FREE_COST: Final = 24_000
_BYTES_A_COST: Final = 10
"""Base64 of mostly zeros has a vain trigger of a format for every 23 bytes, and is honest."""
_FREE_FOUND: Final = 8_000
_BYTES_A_FOUND: Final = 1_000
_BEFORE: Final = 128
"""Bytes before the end of a trigger that may belong to what it is about."""
_BACKSLASH: Final = 0x5C
_VAIN: Final = 100
"""Vain confirmations after which what looks the same as before is not looked at again."""
_AROUND: Final = 256
"""Bytes before and behind the end of a trigger that have to be the same."""
_NEAR: Final = 8
_COST_AGAIN: Final = 1
"""Cost where as many bytes around a trigger were the same before."""
_GLUED: Final = 4
"""Bytes of quotes and spaces between a sign and its value."""
_QUOTES: Final = b"\"'`"
_ENDS: Final = (b"", b"\n", b"\r", b"\t", b" ", b"\0")


class Span(NamedTuple):
    """One secret: its bytes in the buffer, the index of its rule, and its value where that is encoded."""

    start: int
    end: int
    rule: int
    value: bytes | None = None


class Work:
    """Takes the triggers of one text, in order, twice: first those of formats, then (`then`) the others."""

    def __init__(self, data: bytes, rules: RuleSet, flood: int) -> None:
        self.found: list[Span] = []
        self._data = data
        self._confirms, self._costs = rules.confirms, rules.costs
        self._rule = flood
        self._budget = _FREE_COST + len(data) // _BYTES_A_COST
        self._most = _FREE_FOUND + len(data) // _BYTES_A_FOUND
        self._vain = 0
        self._nothing: set[tuple[int, bytes]] = set()
        self._flooded, self._inside, self._covered = -1, 0, 0
        self._formats: list[Span] = []
        self._starts: list[int] = []

    def then(self) -> None:
        """The formats are done; from here on only what they have not told counts."""
        self._formats = sorted(self.found, key=lambda span: span.start)
        self._starts = [span.start for span in self._formats]
        self._flooded = -1
        self._most += len(self.found)

    @property
    def done(self) -> bool:
        """True when nothing of the text is left to look at."""
        return self._flooded >= len(self._data)

    def flood(self, end: int) -> None:
        """All from the beginning of what this trigger is about to the end of the piece is one secret."""
        if end > self._flooded:
            stop = self._data.find(SEPARATOR, end)
            self._flooded = len(self._data) if stop < 0 else stop
            start = max(0, end - _BEFORE, self._data.rfind(b"\0", 0, end) + 1)
            if self.found and self.found[-1].end <= end:
                start = max(start, self.found[-1].end)
            self.found.append(Span(start, self._flooded, self._rule))

    def confirm(self, end: int, number: int) -> None:
        """Note the secrets that one trigger leads to."""
        if end <= self._flooded or self._inside < end <= self._covered or self._is_told(end):
            return
        if self._budget < 0 or len(self.found) > self._most:
            self.flood(end)
            return
        data, sight = self._data, None
        if self._vain > _VAIN:
            sight = number, data[max(0, end - _AROUND) : end + _AROUND]
            if sight in self._nothing:
                return
        spans = self._confirms[number](data, end)
        if spans:
            self._note(spans, costly=self._costs[number] > CHEAP)
            return
        self._vain += 1
        near = number, data[max(0, end - _NEAR) : end + _NEAR]
        # A log says the same of every request: that is no attack so soon.
        self._budget -= (
            min(_COST_AGAIN, self._costs[number]) if near in self._nothing else self._costs[number]
        )
        self._nothing.add(near)
        if sight is not None:
            self._nothing.add(sight)

    def _note(self, spans: Spans, *, costly: bool) -> None:
        for start, stop, rule in spans:
            # A backslash at the end belongs to an escape that was written out.
            while stop > start and self._data[stop - 1] == _BACKSLASH:
                stop -= 1  # noqa: PLW2901 - trimmed on purpose
            if stop > start:
                self.found.append(Span(start, stop, rule))
                if costly:
                    self._inside, self._covered = start, stop

    def _is_told(self, end: int) -> bool:
        """True for a trigger inside of a format that was found, or right before one that is a whole value."""
        if not self._starts:
            return False
        data, at = self._data, bisect_left(self._starts, end)
        if at and end <= self._formats[at - 1].end:
            return True
        if at == len(self._starts) or self._starts[at] - end > _GLUED:
            return False
        span = self._formats[at]
        before, behind = data[end : span.start], data[span.end : span.end + 1]
        if before.strip(b" \"'`"):
            return False
        quote = before[-1:]
        return behind == quote if quote and quote in _QUOTES else behind in _ENDS
