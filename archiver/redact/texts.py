"""Secrets in plain text, also in JSON lines and quoted strings that stand inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from archiver import jsonio
from archiver.redact import views
from archiver.redact.documents import Documents, Edit, settle
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.tokens import Path

_STRING = re.compile(rb'"[^"\\\n\x00]*+(?:\\[^\n\x00][^"\\\n\x00]*+)*+"')
_JSON_LINE_LIMIT = 4 << 20


class Texts:
    """Finds the secrets of plain texts."""

    def __init__(self, finder: Finder, exact: ExactMatcher, *, rules: bool) -> None:
        self._finder = finder
        self._exact = exact
        self._rules = rules
        self._documents = Documents(finder, exact)

    def edits(self, data: bytes) -> list[Edit]:
        """Every secret of the text, in order, not overlapping."""
        known = self._exact.find(data)
        found = [Edit(start, end, -1, self._exact.values[owner], ()) for start, end, owner in known]
        ends = self._exact.ends(data)
        if self._rules:
            hits = self._finder.hits(data)
            ends += [end for end, _ in hits]
            found += [
                Edit(start, end, rule, data[start:end], ())
                for start, end, rule in (self._finder.confirm(data, hits) if hits else ())
            ]
            found += self._other_views(data)
        for start, stop, inside in self._lines(data, sorted(set(ends))):
            if inside is not None:
                found = [edit for edit in found if edit.end <= start or edit.start >= stop]
                found += _moved(inside, start)
            else:
                found += _moved(self._strings(data[start:stop]), start)
        return settle(found, self._finder)

    def _other_views(self, data: bytes) -> Iterable[Edit]:
        for mapped in views.views(data):
            for span in self._finder.find(mapped.data):
                start, end = mapped.span(span.start, span.end)
                yield Edit(start, end, span.rule, mapped.data[span.start : span.end], ())

    def _lines(self, data: bytes, ends: list[int]) -> Iterable[tuple[int, int, list[Edit] | None]]:
        """The lines with a trigger that may hide something: what is in them, or None when they are not JSON.

        A JSON line is judged as JSON alone: spans of its raw text could cut an escape in two.
        """
        done = -1
        for end in ends:
            if end <= done:
                continue
            start = data.rfind(b"\n", 0, end - 1) + 1
            stop = data.find(b"\n", end - 1)
            done = stop = len(data) if stop < 0 else stop
            if stop - start > _JSON_LINE_LIMIT:
                continue
            line = data[start:stop]
            if _is_json(line):
                yield start, stop, self._documents.edits(line, None, _no_opaque, rules=self._rules)
            elif b"\\" in line:
                yield start, stop, None

    def _strings(self, line: bytes) -> list[Edit]:
        """Secrets in strings that hold escapes."""
        found: list[Edit] = []
        for match in _STRING.finditer(line):
            token = match[0]
            if b"\\" not in token:
                continue
            try:
                jsonio.loads(token)
            except ValueError:
                continue
            edits = self._documents.edits(token, None, _no_opaque, rules=self._rules)
            found += _moved(edits, match.start())
        return found


def _is_json(line: bytes) -> bool:
    if line.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        jsonio.loads(line)
    except ValueError:
        return False
    return True


def _moved(edits: Iterable[Edit], by: int) -> list[Edit]:
    return [Edit(edit.start + by, edit.end + by, edit.rule, edit.value, ()) for edit in edits]


def _no_opaque(_path: Path) -> bool:
    return False
