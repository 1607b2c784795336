"""Every encoding that is undone, and what leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from archiver.redact.engine import Expression
from archiver.redact.views import dumps, encoded, escaped, words
from archiver.redact.views.mapped import Reading

_Decode = Callable[[bytes, list[int]], Iterable[Reading]]

_CODED: Final[tuple[tuple[Expression, _Decode], ...]] = (
    (escaped.WRITTEN, escaped.unescaped),
    (escaped.ESCAPES, escaped.unescaped),
    (escaped.PERCENT, escaped.percent_decoded),
    (encoded.PADDED, encoded.base64_text),
    (encoded.INTRODUCED, encoded.base64_text),
    (encoded.HEX, encoded.hex_text),
    (dumps.DUMP, dumps.dumps),
)
"""Triggers, in Vectorscan's syntax, that match raw JSON text as well as decoded text; and their decoders."""


class Coded:
    """The triggers of all encodings, and what they lead to."""

    def __init__(self, prefixes: Iterable[bytes]) -> None:
        """`prefixes` of formats, which are looked for in base64 too."""
        spoken = [(expression, encoded.base64_text) for expression in words.expressions(prefixes)]
        coded = [*_CODED, *spoken]
        self.expressions = [expression for expression, _ in coded]
        self._decoders = [decode for _, decode in coded]
        self.looks_behind = self.expressions.index(encoded.PADDED)
        """The one trigger that ends a byte behind what it is about."""

    def readings(self, data: bytes, hits: Iterable[tuple[int, int]]) -> Iterator[Reading]:
        """All that is encoded in a text where triggers end: (end, index in `expressions`)."""
        ends: dict[_Decode, set[int]] = {}
        for end, number in hits:
            ends.setdefault(self._decoders[number], set()).add(end)
        for decode, found in ends.items():
            yield from decode(data, sorted(found))
