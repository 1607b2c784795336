"""A first look at a JSON text with triggers, which is nearly always in vain: it says no as cheaply as it can.

Strings with a trigger are decoded and searched, one by one; of a long one only what stands around its
triggers. Whatever is found is found again by `documents`, which knows what it is and where.
"""

from __future__ import annotations

import functools
import hashlib
import re
from bisect import bisect_right
from typing import Final, NamedTuple

from archiver.redact import views
from archiver.redact.documents import KNOWN_PART, Documents
from archiver.redact.engine import Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.streams import Streams
from archiver.redact.tokens import decode, opening_before, string_around, string_at, unescaped

_MANY: Final = 500
_MOST_VAIN: Final = 100_000
_LONGEST_NAME: Final = 128
_LONGEST_ESCAPE: Final = 6
_BEFORE: Final = 1_024
"""Raw bytes before a trigger, and (`_BEHIND`) behind it, that a confirmer of bounded sight may look at."""
_BEHIND: Final = 4_096
_LONGEST_LINE: Final = 1 << 20
_LONGEST_RUN: Final = 8_192
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_RUN = re.compile(rb"[A-Za-z0-9+/=_\-.%~:]*+")
_JSON_HEAD = re.compile(rb"(?:[ \t\r\n]|\\[nrt])*(?:[{\[]|\\u)")
_QUOTE, _BACKSLASH = b'"\\'


class _Part(NamedTuple):
    """A part of a string: the quote that opens the string, the part's own limits, its last trigger's end."""

    opening: int
    start: int
    stop: int
    last: int


class Glance:
    """Says of JSON texts that they hold no secret."""

    def __init__(self, finder: Finder, exact: ExactMatcher, documents: Documents) -> None:
        """`documents` by the same rules and values."""
        self._vain = vain_by(finder.rules.version)
        self._finder = finder
        self._exact = exact
        self._documents = documents
        self._streams = Streams(finder, exact)
        self._says = finder.rules.assigned.names.says

    def suspicious(self, text: bytes, hits: list[Hit], depth: int = 0) -> bool:
        """False when it is certain that `Documents.edits` would find nothing.

        `hits` are triggers in the raw text, ascending; `KNOWN_PART` is the number of all that may be a known
        value. A trigger inside a string matters only if that string, decoded, holds a secret.
        """
        if len(hits) > _MANY or self._streams.edits(text, hits=hits):
            return True
        bounded = self._finder.bounded
        quotes = unescaped(text) if len(text) <= _LONGEST_LINE else b""
        done = 0
        before = (0, 0)
        part: _Part | None = None
        for at, (end, number) in enumerate(hits):
            if end <= done:
                continue
            part = _around(text, quotes, hits, at, bounded, part) if number in bounded else None
            if part is not None:
                done = part.last
                found = self._tells(text, part.start, part.stop, hits)
            else:
                place, is_inside = _string(text, quotes, end, before)
                before = place
                found = is_inside and self._is_suspicious(text, place, hits, depth)
                found = found or (not is_inside and self._speaks(text, place, number))
                done = max(done, place[1])
            if found:
                return True
        return False

    def _speaks(self, text: bytes, before: tuple[int, int], number: int) -> bool:
        """True when a trigger that ends behind a string may be about keys and values: a walk will tell."""
        if number == self._finder.stream:
            return False
        if number != self._finder.name or before == (0, 0):
            return True
        name = decode(text[slice(*before)])
        return any(
            self._says(one.decode("utf-8", "surrogatepass")) for one in (name, name.removeprefix(b"--"))
        )

    def _is_suspicious(self, text: bytes, place: tuple[int, int], hits: list[Hit], depth: int) -> bool:
        """True for a string in which something would be found, or that says something of other strings."""
        start, stop = place[0] + 1, place[1] - 1
        # That do the kind of a manifest, and a name written with escapes.
        if text[start:stop] == b"Secret" or (
            stop - start <= _LONGEST_ESCAPE * _LONGEST_NAME
            and text.find(b"\\u", start, stop) >= 0
            and len(decode(text[place[0] : place[1]])) <= _LONGEST_NAME
        ):
            return True
        if self._exact or _JSON_HEAD.match(text, start):
            data = decode(text[place[0] : place[1]])
            if self._documents.is_nested(data, depth):
                return self.suspicious(data, self.hits(data), depth + 1)
            if self._exact.find(data):
                return True
        return self._tells(text, start, stop, hits)

    def _tells(self, text: bytes, start: int, stop: int, hits: list[Hit]) -> bool:
        """True for a part of a string in which the rules find something."""
        part = text[start:stop]
        name = hashlib.sha256(part).digest()[:16]
        if name in self._vain:
            return False
        first = bisect_right(hits, (start, len(hits)))
        found = self._finds(part, start, hits[first : bisect_right(hits, (stop, self._finder.stream))])
        if not found and len(self._vain) < _MOST_VAIN:
            self._vain.add(name)
        return found

    def _finds(self, part: bytes, start: int, hits: list[Hit]) -> bool:
        """The same, of a part that is new; `hits` are those inside."""
        if _BACKSLASH not in part:
            data = part
            told = [(end - start, number) for end, number in hits if number != KNOWN_PART]
        else:
            data = decode(b'"%b"' % part)
            told = self._finder.hits(data)
        if told and (self._finder.confirm(data, told) or self._streams.edits(data, hits=told)):
            return True
        if next(self._documents.quoted(data, told), None) is not None:
            return True
        return any(map(self._finder.find, views.readings(data)))

    def hits(self, data: bytes) -> list[Hit]:
        """All triggers in a text, ascending."""
        return sorted({*self._finder.hits(data), *((end, KNOWN_PART) for end in self._exact.ends(data))})


