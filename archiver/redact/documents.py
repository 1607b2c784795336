"""Secrets in one JSON text: tokens decoded, keys too, JSON inside strings, and what keys say of values.

The text is read token by token, not as a value: so every byte that was there is judged (also the first of two
equal keys), and each secret has its place in the raw text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate

from archiver import jsonio
from archiver.redact import views
from archiver.redact.edits import Edit, settle
from archiver.redact.engine import Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.quoted import quoted
from archiver.redact.streams import Streams
from archiver.redact.tokens import Leaf, Path, Walk
from archiver.redact.work import SEPARATOR
from archiver.transcripts import seals

Opaque = Callable[[Path], bool]
KNOWN_PART = -1
"""The number of a trigger that is no expression's: something may be a known value."""
_DEEPEST = 6
_BATCH = 256 << 10
_NESTED_LIMIT = 32 << 20
_AN_ID = 256
"""Of opaque text no longer than this, chance makes no credential; of signatures it might."""


class Documents:
    """Finds the secrets of JSON texts."""

    def __init__(self, finder: Finder, exact: ExactMatcher) -> None:
        self._finder = finder
        self._exact = exact
        self._streams = Streams(finder, exact)
        self._assigned = finder.rules.assigned
        self._manifest = finder.rules.index("kubernetes-secret")

    def edits(self, text: bytes, ends: list[int] | None, opaque: Opaque, *, rules: bool = True) -> list[Edit]:
        """Every secret of the text, in order, not overlapping.

        `ends` are end offsets of triggers in the raw text; strings without one are not looked at (None: look
        at all). `rules=False` searches for known values only.
        """
        return settle(self._walk(text, ends, opaque, (), rules, 0), self._finder)

    @staticmethod
    def is_nested(data: bytes, depth: int) -> bool:
        """True for a string that is JSON itself and is read as such."""
        if depth >= _DEEPEST or len(data) > _NESTED_LIMIT or not _looks_nested(data):
            return False
        try:
            jsonio.loads(data)
        except ValueError:
            return False
        return True

    def _walk(
        self, text: bytes, ends: list[int] | None, opaque: Opaque, base: Path, rules: bool, depth: int
    ) -> list[Edit]:
        walk = Walk(text, ends, base, self._assigned.names)
        found = self._streams.edits(text, rules=rules)
        batch: list[Leaf] = []
        size = 0
        for leaf in walk.leaves():
            batch.append(leaf)
            size += len(leaf.data)
            if size > _BATCH:
                self._search(text, batch, opaque, rules, depth, found)
                self._fields(text, walk, opaque, rules, found)
                batch, size = [], 0
        self._search(text, batch, opaque, rules, depth, found)
        self._fields(text, walk, opaque, rules, found)
        return found

    def _fields(self, text: bytes, walk: Walk, opaque: Opaque, rules: bool, found: list[Edit]) -> None:
        """What the structure said so far: values of secret names, data of Kubernetes Secrets."""
        if rules:
            for leaf, name, says in walk.fields:
                start, end = _without_scheme(leaf.data)
                rule = self._assigned.rule(name, says, leaf.data[start:end])
                if rule is not None and not opaque(leaf.path):
                    found.append(_edit(text, leaf, start, end, rule))
            found.extend(_whole(text, leaf, self._manifest) for leaf in walk.manifest)
        walk.fields.clear()
        walk.manifest.clear()

    def _search(
        self, text: bytes, batch: list[Leaf], opaque: Opaque, rules: bool, depth: int, found: list[Edit]
    ) -> None:
        plain: list[Leaf] = []
        short: list[Leaf] = []
        for leaf in batch:
            if opaque(leaf.path):
                # A value found elsewhere may be an id or a part of a signature here, which must stay.
                self._known(text, leaf, found, registered=True)
                if len(leaf.data) <= _AN_ID:
                    short.append(leaf)
            elif not self._descend(text, leaf, opaque, rules, depth, found):
                plain.append(leaf)
        if rules:
            self._apply_rules(text, plain, found)
            self._apply_formats(text, short, found)
            self._apply_quoted(text, plain, depth, found)
        for leaf in plain:
            self._known(text, leaf, found)
            for edit in self._streams.edits(leaf.data, rules=rules):
                moved = _edit(text, leaf, edit.start, edit.end, edit.rule, edit.value)
                found.append(replace(moved, rest=edit.rest))

    def _known(self, text: bytes, leaf: Leaf, found: list[Edit], *, registered: bool = False) -> None:
        for start, end, owner in self._exact.find(leaf.data, registered=registered):
            found.append(_edit(text, leaf, start, end, -1, self._exact.values[owner]))

    def _descend(
        self, text: bytes, leaf: Leaf, opaque: Opaque, rules: bool, depth: int, found: list[Edit]
    ) -> bool:
        """Look into a string that is JSON itself; False when it is none."""
        if not self.is_nested(leaf.data, depth):
            return False
        hits = self._finder.hits(leaf.data)
        ends = sorted({end for end, _ in hits}.union(self._exact.ends(leaf.data)))
        wanted = None if self._finder.is_cut(hits) else ends
        judge = opaque if seals.may_hold_items(leaf.path) else _never
        inner = self._walk(leaf.data, wanted, judge, leaf.path, rules, depth + 1) if ends else []
        found.extend(
            replace(_edit(text, leaf, edit.start, edit.end, edit.rule, edit.value, edit.path), rest=edit.rest)
            for edit in inner
        )
        return True

    def quoted(self, data: bytes, hits: list[Hit], depth: int = 0) -> Iterator[tuple[int, list[Edit]]]:
        """What quoted strings inside a text hold that shows when they are decoded, and where they begin.

        `hits` are the triggers of the text; those of rules are seen as they are.
        """
        ends = [end for end, number in hits if self._finder.is_of_view(number)]
        for at, token in quoted(data, ends) if depth < _DEEPEST else ():
            edits = self._walk(token, None, _never, (), True, depth + 1)
            if edits:
                yield at, edits

    def _apply_quoted(self, text: bytes, leaves: list[Leaf], depth: int, found: list[Edit]) -> None:
        for leaf in leaves:
            if b"\\" not in leaf.data or b'"' not in leaf.data:
                continue
            for at, edits in self.quoted(leaf.data, self._finder.hits(leaf.data), depth):
                for edit in edits:
                    made = _edit(text, leaf, at + edit.start, at + edit.end, edit.rule, edit.value)
                    found.append(replace(made, rest=edit.rest))

    def _apply_formats(self, text: bytes, leaves: list[Leaf], found: list[Edit]) -> None:
        """Find what has the format of a provider's credential where an id is due."""
        for leaf in leaves:
            spans = (span for span in self._finder.find(leaf.data) if self._finder.is_format(span.rule))
            found.extend(_edit(text, leaf, span.start, span.end, span.rule) for span in spans)

    def _apply_rules(self, text: bytes, leaves: list[Leaf], found: list[Edit]) -> None:
        pieces: list[bytes] = []
        sources: list[tuple[Leaf, views.Mapped | None]] = []
        for leaf in leaves:
            pieces.append(leaf.data)
            sources.append((leaf, None))
            for mapped in views.views(leaf.data):
                pieces.append(mapped.data)
                sources.append((leaf, mapped))
        joined = SEPARATOR.join(pieces)
        spans = self._finder.find(joined)
        if not spans:
            return
        starts = [0, *accumulate(len(piece) + len(SEPARATOR) for piece in pieces)]
        for span in spans:
            index = bisect_right(starts, span.start) - 1
            leaf, view = sources[index]
            start = span.start - starts[index]
            end = min(span.end - starts[index], len(pieces[index]))
            value = span.value or pieces[index][start:end]
            if view is not None:
                start, end = view.span(start, end)
            if end > start:
                found.append(_edit(text, leaf, start, end, span.rule, value))


