"""Secrets in plain text, also in JSON lines and quoted strings that stand inside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from archiver import jsonio
from archiver.redact import views
from archiver.redact.documents import KNOWN_PART, Documents
from archiver.redact.edits import Edit, settle
from archiver.redact.engine import Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.glance import Glance
from archiver.redact.quoted import quoted
from archiver.redact.streams import Streams
from archiver.redact.tokens import Path

_JSON_LINE_LIMIT = 4 << 20


class Texts:
    """Finds the secrets of plain texts."""

    def __init__(self, finder: Finder, exact: ExactMatcher, *, rules: bool) -> None:
        self._finder = finder
        self._exact = exact
        self._rules = rules
        self._documents = Documents(finder, exact)
        self._glance = Glance(finder, exact, self._documents)
        self._streams = Streams(finder, exact)

    def edits(self, data: bytes) -> list[Edit]:
        """Every secret of the text, in order, not overlapping."""
        hits = self._finder.hits(data) if self._rules else []
        known = [(end, KNOWN_PART) for end in self._exact.ends(data)]
        if not self._rules and self._exact:  # the rules have triggers of their own for what is escaped
            known += ((end, KNOWN_PART) for end in self._finder.escaped(data))
        told = sorted(dict.fromkeys([*hits, *known]))
        ends = [end for end, _ in told]
        if not ends and b"\x1b" not in data and b"delta" not in data:
            return []
        found = self._streams.edits(data, rules=self._rules)
        documents: list[tuple[int, int]] = []
        for start, stop, is_json in self._lines(data, ends):
            inside = told[bisect_right(ends, start) : bisect_right(ends, stop)]
            moved = [(end - start, number) for end, number in inside]
            if is_json:
                documents.append((start, stop))
                found += _moved(self._document(data[start:stop], moved), start)
            else:
                found += _moved(self._strings(data[start:stop], [end for end, _ in moved]), start)
        found += self._flat(data, hits, documents)
        return settle(found, self._finder)

    def _flat(self, data: bytes, hits: list[Hit], documents: list[tuple[int, int]]) -> Iterable[Edit]:
        """What the text itself shows, outside of lines that are JSON."""
        for start, end, owner in self._exact.find(data):
            if not _inside(end, documents):
                yield Edit(start, end, -1, self._exact.values[owner], ())
        flooded = self._finder.flooded
        outside = hits
        if documents:
            outside = [hit for hit in hits if hit[1] == flooded or not _inside(hit[0], documents)]
        for start, end, rule, value in self._finder.confirm(data, outside) if outside else ():
            yield Edit(start, end, rule, value or data[start:end], ())
        for mapped in views.views(data) if self._rules else ():
            for span in self._finder.find(mapped.data):
                start, end = mapped.span(span.start, span.end)
                value = span.value or mapped.data[span.start : span.end]
                yield Edit(start, end, span.rule, value, ())

    def _document(self, line: bytes, hits: list[Hit]) -> list[Edit]:
        if self._rules and not self._exact.ends(line) and not self._glance.suspicious(line, hits):
            return []
        return self._documents.edits(line, None, _no_opaque, rules=self._rules)

    def _lines(self, data: bytes, ends: list[int]) -> Iterable[tuple[int, int, bool]]:
        """The lines with a trigger in which something may be escaped, and whether they are JSON.

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
                yield start, stop, True
            elif b"\\" in line:
                yield start, stop, False

    def _strings(self, line: bytes, ends: list[int]) -> list[Edit]:
        """Secrets in strings that hold escapes and in which triggers end."""
        found: list[Edit] = []
        for at, token in quoted(line, ends):
            found += _moved(self._documents.edits(token, None, _no_opaque, rules=self._rules), at)
        return found


def _inside(end: int, lines: list[tuple[int, int]]) -> bool:
    """True when a match that ends at `end` ends in one of the lines, which are in order."""
    index = bisect_right(lines, (end - 1, end - 1)) - 1
    return any(start < end <= stop for start, stop in lines[max(0, index) : index + 2])


def _is_json(line: bytes) -> bool:
    if line.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        jsonio.loads(line)
    except ValueError:
        return False
    return True


def _moved(edits: Iterable[Edit], by: int) -> list[Edit]:
    return [replace(edit.moved(by), path=()) for edit in edits]


def _no_opaque(_path: Path) -> bool:
    return False
