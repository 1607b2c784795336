"""Quoted strings with escapes inside a text that is no JSON, such as a session that a command printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from archiver import jsonio

_STRING: Final = re.compile(rb'"[^"\\\n\x00]*+(?:\\[^\n\x00][^"\\\n\x00]*+)*+"')
_LONGEST: Final = 256 << 10
_FARTHEST: Final = 16
"""Quotes before a trigger that may open its string: those between strings open none."""


def quoted(data: bytes, ends: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The JSON string tokens with escapes in which triggers end, with where they begin; `ends` ascending."""
    if b"\\" not in data or b'"' not in data:
        return
    done = 0
    for end in ends:
        if end <= done:
            continue
        found = _around(data, end, max(done, end - _LONGEST))
        if found is not None:
            done = found[0] + len(found[1])
            yield found


def _around(data: bytes, end: int, low: int) -> tuple[int, bytes] | None:
    at = end
    for _ in range(_FARTHEST):
        at = data.rfind(b'"', low, at)
        if at < 0:
            return None
        before = data[low:at]
        if (len(before) - len(before.rstrip(b"\\"))) % 2:
            continue
        match = _STRING.match(data, at, at + _LONGEST)
        if match is not None and match.end() >= end:
            return (at, match[0]) if b"\\" in match[0] and _is_json(match[0]) else None
    return None


def _is_json(token: bytes) -> bool:
    try:
        jsonio.loads(token)
    except ValueError:
        return False
    return True
