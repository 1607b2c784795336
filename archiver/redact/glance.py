"""A first look at a JSON text with triggers, which is nearly always in vain: it says no as cheaply as it can.

Strings with a trigger are decoded and searched, one by one; of a long one only what stands around its
triggers. Whatever is found is found again by `documents`, which knows what it is and where.
"""

from __future__ import annotations

import re
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
_BEFORE: Final = 1_024
"""Raw bytes before a trigger, and (`_BEHIND`) behind it, that a confirmer of bounded sight may look at."""
_BEHIND: Final = 4_096
_LONGEST_RUN: Final = 8_192
_INSIDE = re.compile(rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+', re.DOTALL)
"""The text of a string token, up to its closing quote or to an escape that is cut in two."""
_RUN = re.compile(rb"[A-Za-z0-9+/=_\-.%~:]*+")
_JSON_HEAD = re.compile(rb"(?:[ \t\r\n]|\\[nrt])*[{\[]")
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
                data, done = around
                if self._tells(data):
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
                if self._is_suspicious(text[place[0] : done], depth):
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

    def _is_suspicious(self, token: bytes, depth: int) -> bool:
        """True for a string in which something would be found, or that says something of other strings."""
        data = decode(token)
        # That do a name written with escapes, and the kind of a manifest.
        if data == b"Secret" or (len(data) <= _LONGEST_NAME and b"\\u" in token):
            return True
        if self._documents.is_nested(data, depth):
            return self.suspicious(data, self.hits(data), depth + 1)
        return bool(self._exact.find(data)) or self._tells(data)

    def _tells(self, data: bytes) -> bool:
        """True for decoded text in which the rules find something."""
        hits = self._finder.hits(data)
        if hits and (self._finder.confirm(data, hits) or self._streams.edits(data, hits=hits)):
            return True
        return any(self._finder.find(view.data) for view in views.views(data))

    def hits(self, data: bytes) -> list[Hit]:
        """All triggers in a text, ascending."""
        return sorted({*self._finder.hits(data), *((end, KNOWN_PART) for end in self._exact.ends(data))})


def _around(text: bytes, hits: list[Hit], at: int, bounded: frozenset[int]) -> tuple[bytes, int] | None:
    """The decoded text around a trigger in a long string, and the end of the last trigger well inside of it.

    None for a string that has to be looked at as a whole, or where nothing is certain.
    """
    first = last = hits[at][0]
    opening = opening_before(text, first, max(0, first - _BEFORE))
    if opening is None:
        return None
    if opening < 0:
        start = first - _BEFORE
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
    try:
        return decode(b'"%b"' % text[start:stop]), last
    except ValueError:
        return None


def _stop(text: bytes, start: int, limit: int) -> int | None:
    """Where to end a part of a string: at its end, or past a limit where no token is cut; None: nowhere."""
    stop = _INSIDE.match(text, start, limit).end()  # type: ignore[union-attr]  # it matches anything
    if stop < limit:
        return stop if stop < len(text) else None
    run = _RUN.match(text, stop, stop + _LONGEST_RUN)
    stop = run.end() if run is not None else stop
    return stop if stop < min(limit + _LONGEST_RUN, len(text)) else None