@functools.lru_cache(maxsize=4)
def vain_by(_version: str) -> set[bytes]:
    """Digests of texts in which rules of that version found nothing; sessions repeat them."""
    return set()


def _string(text: bytes, quotes: bytes, end: int, before: tuple[int, int]) -> tuple[tuple[int, int], bool]:
    """The string token in which a match ends, and True; or the last one before its end, and False.

    `before` is a token that ends before it, or (0, 0).
    """
    place = string_around(text, end, quotes)
    if place is not None:
        return place, True
    last, is_inside = string_at(text, end, before[1])
    return last or before, is_inside


def _around(
    text: bytes, quotes: bytes, hits: list[Hit], at: int, bounded: frozenset[int], known: _Part | None
) -> _Part | None:
    """The part of a long string around a trigger.

    None for a string that has to be looked at as a whole, or where nothing is certain. `known` is the part
    before it, which may be one of the same string.
    """
    first = last = hits[at][0]
    opening = None
    if known is not None and known.stop < first:
        opening = opening_before(text, first, known.stop, quotes)
    if known is not None and opening == -1:
        opening = known.opening
    else:
        opening = opening or opening_before(text, first, 0, quotes)
        if opening is None or _JSON_HEAD.match(text, opening + 1):
            return None
    start = max(opening + 1, first - _BEFORE)
    while text[start] & 0xC0 == 0x80:  # amid a character
        start -= 1
    while start > opening + 1 and text[start - 1] == _BACKSLASH:
        start -= 1
    while at + 1 < len(hits) and hits[at + 1][0] <= last + _BEFORE and hits[at + 1][1] in bounded:
        at += 1
        last = hits[at][0]
    stop = _stop(text, quotes, start, last + _BEHIND)
    if stop is None or stop < last or (start == opening + 1 and text[stop] == _QUOTE):
        return None
    return _Part(opening, start, stop, last)


def _stop(text: bytes, quotes: bytes, start: int, limit: int) -> int | None:
    """Where to end a part of a string: at its end, or past a limit where no token is cut; None: nowhere."""
    limit = min(limit, len(text))
    while text[limit - 1] == _BACKSLASH:
        limit -= 1
    part = quotes[start:limit] if quotes else unescaped(text[start:limit])
    stop = start + part.find(b'"')
    if stop >= start:
        return stop
    stop = start + len(part)
    escape = part.rfind(b"\\", -_LONGEST_ESCAPE)
    if escape >= 0 and _ESCAPE.match(part, escape) is None:
        return start + escape
    stop = _RUN.match(text, stop, stop + _LONGEST_RUN).end()  # type: ignore[union-attr]  # it matches anything
    while stop < len(text) and text[stop] & 0xC0 == 0x80:
        stop += 1
    return stop if stop < min(limit + _LONGEST_RUN, len(text)) else None
