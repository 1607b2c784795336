"""Secrets that are split over neighbouring deltas of a stream.

Agents write what a model streams as it comes: a line, an event or an element of an array for every few
characters. The strings that such records carry at the same place are joined and searched; a secret is
replaced in the first of them and taken out of the others, so each record stays what it was.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from archiver.redact.edits import Edit
from archiver.redact.engine import Engine, Expression, Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.tokens import decode
from archiver.redact.views import json_string

_SIGNS: Final = (
    *(b'_delta"', b'.delta"', b'"delta"', b"partial_json", b"completion.chunk", b'"candidates"'),
    *(b'"done":false', b'"done": false'),
)
"""What only records of a stream hold: of Anthropic, OpenAI, Google and Ollama."""
_STREAM = re.compile(b"|".join(map(re.escape, _SIGNS)))
_LEAF = re.compile(
    rb'"(?P<key>partial_json|text|thinking|delta|content|arguments|partial_arguments|reasoning|reasoning_content'
    rb"|reasoning_text|thought|refusal|response|completion|output|output_text|transcript|token|generated_text"
    rb'|chunk|input|code|stdout|stderr|data)"\s*:\s*(?P<text>"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")'
)
_INDEX = re.compile(rb'"(?:\w+_)?index"\s*:\s*([0-9]+)')
_RECORD = re.compile(rb"\}\s*,\s*\{|\n(?=\{|data:)")
_SHAPE: Final = 2_048
"""Bytes of a record that are looked at before the string it carries."""
_APART: Final = 64
"""Records of other streams that may stand between two of one."""
LONGEST: Final = 8 << 20
"""Bytes of one stream that are kept together where a text is worked off in blocks."""


@dataclass(slots=True)
class _Stream:
    """The strings of one stream: where each token starts and ends in the text."""

    last: int
    tokens: list[tuple[int, int]] = field(default_factory=list)


class Streams:
    """Finds secrets that no single record shows."""

    def __init__(self, finder: Finder, exact: ExactMatcher) -> None:
        self._finder = finder
        self._exact = exact

    def edits(self, text: bytes, *, rules: bool = True, hits: Iterable[Hit] | None = None) -> list[Edit]:
        """Secrets of JSON lines, server-sent events or arrays whose records are deltas, in any order.

        `hits`: what the finder's triggers say of the text, where that is known.
        """
        sign = self._finder.stream
        if not (self.may_be_in(text) if hits is None else any(number == sign for _, number in hits)):
            return []
        return [edit for stream in _streams(text) for edit in self._search(text, stream, rules=rules)]

    @staticmethod
    def may_be_in(text: bytes) -> bool:
        """False when it is certain that no record of the text belongs to a stream."""
        return bool(_signs().scan(text, 1))

    def _search(self, text: bytes, stream: _Stream, *, rules: bool) -> Iterator[Edit]:
        tokens, pieces = _readable(text, stream.tokens)
        joined = b"".join(pieces)
        found = [
            (start, end, -1, self._exact.values[owner]) for start, end, owner in self._exact.find(joined)
        ]
        if rules:
            found += [
                (start, end, rule, value or joined[start:end])
                for start, end, rule, value in self._finder.find(joined)
            ]
        if not found:
            return
        starts = [0]
        for piece in pieces:
            starts.append(starts[-1] + len(piece))
        for start, end, rule, value in found:
            first = bisect_right(starts, start) - 1
            at = first
            while at < len(pieces) and starts[at] < end:
                low, high = max(start, starts[at]), min(end, starts[at + 1])
                if low < high:
                    begin, stop = tokens[at]
                    span = json_string(text[begin:stop], pieces[at]).span(low - starts[at], high - starts[at])
                    yield Edit(begin + span[0], begin + span[1], rule, value, (), rest=low > start)
                at += 1


def _readable(text: bytes, tokens: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[bytes]]:
    """The tokens that are JSON strings, and what they say; plain text may hold anything between quotes."""
    kept: list[tuple[int, int]] = []
    pieces: list[bytes] = []
    for start, end in tokens:
        with suppress(ValueError):
            pieces.append(decode(text[start:end]))
            kept.append((start, end))
    return kept, pieces


@functools.cache
def _signs() -> Engine:
    return Engine([Expression(sign) for sign in _SIGNS], literal=True)


def _streams(text: bytes) -> Iterator[_Stream]:
    """Every stream of two records or more."""
    open_: dict[tuple[bytes, tuple[bytes, ...]], _Stream] = {}
    done = number = 0
    for match in _LEAF.finditer(text):
        number += 1
        shape = text[max(done, match.start() - _SHAPE) : match.end("key")]
        done = match.end()
        if _STREAM.search(shape) is None:
            continue
        key = match["key"], tuple(_INDEX.findall(_RECORD.split(shape)[-1]))
        stream = open_.get(key)
        if stream is not None and number - stream.last > _APART:
            if len(stream.tokens) > 1:
                yield stream
            stream = None
        if stream is None:
            stream = open_[key] = _Stream(number)
        stream.last = number
        stream.tokens.append(match.span("text"))
    yield from (stream for stream in open_.values() if len(stream.tokens) > 1)


def holds_records(text: bytes) -> bool:
    """True for a text that may hold records of a stream, which is judged as a whole."""
    return bool(_signs().scan(text, 1))


def is_delta(line: bytes) -> bool:
    """True for a line that may go on in the next one."""
    return len(line) < LONGEST >> 3 and bool(_signs().scan(line, 1))


def whole_streams(block: bytes) -> int:
    """Where to cut a block of whole lines so that no stream is cut; its end where that is too far back."""
    cut = len(block)
    while cut > 0:
        start = block.rfind(b"\n", 0, cut - 1) + 1
        if not is_delta(block[start:cut]):
            return cut
        if len(block) - start > LONGEST:
            return len(block)
        cut = start
    return 0 if len(block) < LONGEST else len(block)
