"""Secrets in one JSON text: tokens decoded, keys too, JSON inside strings, and what keys say of values.

The text is read token by token, not as a value: so every byte that was there is judged (also the first of two
equal keys), and each secret has its place in the raw text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from archiver import jsonio
from archiver.redact import views
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import SEPARATOR, Finder
from archiver.redact.judge import is_secret_data
from archiver.redact.names import Names, Says

Path = tuple[str | int, ...]
Opaque = Callable[[Path], bool]
Said = tuple[str, Says]
"""A name, and what it says of its value."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],]', re.DOTALL)
_QUOTE, _OPEN, _CLOSE, _LIST, _END = b'"{}[]'
_NAME_KEYS: Final = frozenset({"name", "key", "header", "variable", "field"})
_VALUE_KEYS: Final = frozenset({"value", "val", "values"})
_DATA_KEYS: Final = frozenset({"data", "stringData"})
_DEEPEST = 6
_LONGEST_NAME = 128
_BATCH = 256 << 10
_NESTED_LIMIT = 32 << 20


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of the raw text to replace: the rule (-1: a known value), the secret, and where it stands."""

    start: int
    end: int
    rule: int
    value: bytes
    path: Path


class _Frame:
    """One open object or array."""

    __slots__ = ("data", "is_dict", "is_secret", "key", "named", "pending", "says", "says_next", "wants_key")

    def __init__(self, *, is_dict: bool, says: Said | None) -> None:
        self.is_dict = is_dict
        self.wants_key = is_dict
        self.key: str | int = "" if is_dict else 0
        self.says = says
        """What the key (or the key of the array) says of the values."""
        self.says_next: Said | None = None
        self.named: Said | None = None
        self.pending: _Leaf | None = None
        self.is_secret = False
        self.data: list[_Leaf] = []


class _Leaf:
    """One string token: where it is, and its decoded bytes."""

    __slots__ = ("data", "end", "mapped", "path", "start")

    def __init__(self, start: int, end: int, path: Path, data: bytes) -> None:
        self.start, self.end, self.path, self.data = start, end, path, data
        self.mapped: views.Mapped | None = None


_Field = tuple[_Leaf, str, Says]


class Documents:
    """Finds the secrets of JSON texts."""

    def __init__(self, finder: Finder, exact: ExactMatcher) -> None:
        self._finder = finder
        self._exact = exact
        self._assigned = finder.rules.assigned
        self._manifest = finder.rules.index("kubernetes-secret")

    def edits(self, text: bytes, ends: list[int] | None, opaque: Opaque, *, rules: bool = True) -> list[Edit]:
        """Every secret of the text, in order, not overlapping.

        `ends` are end offsets of triggers in the raw text; strings without one are not looked at (None: look
        at all). `rules=False` searches for known values only.
        """
        return settle(self._walk(text, ends, opaque, (), rules, 0), self._finder)

    def suspicious(self, text: bytes, ends: list[int], depth: int = 0) -> bool:
        """False when it is certain that `edits` would find nothing, which is far cheaper to know.

        `ends` as for `edits`, ascending. A trigger inside a string matters only if that string, decoded,
        holds a secret; any other trigger may be about keys and values, which only the walk knows.
        """
        done = 0
        for end in ends:
            if end <= done:
                continue
            place = _string_around(text, end)
            if place is None:
                return True
            done = place[1]
            token = text[place[0] : done]
            data = _decode(token)
            # A name written with escapes, and the kind of a manifest, say something of other strings.
            if data == b"Secret" or (len(data) <= _LONGEST_NAME and b"\\u" in token):
                return True
            if self._is_nested(data, depth):
                if self.suspicious(data, self._ends(data), depth + 1):
                    return True
            elif self._finder.find(data) or any(self._finder.find(view.data) for view in views.views(data)):
                return True
        return False

    def _ends(self, data: bytes) -> list[int]:
        return sorted({end for end, _ in self._finder.hits(data)}.union(self._exact.ends(data)))

    def _is_nested(self, data: bytes, depth: int) -> bool:
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
        walk = _Walk(text, ends, base, self._assigned.names)
        found: list[Edit] = []
        batch: list[_Leaf] = []
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

    def _fields(self, text: bytes, walk: _Walk, opaque: Opaque, rules: bool, found: list[Edit]) -> None:
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
        self, text: bytes, batch: list[_Leaf], opaque: Opaque, rules: bool, depth: int, found: list[Edit]
    ) -> None:
        plain: list[_Leaf] = []
        for leaf in batch:
            if rules and opaque(leaf.path):
                self._known(text, leaf, found)
            elif not self._descend(text, leaf, rules, depth, found):
                plain.append(leaf)
        if rules:
            self._apply_rules(text, plain, found)
        for leaf in plain:
            self._known(text, leaf, found)

    def _known(self, text: bytes, leaf: _Leaf, found: list[Edit]) -> None:
        for start, end, owner in self._exact.find(leaf.data):
            found.append(_edit(text, leaf, start, end, -1, self._exact.values[owner]))

    def _descend(self, text: bytes, leaf: _Leaf, rules: bool, depth: int, found: list[Edit]) -> bool:
        """Look into a string that is JSON itself; False when it is none."""
        if not self._is_nested(leaf.data, depth):
            return False
        ends = self._ends(leaf.data)
        inner = self._walk(leaf.data, ends, _never, leaf.path, rules, depth + 1) if ends else []
        found.extend(
            _edit(text, leaf, edit.start, edit.end, edit.rule, edit.value, edit.path) for edit in inner
        )
        return True

    def _apply_rules(self, text: bytes, leaves: list[_Leaf], found: list[Edit]) -> None:
        pieces: list[bytes] = []
        sources: list[tuple[_Leaf, views.Mapped | None]] = []
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
            value = pieces[index][start:end]
            if view is not None:
                start, end = view.span(start, end)
            if end > start:
                found.append(_edit(text, leaf, start, end, span.rule, value))


class _Walk:
    """Reads the tokens of one JSON text and keeps what the structure says."""

    def __init__(self, text: bytes, ends: list[int] | None, base: Path, names: Names) -> None:
        self._text = text
        self._ends = ends
        self._next = 0
        self._base = base
        self._names = names
        self._frames: list[_Frame] = [_Frame(is_dict=False, says=None)]
        self._secrets = b'"Secret"' in text
        self.fields: list[_Field] = []
        self.manifest: list[_Leaf] = []

    def leaves(self) -> Iterable[_Leaf]:
        """The string tokens worth looking at, decoded, keys included."""
        text, frames = self._text, self._frames
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            first = text[start]
            if first == _QUOTE:
                leaf = self._string(start, end)
                if leaf is not None:
                    yield leaf
            elif first in (_OPEN, _LIST):
                self._open(is_dict=first == _OPEN)
            elif first in (_CLOSE, _END):
                if len(frames) > 1:
                    self._close(frames.pop())
            else:
                frame = frames[-1]
                if frame.is_dict:
                    frame.wants_key = True
                else:
                    frame.key += 1  # type: ignore[operator]  # the key of an array frame is its index

    def _open(self, *, is_dict: bool) -> None:
        frame = self._frames[-1]
        self._frames.append(_Frame(is_dict=is_dict, says=None if is_dict else frame.says))

    def _close(self, frame: _Frame) -> None:
        if not self._secrets or not frame.is_dict:
            return
        if frame.is_secret:
            self.manifest.extend(leaf for leaf in frame.data if is_secret_data(leaf.data))
        elif self._frames[-1].key in _DATA_KEYS:
            self._frames[-1].data.extend(frame.data)

    def _string(self, start: int, end: int) -> _Leaf | None:
        frame = self._frames[-1]
        if frame.wants_key:
            frame.wants_key = False
            key = frame.key = _decode(self._text[start:end]).decode("utf-8", "surrogatepass")
            frame.says = self._said(key)
            return self._leaf(start, end) if self._wanted(end) else None
        structured = frame.says is not None or frame.says_next is not None
        if structured or self._secrets or frame.key in _NAME_KEYS or frame.key in _VALUE_KEYS:
            leaf = self._leaf(start, end)
            self._structure(frame, leaf)
            return leaf if self._wanted(end) else None
        if self._wanted(end) or self._text.startswith(b'"--', start):
            leaf = self._leaf(start, end)
            if not frame.is_dict and leaf.data.startswith(b"--") and b"=" not in leaf.data:
                frame.says_next = self._said(leaf.data[2:].decode("utf-8", "replace"))
            return leaf
        return None

    def _structure(self, frame: _Frame, leaf: _Leaf) -> None:
        """Note what the keys around a value say of it."""
        says = frame.says or frame.says_next
        frame.says_next = None
        if says is not None:
            self.fields.append((leaf, *says))
        key = frame.key
        if key in _NAME_KEYS:
            frame.named = self._said(leaf.data.decode("utf-8", "replace"))
            if frame.named and frame.pending is not None:
                self.fields.append((frame.pending, *frame.named))
        elif key in _VALUE_KEYS:
            frame.pending = leaf
            if frame.named:
                self.fields.append((leaf, *frame.named))
        elif key == "kind" and leaf.data == b"Secret":
            frame.is_secret = True
        if self._secrets and frame.is_dict:
            frame.data.append(leaf)

    def _said(self, name: str) -> Said | None:
        says = self._names.says(name)
        return None if says is None else (name, says)

    def _wanted(self, end: int) -> bool:
        """True when a trigger ends inside the token that ends here; tokens are asked for in order."""
        ends = self._ends
        if ends is None:
            return True
        at, count = self._next, len(ends)
        wanted = False
        while at < count and ends[at] <= end:
            wanted = True
            at += 1
        self._next = at
        return wanted

    def _leaf(self, start: int, end: int) -> _Leaf:
        path = self._base + tuple(frame.key for frame in self._frames[1:])
        return _Leaf(start, end, path, _decode(self._text[start:end]))


def _decode(token: bytes) -> bytes:
    """The text of a JSON string token, quotes included, in UTF-8; a lone surrogate stays one."""
    if b"\\" not in token:
        return token[1:-1]
    decoded: str = jsonio.loads(token)
    return decoded.encode("utf-8", "surrogatepass")


_OPENINGS: Final = (b':"', b',"', b'["', b'{"', b' "')
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


def _string_around(text: bytes, end: int) -> tuple[int, int] | None:
    """The string token (quotes included) in which a match ends, or None when that is not certain.

    A quote after one of `_OPENINGS` is not escaped. If no other unescaped quote follows it up to `end`, it is
    the last one before; and it opens a string unless what follows is punctuation between strings.
    """
    opening = -1
    for sign in _OPENINGS:
        opening = max(opening, text.rfind(sign, max(0, opening), end))
    if opening < 0:
        return None
    inside = _INSIDE.match(text, opening + 2)
    if inside is None or inside.end() < end or text[inside.end() : inside.end() + 1] != b'"':
        return None
    if inside[0][:1] in _PUNCTUATION:
        return None
    return opening + 1, inside.end() + 1


_PUNCTUATION: Final = (b"", b",", b":", b"}", b"]", b" ", b"\t", b"\r", b"\n")


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
    leaf: _Leaf,
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


def _whole(text: bytes, leaf: _Leaf, rule: int) -> Edit:
    return _edit(text, leaf, 0, len(leaf.data), rule)


def settle(found: list[Edit], finder: Finder) -> list[Edit]:
    """Put edits in order and join those that overlap; the one that knows most gives rule and value."""
    settled: list[Edit] = []
    for edit in sorted(found, key=lambda edit: (edit.start, -edit.end)):
        last = settled[-1] if settled else None
        if last is None or edit.start >= last.end:
            settled.append(edit)
        elif edit.end > last.end:
            best = max(last, edit, key=lambda one: (finder.tells(one.rule), one.end - one.start))
            settled[-1] = Edit(last.start, edit.end, best.rule, best.value, last.path)
        elif (edit.start, edit.end) == (last.start, last.end) and finder.tells(edit.rule) > finder.tells(
            last.rule
        ):
            settled[-1] = edit
    return settled