def _looks_nested(data: bytes) -> bool:
    head = data[:64].lstrip()
    return head[:1] in (b"{", b"[") and data[-64:].rstrip()[-1:] in (b"}", b"]")


_SCHEME = re.compile(rb"(?:Bearer|Basic|Token|ApiKey|Bot|Digest|SSWS)[ \t]+", re.IGNORECASE)


def _without_scheme(value: bytes) -> tuple[int, int]:
    match = _SCHEME.match(value)
    return (match.end() if match else 0), len(value)


def _never(_path: Path) -> bool:
    """A dialect says nothing of JSON inside strings."""
    return False


def _edit(
    text: bytes,
    leaf: Leaf,
    start: int,
    end: int,
    rule: int,
    value: bytes | None = None,
    path: Path | None = None,
) -> Edit:
    """The edit of `leaf.data[start:end]`, in bytes of the raw text."""
    if leaf.mapped is None:
        leaf.mapped = views.json_string(text[leaf.start : leaf.end], leaf.data)
    first, last = leaf.mapped.span(start, end)
    secret = leaf.data[start:end] if value is None else value
    return Edit(leaf.start + first, leaf.start + last, rule, secret, leaf.path if path is None else path)


def _whole(text: bytes, leaf: Leaf, rule: int) -> Edit:
    return _edit(text, leaf, 0, len(leaf.data), rule)
