"""A first look at a JSON text with triggers, which is nearly always in vain: it says no as cheaply as it can.

Strings with a trigger are decoded and searched, one by one; of a long one only what stands around its
triggers. Whatever is found is found again by `documents`, which knows what it is and where.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from archiver.redact import views
from archiver.redact.documents import KNOWN_PART, Documents
from archiver.redact.engine import Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.streams import Streams
from archiver.redact.tokens import decode, opening_before, string_around, string_at

_MANY: Final = 500
_LONGEST_NAME: Final = 128
_LONGEST_ESCAPE: Final = 6
_BEFORE: Final = 1_024
"""Raw bytes before a trigger, and (`_BEHIND`) behind it, that a confirmer of bounded sight may look at."""
_BEHIND: Final = 4_096
_LONGEST_RUN: Final = 8_192
_INSIDE = re.compile(rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+', re.DOTALL)
"""The text of a string token, up to its closing quote or to an escape that is cut in two."""
_RUN = re.compile(rb"[A-Za-z0-9+/=_\-.%~:]*+")
_JSON_HEAD = re.compile(rb"(?:[ \t\r\n]|\\[nrt])*(?:[{\[]|\\u)")
_QUOTE, _BACKSLASH = b'"\\'


class Glance:
    """Says of JSON texts that they hold no secret."""

    def __init__(self, finder: Finder, exact: ExactMatcher, documents: Documents) -> None:
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
        done = 0
        before: tuple[int, int] | None = None
        for at, (end, number) in enumerate(hits):
            if end <= done:
                continue
            if number in self._finder.bounded and (around := _around(text, hits, at, self._finder.bounded)):
                start, stop, done = around
                if self._tells(text, start, stop, hits):
                    return True
                continue
            place = string_around(text, end)
            if place is None:
                last, is_inside = string_at(text, end, before[1] if before is not None else 0)
                before = last or before
                if not is_inside:
                    if self._speaks(text, before, number):
                        return True
                    continue
                place = last
            if place is not None:
                before, done = place, place[1]
                if self._is_suspicious(text, place, hits, depth):
                    return True
        return False

    def _speaks(self, text: bytes, before: tuple[int, int] | None, number: int) -> bool:
        """True when a trigger that ends behind a string may be about keys and values: a walk will tell."""
        if number == self._finder.stream:
            return False
        if number != self._finder.name or before is None:
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
        inside = hits[
            bisect_right(hits, (start, len(hits))) : bisect_right(hits, (stop, self._finder.stream))
        ]
        data = decode(b'"%b"' % part) if b"\\" in part else part
        told = None
        if b"\\" not in data and all(number != self._finder.written for _, number in inside):
            told = _moved(part, start, inside)
        if told is None:
            told = self._finder.hits(data)
            if any(self._finder.find(view.data) for view in views.views(data)):
                return True
        return bool(told and (self._finder.confirm(data, told) or self._streams.edits(data, hits=told)))

    def hits(self, data: bytes) -> list[Hit]:
        """All triggers in a text, ascending."""
        return sorted({*self._finder.hits(data), *((end, KNOWN_PART) for end in self._exact.ends(data))})


def _moved(part: bytes, start: int, hits: list[Hit]) -> list[Hit] | None:
    """Triggers in a part of a string token, by their ends in the decoded text; None where one cuts an escape.

    That they are all that a scan of the decoded text would give is what triggers are made for.
    """
    moved: list[Hit] = []
    at = size = 0
    for end, number in hits:
        stop = end - start
        if number == KNOWN_PART or stop <= 0:
            continue
        piece = part[at:stop]
        if b"\\" in piece:
            try:
                piece = decode(b'"%b"' % piece)
            except ValueError:
                return None
        at, size = stop, size + len(piece)
        moved.append((size, number))
    return moved


def _around(text: bytes, hits: list[Hit], at: int, bounded: frozenset[int]) -> tuple[int, int, int] | None:
    """The part of a long string around a trigger, and the end of the last trigger well inside of it.

    None for a string that has to be looked at as a whole, or where nothing is certain.
    """
    first = last = hits[at][0]
    opening = opening_before(text, first, max(0, first - _BEFORE))
    if opening is None:
        return None
    if opening < 0:
        start = first - _BEFORE
        while text[start] & 0xC0 == 0x80:  # amid a character
            start -= 1
        while text[start - 1] == _BACKSLASH:
            start -= 1
    else:
        start = opening + 1
        if _JSON_HEAD.match(text, start):
            return None
    while at + 1 < len(hits) and hits[at + 1][0] <= last + _BEFORE and hits[at + 1][1] in bounded:
        at += 1
        last = hits[at][0]
    stop = _stop(text, start, last + _BEHIND)
    if stop is None or stop < last or (opening >= 0 and text[stop] == _QUOTE):
        return None
    return start, stop, last


def _stop(text: bytes, start: int, limit: int) -> int | None:
    """Where to end a part of a string: at its end, or past a limit where no token is cut; None: nowhere."""
    stop = _INSIDE.match(text, start, limit).end()  # type: ignore[union-attr]  # it matches anything
    if stop < limit:
        return stop if stop < len(text) else None
    stop = _RUN.match(text, stop, stop + _LONGEST_RUN).end()  # type: ignore[union-attr]
    while stop < len(text) and text[stop] & 0xC0 == 0x80:
        stop += 1
    return stop if stop < min(limit + _LONGEST_RUN, len(text)) else None
