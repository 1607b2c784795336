"""The tokens of one JSON text: strings with their paths, and what keys say of the values beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from archiver import jsonio
from archiver.redact import views
from archiver.redact.judge import is_secret_data, is_secret_text
from archiver.redact.names import Names, Says

Path = tuple[str | int, ...]
Said = tuple[str, Says]
"""A name, and what it says of its value."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],]', re.DOTALL)
_QUOTE, _OPEN, _CLOSE, _LIST, _END = b'"{}[]'
_NAME_KEYS: Final = frozenset({"name", "key", "header", "variable", "field"})
_VALUE_KEYS: Final = frozenset({"value", "val", "values"})
_DATA_KEYS: Final[dict[str | int, Callable[[bytes], bool]]] = {
    "data": is_secret_data,
    "stringData": is_secret_text,
}


class Leaf:
    """One string token: where it is, and its decoded bytes."""

    __slots__ = ("data", "end", "mapped", "path", "start")

    def __init__(self, start: int, end: int, path: Path, data: bytes) -> None:
        self.start, self.end, self.path, self.data = start, end, path, data
        self.mapped: views.Reading | None = None


Field = tuple[Leaf, str, Says]
"""A value, the name it is assigned to, and what the name says."""


class _Frame:
    """One open object or array."""

    __slots__ = (
        "data",
        "is_dict",
        "is_secret",
        "key",
        "named",
        "pending",
        "says",
        "says_next",
        "secrets",
        "wants_key",
    )

    def __init__(self, *, is_dict: bool, says: Said | None) -> None:
        self.is_dict = is_dict
        self.wants_key = is_dict
        self.key: str | int = "" if is_dict else 0
        self.says = says
        """What the key (or the key of the array) says of the values."""
        self.says_next: Said | None = None
        self.named: Said | None = None
        self.pending: Leaf | None = None
        self.is_secret = False
        self.data: list[Leaf] = []
        """Values of the object, and (`secrets`) what its `data` objects would hold if it is a Secret."""
        self.secrets: list[Leaf] = []


class Walk:
    """Reads the tokens of one JSON text and keeps what the structure says."""

    def __init__(self, text: bytes, ends: list[int] | None, base: Path, names: Names) -> None:
        self._text = text
        self._ends = ends
        self._next = 0
        self._base = base
        self._names = names
        self._frames: list[_Frame] = [_Frame(is_dict=False, says=None)]
        self._secrets = b'"Secret"' in text
        self.fields: list[Field] = []
        self.manifest: list[Leaf] = []

    def leaves(self) -> Iterator[Leaf]:
        """The string tokens worth looking at, decoded, keys included."""
        text, frames = self._text, self._frames
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            first = text[start]
            if first == _QUOTE:
                leaf = self._string(start, end)
                if leaf is not None:
                    yield leaf
                    if self._is_done():
                        return
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

    def _is_done(self) -> bool:
        """True behind the last trigger, where no name says anything of what follows."""
        return (
            self._ends is not None
            and self._next == len(self._ends)
            and not self._secrets
            and all(
                frame.says is None and frame.says_next is None and frame.named is None
                for frame in self._frames
            )
        )

    def _open(self, *, is_dict: bool) -> None:
        frame = self._frames[-1]
        self._frames.append(_Frame(is_dict=is_dict, says=None if is_dict else frame.says))

    def _close(self, frame: _Frame) -> None:
        if not self._secrets or not frame.is_dict:
            return
        if frame.is_secret:
            self.manifest.extend(frame.secrets)
        accept = _DATA_KEYS.get(self._frames[-1].key)
        if accept is not None:
            self._frames[-1].secrets.extend(leaf for leaf in frame.data if accept(leaf.data))

    def _string(self, start: int, end: int) -> Leaf | None:
        frame = self._frames[-1]
        if frame.wants_key:
            frame.wants_key = False
            key = frame.key = decode(self._text[start:end]).decode("utf-8", "surrogatepass")
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

    def _structure(self, frame: _Frame, leaf: Leaf) -> None:
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

    def _leaf(self, start: int, end: int) -> Leaf:
        path = self._base + tuple(frame.key for frame in self._frames[1:])
        return Leaf(start, end, path, decode(self._text[start:end]))


