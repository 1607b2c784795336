"""Finds secrets in one buffer: triggers by Vectorscan, confirmation in windows, overlaps settled."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from archiver.redact import views
from archiver.redact.engine import Engine, Expression, Hit, Wanted
from archiver.redact.forms import Run
from archiver.redact.judge import is_bare_token
from archiver.redact.placeholder import PLACEHOLDER
from archiver.redact.rules import RuleSet
from archiver.redact.views.encoded import ends_as_text
from archiver.redact.views.escaped import WRITTEN
from archiver.redact.work import CHEAP, SEPARATOR, Span, Work

_FIRST_HITS = 4_000
_BYTES_A_FIRST = 400
"""Triggers after which it is looked at whether the text repeats the same words."""
_FREE_HITS = 20_000
_BYTES_A_HIT = 48
"""Triggers that an honest text may have, as long as they lead to nothing."""
_BYTES_A_FORM = 16
"""The triggers of formats may be closer, as in base64 of mostly zeros."""
_SAMPLE = 8_192
_REPEATED = 50
"""How much smaller than itself a text that repeats the same words is when it is compressed."""
_MOST_HITS = 100_000
_BYTES_A_TUPLE = 24
"""More triggers would take too much memory, whatever they are."""
_CLOSE, _ESCAPES = 64, 3
"""Bytes between escapes that are close to each other, and the triggers of such: the first that decode."""
_MANY, _SMALL, _KEPT = 8, 4_096, 1_000
"""Triggers and bytes of texts that are kept in mind where they are clean, and how many."""
_SHARE = 5
"""Secrets make up more of an honest text with as many triggers than this part."""
_DEEPEST = 4
"""Encodings inside each other that are undone."""
_BACKSLASH = 0x5C
_LONGEST_CHARACTER = 4
"""Bytes of a character of UTF-8."""
_HEAD = 4
_STREAM = Expression(
    rb'(?:[_.\"]delta|partial_json|completion\.chunk|"candidates)\\{0,15}"|"done\\{0,15}":\s?false'
)
"""All that `streams` takes for a record of a stream, also where it is escaped."""
_HEADS = 40
_WORDS: Final = frozenset(
    {
        *("TEST", "dict", "discord", "discordapp", "dose", "ipfs", "live", "mainnet", "preprod", "preview"),
        *("prod", "project", "service", "test", "testnet", "user"),
    }
)
"""Beginnings of formats that end many a line of code and prose: such a line end says nothing."""


_MOST_MADE: Final = 4
_made: dict[str, Finder] = {}
"""Finders by the version of their rules."""
_R = TypeVar("_R", bound=views.Reading)


class Finder:
    """The rules, compiled; may be used by several threads."""

    def __init__(self, rules: RuleSet) -> None:
        """Compile the rules; raises `RedactionUnavailableError`."""
        self.rules = rules
        heads = _heads(rules)
        self._coded = views.Coded(head.encode() for head in heads)
        breaks = [*_broken(heads), _STREAM]
        expressions = [*rules.expressions, *self._coded.expressions, *breaks]
        self._engine = Engine(expressions)
        self._escapes = Engine([WRITTEN])
        self._confirmed = len(rules.expressions)
        self._looks_behind = self._confirmed + self._coded.looks_behind
        self._decoded = self._confirmed + len(self._coded.expressions)
        self.stream = expressions.index(_STREAM)
        """Number of the trigger of records of a stream, and (`name`) of names that say secret."""
        self.name = 0
        self.written = self._confirmed
        """Number of the trigger of escapes of printable ASCII, which hide others."""
        self.bounded = frozenset(
            {
                *(at for at, owner in enumerate(rules.owners) if owner < 0 or self._is_bounded(at, owner)),
                *range(self._decoded, self.stream),
            }
        )
        """Numbers of triggers behind and before which no confirmer looks farther than the value reaches."""
        self._specific = [rule.specific for rule in rules.rules]
        self._bare = rules.index("encoded-secret")
        self.flooded = self._decoded + len(breaks)
        """Number of a hit behind which a piece was not scanned."""
        self._vain: set[bytes] = set()
        """Small texts with many triggers and no secret, the last ones seen."""
        self.flood = len(rules.rules)
        """Rule index of a region with more triggers than are confirmed."""

    @classmethod
    def of(cls, rules: RuleSet) -> Finder:
        """As `Finder(rules)`, made once in a process for the same texts of rules: that takes 20 ms."""
        made = _made.get(rules.version)
        if made is None:
            made = cls(rules)
            if len(_made) >= _MOST_MADE:
                _made.clear()
            _made[rules.version] = made
        return made

    def _is_bounded(self, number: int, rule: int) -> bool:
        """True for the trigger of a form."""
        return self.rules.costs[number] <= CHEAP and bool(self.rules.rules[rule].forms)

    def hits(self, data: bytes, between: bytes = SEPARATOR) -> list[Hit]:
        """Every trigger in raw JSON text or decoded text, by an offset in what it is about.

        A piece (pieces stand `between` such bytes) with more triggers than any honest text has is not scanned
        to its end: the last of its hits is `flooded`, and behind it may be anything.
        """
        first = _FIRST_HITS + len(data) // _BYTES_A_FIRST
        hits = self._engine.scan(data, first)
        if len(hits) > first:
            hits = self._many(data, between, first)
        padded = self._looks_behind
        if all(number != padded for _, number in hits):
            return hits
        return [
            (end - (number == padded), number)
            for end, number in hits
            if number != padded or ends_as_text(data, end - 1)
        ]

    def is_of_view(self, number: int) -> bool:
        """True for a trigger of text that is encoded, escaped or broken: decoded, it may tell more."""
        return self._confirmed <= number < self.flooded and number != self.stream

    def is_cut(self, hits: Iterable[Hit]) -> bool:
        """True when there is a piece of the text that was not scanned to its end."""
        return any(number == self.flooded for _, number in hits)

    def _many(self, data: bytes, between: bytes, most: int) -> list[Hit]:
        """The triggers of a text with very many of them, which is scanned piece by piece."""
        start, found = 0, []
        while start < len(data):
            stop = data.find(between, start)
            stop = len(data) if stop < 0 else stop
            piece = data[start:stop] if stop - start < len(data) else data
            hits = self._engine.scan(piece, most)
            if len(hits) > most:
                hits = self._further(piece, hits)
            found += [(start + end, number) for end, number in hits] if start else hits
            start = stop + len(between)
        return found

    def _further(self, piece: bytes, hits: list[Hit]) -> list[Hit]:
        """The triggers of a piece with very many of them, or as many as no honest text has."""
        if not self._is_attack(piece, hits, repeats=True):
            most = _FREE_HITS + len(piece) // _BYTES_A_HIT
            hits = self._engine.scan(piece, most)
            if len(hits) <= most:
                return hits
            if not self._is_attack(piece, hits, repeats=False):
                most = _MOST_HITS + len(piece) // _BYTES_A_TUPLE
                hits = self._engine.scan(piece, most, self._apart(piece))
                if len(hits) <= most:
                    return hits
        return [*hits, (hits[-1][0], self.flooded)]

    def _apart(self, piece: bytes) -> Wanted:
        """No escape in a string right behind another: that one leads to all that is around it."""
        first, lasts = self._confirmed, [-_CLOSE] * _ESCAPES

        def wanted(end: int, number: int) -> bool:
            kind = number - first
            if 0 <= kind < _ESCAPES:
                last = lasts[kind]
                if end - last < _CLOSE and piece.find(b'"', last, end) < 0:
                    return False
                lasts[kind] = end
            return True

        return wanted

    def _is_attack(self, piece: bytes, hits: list[Hit], *, repeats: bool) -> bool:
        """True when the last of the text scanned so far is full of triggers that lead to nothing.

        `repeats`: and when it is the same words over and over.
        """
        last = hits[-1][0]
        low = max(0, last - _SAMPLE)
        text = piece[low:last]
        sample = [(end - low, number) for end, number in hits if end > low and number < self._confirmed]
        if repeats and len(zlib.compress(text, 1)) * _REPEATED > len(text):
            return False
        costly = sum(self.rules.costs[number] > CHEAP for _, number in sample)
        if costly * _BYTES_A_HIT < len(text) and len(sample) * _BYTES_A_FORM < len(text):
            return False  # too little of it has to be confirmed
        found = self._confirm(text, sample)
        return sum(span.end - span.start for span in found) * _SHARE < len(text)

    def escaped(self, data: bytes) -> list[int]:
        """End offsets of escapes of printable ASCII: what follows them can be read only when decoded."""
        return [end for end, _ in self._escapes.scan(data)]

    def find(self, data: bytes) -> list[Span]:
        """The secrets in decoded text, in order, not overlapping; also those that are encoded or wrapped."""
        hits = self.hits(data)
        if len(hits) < _MANY:
            return self.confirm(data, hits) if hits else []
        if data in self._vain:
            return []
        found = self.confirm(data, hits)
        if not found and len(data) < _SMALL:
            if len(self._vain) >= _KEPT:
                self._vain.clear()
            self._vain.add(data)
        return found

    def confirm(self, data: bytes, hits: list[Hit], depth: int = 0, *, joined: bool = False) -> list[Span]:
        """The secrets that the given triggers lead to, in order, not overlapping.

        `depth` counts the encodings that were undone; `joined`: lines were joined, which is done once.
        """
        found = self._confirm(data, hits)
        rest, hits = self._outside(data, hits, found)
        if depth < _DEEPEST and not joined:  # encodings join their own lines
            found += self._read(rest, hits, depth)
        if not joined:
            found += self._unwrap(rest, hits, found, depth)
        found = [_of_whole_characters(data, span) for span in found]
        if found and b"[REDACTED:" in data:
            found = _beside_placeholders(data, found, self.flood)
        return self._settle(found) if len(found) > 1 else found

    def _inside(self, readings: Sequence[_R], depth: int, *, joined: bool) -> Iterator[tuple[_R, list[Span]]]:
        """What is found in each reading, in its own bytes; all are scanned in one pass."""
        data = readings[0].data if len(readings) == 1 else SEPARATOR.join(one.data for one in readings)
        hits = self.hits(data)
        spans = self.confirm(data, hits, depth, joined=joined) if hits else []
        at = start = 0
        for reading in readings:
            stop = start + len(reading.data)
            inside: list[Span] = []
            while at < len(spans) and spans[at].start < stop:
                span = spans[at]
                low, high = max(0, span.start - start), min(span.end, stop) - start
                inside.append(Span(low, high, span.rule, span.value))
                if span.end > stop:
                    break  # a flood, which goes on in the next one
                at += 1
            yield reading, inside
            start = stop + len(SEPARATOR)

    def _read(self, data: bytes, hits: list[Hit], depth: int) -> list[Span]:
        """What is found in the parts of a text that are encoded, in bytes of the text."""
        first, last = self._confirmed, self._decoded
        coded = [(end, number - first) for end, number in hits if first <= number < last]
        found: list[Span] = []
        readings = list(self._coded.readings(data, coded)) if coded else []
        for reading, inside in self._inside(readings, depth + 1, joined=False) if readings else ():
            for start, end, rule, value in inside:
                found.append(Span(*reading.span(start, end), rule, value or reading.data[start:end]))
            if not inside and reading.alone:
                text = reading.data.strip()
                if is_bare_token(text):
                    found.append(Span(*reading.span(0, len(reading.data)), self._bare, text))
        return found

    def _unwrap(self, data: bytes, hits: list[Hit], direct: list[Span], depth: int) -> list[Span]:
        """What is found across line ends that break a token."""
        ends = sorted(dict.fromkeys(end for end, _ in hits))
        found: list[Span] = []
        stops = {span.end: span for span in direct}
        groups = list(views.wrapped(data, ends))
        for lines, inside in self._inside(groups, depth, joined=True) if groups else ():
            for span in inside:
                at = lines.crossed(span.start, span.end)
                if at is None:
                    continue
                start, end = lines.span(span.start, span.end)
                known = stops.get(lines.span(at - 1, at)[1])
                if lines.goes_on(at, span.end) or (
                    self.is_format(span.rule) and (known is None or known.start > start)
                ):
                    found.append(Span(start, end, span.rule, span.value or lines.data[span.start : span.end]))
        return found

    def _confirm(self, data: bytes, hits: list[Hit]) -> list[Span]:
        """The secrets that stand in a text as they are, as each trigger leads to them.

        Formats of providers come first: where one is all of a value, nothing else need judge it.
        """
        costs = self.rules.costs
        flooded, count = self.flooded, self._confirmed
        # A dictionary keeps the order, in which they nearly are.
        ordered = sorted(dict.fromkeys(hit for hit in hits if hit[1] < count or hit[1] == flooded))
        work = Work(data, self.rules, self.flood)
        for end, number in ordered:
            if number == flooded:
                work.flood(end)
            elif costs[number] <= CHEAP:
                work.confirm(end, number)
            if work.done:
                break
        work.then()
        for end, number in ordered:
            if number != flooded and costs[number] > CHEAP:
                work.confirm(end, number)
                if work.done:
                    break
        return work.found

    def _outside(self, data: bytes, hits: list[Hit], found: list[Span]) -> tuple[bytes, list[Hit]]:
        """The text up to a part at its end that is a secret as a whole, and the triggers outside of such."""
        floods = sorted((span.start, span.end) for span in found if span.rule == self.flood)
        if not floods:
            return data, hits
        rest = data[: floods[-1][0]] if floods[-1][1] == len(data) else data
        return rest, [
            hit for hit in hits if (at := bisect_right(floods, hit) - 1) < 0 or floods[at][1] < hit[0]
        ]

    def _settle(self, found: Iterable[Span]) -> list[Span]:
        """Join overlapping spans; the most telling rule of those that overlap gives its name."""
        settled: list[Span] = []
        for span in sorted(found, key=lambda span: span[:3]):
            if not settled or span.start >= settled[-1].end:
                settled.append(span)
                continue
            last = settled[-1]
            best = max(last, span, key=self._weight)
            settled[-1] = Span(last.start, max(last.end, span.end), best.rule, best.value)
        return settled

    def _weight(self, span: Span) -> tuple[int, int]:
        if span.rule == self.flood:
            return 4, 0
        return self.tells(span.rule), span.end - span.start

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


def _of_whole_characters(data: bytes, span: Span) -> Span:
    """The span without half a character at its ends: windows have their limits anywhere."""
    start, end = span.start, span.end
    while start > max(0, span.start - _LONGEST_CHARACTER) and 0x80 <= data[start] < 0xC0:
        start -= 1
    while end < min(len(data), span.end + _LONGEST_CHARACTER) and 0x80 <= data[end] < 0xC0:
        end += 1
    return span if (start, end) == span[:2] else span._replace(start=start, end=end)


def _beside_placeholders(data: bytes, found: list[Span], flood: int) -> list[Span]:
    """The spans that touch no placeholder: what redaction wrote is never redacted again.

    What is a secret as a whole is so between them.
    """
    placed = [match.span() for match in PLACEHOLDER.finditer(data)]
    starts = [start for start, _ in placed]
    kept: list[Span] = []
    for span in found:
        index = bisect_right(starts, span.end - 1) - 1
        if index < 0 or placed[index][1] <= span.start:
            kept.append(span)
        elif span.rule == flood:
            at = span.start
            for start, end in placed[: index + 1]:
                if at < start:
                    kept.append(Span(at, start, flood))
                at = max(at, end)
            if at < span.end:
                kept.append(Span(at, span.end, flood))
    return kept


def _heads(rules: RuleSet) -> list[str]:
    """The fixed text with which formats begin."""
    first = (form.parts[0] for rule in rules.rules for form in rule.forms)
    heads = {
        head
        for part in first
        if not isinstance(part, Run)
        for head in ((part,) if isinstance(part, str) else part)
    }
    return sorted(head for head in heads if len(head) >= _HEAD)


def _broken(heads: list[str]) -> list[Expression]:
    """Formats that a line end breaks shortly behind their beginning."""
    tail = rb"[A-Za-z0-9+/=_.\-]{0,14}" + views.LINE_END + rb"[A-Za-z0-9]"
    heads = [head for head in heads if head not in _WORDS]
    groups = (heads[at : at + _HEADS] for at in range(0, len(heads), _HEADS))
    return [
        Expression(b"(?:%b)%b" % (b"|".join(re.escape(head.encode()) for head in group), tail))
        for group in groups
    ]
