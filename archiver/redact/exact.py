"""Values that are known to be secret: registered, named in the environment, or found elsewhere in this run.

They are searched for as they are and in the encodings they travel in: escaped for JSON, percent-encoded, in
hex, and in base64 at each of its three alignments.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

from archiver.redact import negatives, pem, views
from archiver.redact.engine import Engine, Expression, Hit
from archiver.redact.names import Names
from archiver.redact.placeholder import PLACEHOLDER

SHORTEST: Final = 6
"""A registered value must have as many bytes to be searched for."""
_SHORTEST_FOUND = 8
_LONGEST = 65_536
_ENCODED_LONGEST = 4_096
_LONGEST_FORM = 15_000
"""Vectorscan takes no literal of more than 16 000 bytes; of a longer value its beginning is searched for."""
_SHORTEST_ENCODED = 8
_SHORTEST_BROKEN = 12
_CHUNK = 10


@dataclass(frozen=True, slots=True, repr=False)
class ExactValue:
    """A secret the caller knows, and the name it may be called by.

    `guessed`: nobody said that it is secret, only its name does; then a common word or a path is not searched
    for, as that would damage texts. `missing`: why the value is not known, where only the place of it is.
    """

    name: str
    value: str
    guessed: bool = False
    missing: str = ""

    def __repr__(self) -> str:
        return f"ExactValue(name={self.name!r})"


@functools.cache
def secret_names() -> Names:
    """The names that say secret, as the built-in rules have them."""
    from archiver.redact import rules  # rules know values, and values know names

    return rules.load().assigned.names


_PLACE = re.compile(rb"~?/[\w.\-@]+(?:/[\w.\-@]+)+/?")
_REFERENCE = re.compile(rb"\$\{[A-Za-z_]\w*\}")
_URL = re.compile(rb"[a-z][a-z0-9+.\-]*://[^\s@?#]+", re.IGNORECASE)
_QUOTES: Final = ("'", '"', "`")
_LONGEST_WORD = 11
_SHORTEST_NUMBER = 8


def searchable(known: ExactValue) -> bool:
    """True when a value is long enough to be searched for; one that only its name calls secret is no word."""
    value = bytes_of(known)
    return len(value) >= SHORTEST and not known.missing and not (known.guessed and _is_harmless(value))


def bytes_of(known: ExactValue) -> bytes:
    """The bytes to search for: without white space and quotes around them, which are not part of a secret."""
    value = known.value.strip()
    inner = value[1:-1].strip() if value[:1] == value[-1:] and value[:1] in _QUOTES else ""
    return (inner if len(inner) >= SHORTEST else value).encode("utf-8", "surrogatepass")


def _is_harmless(value: bytes) -> bool:
    """True for what stands in many texts without being the secret: a word, a number, a path, a reference.

    So is a URL that holds no login and no random piece.
    """
    if value.isalpha():
        one_case = value.islower() or value.isupper() or value.istitle()
        return len(value) <= _LONGEST_WORD and one_case and not negatives.is_scrambled(value, 3)
    if value.isdigit():
        return len(value) < _SHORTEST_NUMBER
    return _REFERENCE.fullmatch(value) is not None or (
        (_PLACE.fullmatch(value) or _URL.fullmatch(value)) is not None
        and not any(map(_is_mixed, value.split(b"/")))
    )


def _is_mixed(segment: bytes) -> bool:
    """True for a piece of a path with a digit and letters of both cases, as a random value has."""
    return segment != segment.lower() and segment != segment.upper() and any(map(segment.count, _DIGITS))


_DIGITS: Final = tuple(b"%d" % digit for digit in range(10))


def safe_to_search(value: bytes) -> bool:
    """True for a found value so long and mixed that it cannot stand in a text by chance."""
    if not _SHORTEST_FOUND <= len(value) <= _LONGEST or PLACEHOLDER.search(value):
        return False
    classes = sum(any(low <= c <= high for c in value) for low, high in ((48, 57), (65, 90), (97, 122))) + (
        not value.isalnum()
    )
    return len(set(value)) >= 6 and (classes >= 2 or len(value) >= 24) and not negatives.is_common(value)


def encodings(value: bytes) -> Iterator[bytes]:
    """The forms in which a value is searched for as they are; the first is the value itself."""
    yield value
    if len(value) <= _ENCODED_LONGEST:
        yield from _base64(value)
        yield from _base64(_wide(value))  # as PowerShell takes commands


def caseless_encodings(value: bytes) -> Iterator[bytes]:
    """The forms whose hex digits may be of either case: percent-encoded, in hex, escaped for JSON or HTML."""
    if len(value) > _ENCODED_LONGEST:
        return
    if _UNRESERVED.fullmatch(value) is not None:
        yield value.hex().encode()
        return
    yield quote(value, safe="").encode()
    yield quote(value).encode()
    yield quote(value, safe="~()*!'").encode()
    yield quote_plus(value).encode()
    yield value.hex().encode()
    try:
        text = value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    for form in _escaped(text):
        yield form.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> Iterator[str]:
    """The text inside HTML, and inside one and two levels of JSON strings as different writers make them."""
    yield html.escape(text)
    yield html.escape(text, quote=False)
    for first in (False, True):
        plain = json.dumps(text, ensure_ascii=first)[1:-1]
        # Go, and any writer that makes JSON safe for HTML, escapes these three as well.
        for once in (plain, plain.translate(_HTML_SAFE)):
            yield once
            yield once.replace("/", "\\/")
            for second in (False, True):
                twice = json.dumps(once, ensure_ascii=second)[1:-1]
                yield twice
                yield twice.translate(_HTML_SAFE)


_HTML_SAFE: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"}
_UNRESERVED = re.compile(rb"[A-Za-z0-9_.\-~]+")
"""What no writer of URLs, HTML or JSON has to write in another way."""
_SAFE = re.compile(rb"[ !#-%(-.0-;=?-\[\]-~]{4,}")


def _fragment(value: bytes) -> bytes | None:
    """The longest part of a value that no JSON writer escapes, so that it shows in any spelling."""
    return max(_SAFE.findall(value), key=len, default=None)


def _wide(value: bytes) -> bytes:
    try:
        return value.decode("utf-8").encode("utf-16-le")
    except UnicodeDecodeError:
        return b""


def _parts(value: bytes) -> Iterator[bytes]:
    """What shows in any spelling of a value, and parts of which a line end leaves at least one whole."""
    fragment = _fragment(value)
    if fragment is not None:
        yield fragment[:_LONGEST_FORM]
    size = len(value)
    if size < _SHORTEST_BROKEN or size > _ENCODED_LONGEST or len(value.split()) > 1:
        return
    step = size // 2 if size < 2 * _CHUNK else _CHUNK
    yield from (value[at : at + step] for at in range(0, min(size, 4 * _CHUNK) - step + 1, step))


def _base64(value: bytes) -> Iterator[bytes]:
    """The characters that base64 gives the value whatever stands before and after it."""
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + value)
        inner = whole[-(-8 * shift // 6) : 8 * (shift + len(value)) // 6]
        if len(inner) >= _SHORTEST_ENCODED:
            yield inner
            if b"+" in inner or b"/" in inner:
                yield inner.translate(_URL_SAFE)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


_PART = -1
"""Owner of what only leads to the text around it."""
_PIECE = -2
"""Owner of the pieces of private keys."""
_TRIGGERS: Final = tuple(
    form for sign in views.INVISIBLE for form in (sign, json.dumps(sign.decode())[1:-1].encode())
)
"""Characters that may split a value, raw and as JSON escapes; colours trigger the rules already."""


class ExactMatcher:
    """Literal search for a set of values in all their encodings."""

    def __init__(self, registered: Iterable[bytes], found: Iterable[bytes] = ()) -> None:
        """Compile the search; `found` were found by rules. Raises `RedactionUnavailableError`."""
        certain = dict.fromkeys(registered)
        self._registered = len(certain)
        self.values = tuple(certain | dict.fromkeys(found))
        forms: dict[Expression, int] = {}
        for index, value in enumerate(self.values):
            as_they_are = set(encodings(value))
            for form in as_they_are:
                forms.setdefault(Expression(form[:_LONGEST_FORM]), index)
            for form in set(caseless_encodings(value)) - as_they_are:
                if len(form) <= _LONGEST_FORM:
                    forms.setdefault(Expression(form, caseless=True), index)
        self._pieces: dict[bytes, tuple[int, bytes, int]] = {}
        for index, value in enumerate(self.values):
            inner = pem.body(value)
            for offset, piece in pem.pieces(inner):
                self._pieces.setdefault(piece, (index, inner, offset))
            for part in _parts(value):
                forms.setdefault(Expression(part), _PART)
        for piece in self._pieces:
            forms.setdefault(Expression(piece), _PIECE)
        for sign in _TRIGGERS if forms else ():
            forms.setdefault(Expression(sign, caseless=True), _PART)
        self._sizes = [len(form.pattern) for form in forms]
        self._owners = list(forms.values())
        self._engine = Engine(list(forms), literal=True) if forms else None

    def __bool__(self) -> bool:
        return self._engine is not None

    def parted(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The registered values, and those that were found."""
        return self.values[: self._registered], self.values[self._registered :]

    def ends(self, data: bytes) -> list[int]:
        """End offsets of all that may be an occurrence, in whatever way JSON writes the text."""
        return [end for end, _ in self._engine.scan(data)] if self._engine else []

    def find(self, data: bytes, *, registered: bool = False) -> list[tuple[int, int, int]]:
        """Occurrences as (start, end, index of the value), in order, the longest where they overlap.

        `registered`: only those of registered values. A value that colours or invisible characters split is
        found too.
        """
        if self._engine is None:
            return []
        last = self._registered if registered else len(self.values)
        hits = self._engine.scan(data)
        spans = set(self._spans(data, hits, last)) if hits else set()
        if hits and b"\n" in data:
            spans.update(self._broken(self._engine, data, hits, last))
        for mapped in views.views(data):
            for start, end, owner in self._spans(mapped.data, self._engine.scan(mapped.data), last):
                spans.add((*mapped.span(start, end), owner))
        found: list[tuple[int, int, int]] = []
        for start, end, owner in sorted(spans, key=lambda span: (span[0], -span[1])):
            if found and start < found[-1][1]:
                if end > found[-1][1]:
                    found[-1] = (found[-1][0], end, found[-1][2])
                continue
            found.append((start, end, owner))
        return found

    def _broken(
        self, engine: Engine, data: bytes, hits: list[Hit], last: int
    ) -> Iterator[tuple[int, int, int]]:
        """Values that a line end breaks, in lines that hold a part of one."""
        ends = sorted({end for end, number in hits if self._owners[number] == _PART})
        for lines in views.wrapped(data, ends):
            for start, end, owner in self._spans(lines.data, engine.scan(lines.data), last):
                if lines.crossed(start, end) is not None:
                    yield *lines.span(start, end), owner

    def _spans(self, data: bytes, hits: list[Hit], last: int) -> Iterator[tuple[int, int, int]]:
        for end, number in hits:
            owner = self._owners[number]
            if owner == _PIECE:
                owner, inner, offset = self._pieces[data[end - pem.PIECE : end]]
                if owner < last:
                    yield *pem.around(data, end, inner, offset), owner
            elif owner != _PART and owner < last:
                yield self._whole(data, end - self._sizes[number], end, owner)

    def _whole(self, data: bytes, start: int, end: int, owner: int) -> tuple[int, int, int]:
        """An occurrence up to the end of a value that is longer than what is searched for."""
        value = self.values[owner]
        if end - start == _LONGEST_FORM < len(value) and data.startswith(value, start):
            end = start + len(value)
        return start, end, owner


@functools.lru_cache(maxsize=4)
def matcher_of(registered: tuple[bytes, ...]) -> ExactMatcher:
    """As `ExactMatcher(registered)`, made once in a process for the same values."""
    return ExactMatcher(registered)