def decode(token: bytes) -> bytes:
    """The text of a JSON string token, quotes included, in UTF-8; a lone surrogate stays one."""
    if b"\\" not in token:
        return token[1:-1]
    decoded: str = jsonio.loads(token)
    return decoded.encode("utf-8", "surrogatepass")


_OPENS: Final = b":,[{ "
"""What stands before a quote that opens a string."""
_BACKSLASH: Final = 0x5C


def string_around(text: bytes, end: int, quotes: bytes = b"") -> tuple[int, int] | None:
    """The string token (quotes included) in which a match ends, or None when that is not certain.

    `quotes`: the text `unescaped`, if it is at hand.
    """
    opening = opening_before(text, end, 0, quotes)
    if opening is None or opening < 0:
        return None
    closing = quotes.find(b'"', opening + 1) if quotes else _closing(text, opening + 1)
    return (opening, closing + 1) if closing >= end else None


def opening_before(text: bytes, end: int, floor: int, quotes: bytes = b"") -> int | None:
    """The quote that opens the string in which a match ends; -1 where no quote stands behind `floor`.

    None where that is not certain. The last quote that is not escaped is the one: it opens a string if it
    stands behind one of `_OPENS`, unless what follows it is punctuation between strings.
    """
    quote = quotes.rfind(b'"', floor, end) if quotes else _quote_before(text, end, floor)
    if quote < 0:
        return -1 if floor > 0 else None
    behind = _BEHIND.match(text, quote + 1)
    at = behind.end() if behind is not None else len(text)
    opens = quote > 0 and text[quote - 1] in _OPENS
    return quote if opens and at < len(text) and text[at] not in _PUNCTUATION else None


def _quote_before(text: bytes, end: int, floor: int) -> int:
    """The last quote before `end` that is not escaped; -1 where none stands behind `floor`."""
    step = _STEP
    while True:
        low = max(floor, end - step)
        while low > 0 and text[low - 1] == _BACKSLASH:
            low -= 1
        quote = low + unescaped(text[low:end]).rfind(b'"')
        if quote >= low:
            return quote
        if low <= floor:
            return -1
        step *= 16


_STEP: Final = 1_024
_LONGEST_STEP: Final = 1 << 20
_BEHIND = re.compile(rb"[ \t\r\n]*")
_PUNCTUATION: Final = b',:}]"'
"""What stands behind a string, not at the beginning of one that is looked into."""


def string_at(text: bytes, end: int, start: int) -> tuple[tuple[int, int] | None, bool]:
    """The string token in which a match ends, and True; or the last one before its end, and False.

    `start` is an offset outside of all strings, from where on the text is read.
    """
    last: tuple[int, int] | None = None
    for match in _STRING.finditer(text, start):
        if match.start() >= end:
            break
        last = match.span()
        if last[1] >= end:
            return last, True
    return last, False


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _closing(text: bytes, at: int) -> int:
    """The first quote from `at` on, inside a string, that is not escaped; -1 where there is none."""
    step = _STEP
    while True:
        part = unescaped(text[at : at + step])
        quote = part.find(b'"')
        if quote >= 0:
            return at + quote
        if at + len(part) >= len(text):
            return -1
        at += len(part) - (part[-1] == _BACKSLASH)
        step = min(step * 4, _LONGEST_STEP)


def unescaped(part: bytes) -> bytes:
    """A part of a string with signs in place of escaped backslashes and quotes, as long as before.

    This and a search for a quote take a third of the time of a pattern.
    """
    return part.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in part else part
