"""Every encoding that is undone, and what leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from archiver.redact.engine import Expression
from archiver.redact.views import dumps, encoded, escaped
from archiver.redact.views.mapped import Reading

_Decode = Callable[[bytes, list[int]], Iterable[Reading]]

CODED: Final[tuple[tuple[Expression, _Decode], ...]] = (
    (escaped.WRITTEN, escaped.unescaped),
    (escaped.ESCAPES, escaped.unescaped),
    (escaped.PERCENT, escaped.percent_decoded),
    (encoded.BASE64, encoded.base64_text),
    (encoded.HEX, encoded.hex_text),
    (dumps.DUMP, dumps.dumps),
)
"""Triggers, in Vectorscan's syntax, that match raw JSON text as well as decoded text; and their decoders."""


def readings(data: bytes, ends: Mapping[int, Iterable[int]]) -> Iterator[Reading]:
    """All that is encoded in a text where triggers end: `ends` by the number of the trigger in `CODED`."""
    for number, found in ends.items():
        yield from CODED[number][1](data, sorted(set(found)))
