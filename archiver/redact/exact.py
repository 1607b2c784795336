"""Values that are known to be secret: registered, named in the environment, or found elsewhere in this run.

They are searched for as they are and in the encodings they travel in: escaped for JSON, percent-encoded, in
hex, and in base64 at each of its three alignments.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

from archiver.redact import negatives
from archiver.redact.engine import Engine, Expression
from archiver.redact.names import Names
from archiver.redact.placeholder import PLACEHOLDER

SHORTEST: Final = 6
"""A registered value must have as many bytes to be searched for."""
_SHORTEST_FOUND = 8
_LONGEST = 65_536
_ENCODED_LONGEST = 4_096
_SHORTEST_ENCODED = 8


@dataclass(frozen=True, slots=True, repr=False)
class ExactValue:
    """A secret the caller knows, and the name it may be called by.

    `guessed`: nobody said that it is secret, only its name does; then a common word or a path is not searched
    for, as that would damage texts.
    """

    name: str
    value: str
    guessed: bool = False

    def __repr__(self) -> str:
        return f"ExactValue(name={self.name!r})"


def exact_from_environment(
    environ: Mapping[str, str], extra_names: Iterable[str] = (), *, names: Names | None = None
) -> list[ExactValue]:
    """The values of environment variables whose names say secret (guessed), and of those named."""
    if names is None:
        from archiver.redact import rules  # a rule file is read only when nobody has the names yet

        names = rules.load().assigned.names
    wanted = set(extra_names)
    return [
        ExactValue(name, value, guessed=name not in wanted)
        for name, value in sorted(environ.items())
        if value and (name in wanted or (names.says(name) is not None and _is_value(value)))
    ]


def _is_value(text: str) -> bool:
    value = text.encode("utf-8", "surrogatepass")
    return not negatives.says_nothing(value) and not negatives.is_reference(value)


def searchable(known: ExactValue) -> bool:
    """True when a value is long enough to be searched for, and no word that only its name calls secret."""
    value = known.value.encode("utf-8", "surrogatepass")
    return len(value) >= SHORTEST and not (known.guessed and negatives.is_common(value))


def safe_to_search(value: bytes) -> bool:
    """True for a found value so long and mixed that it cannot stand in a text by chance."""
    if not _SHORTEST_FOUND <= len(value) <= _LONGEST or PLACEHOLDER.search(value):
        return False
    classes = sum(any(low <= c <= high for c in value) for low, high in ((48, 57), (65, 90), (97, 122))) + (
        not value.isalnum()
    )
    return len(set(value)) >= 6 and (classes >= 2 or len(value) >= 24) and not negatives.is_common(value)


def encodings(value: bytes) -> Iterator[bytes]:
    """The forms in which a value is searched for; the first is the value itself."""
    yield value
    if len(value) > _ENCODED_LONGEST:
        return
    yield from _escaped(value)
    yield quote(value, safe="").encode()
    yield quote(value, safe="~()*!'").encode()
    yield quote_plus(value).encode()
    yield value.hex().encode()
    yield value.hex().upper().encode()
    yield from _base64(value)


def _escaped(value: bytes) -> Iterator[bytes]:
    """The value inside one and two levels of JSON strings, with and without escapes for what is not ASCII."""
    try:
        text = value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    for first in (False, True):
        once = json.dumps(text, ensure_ascii=first)[1:-1]
        for second in (False, True):
            twice = json.dumps(once, ensure_ascii=second)[1:-1]
            for form in (once, once.replace("/", "\\/"), twice):
                yield form.encode("utf-8", "surrogatepass")


_SAFE = re.compile(rb"[ !#-%(-.0-;=?-\[\]-~]{4,}")


def _fragment(value: bytes) -> bytes | None:
    """The longest part of a value that no JSON writer escapes, so that it shows in any spelling."""
    return max(_SAFE.findall(value), key=len, default=None)


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


class ExactMatcher:
    """Literal search for a set of values in all their encodings."""

    def __init__(self, values: Iterable[bytes]) -> None:
        """Compile the search; raises `RedactionUnavailableError`."""
        self.values = tuple(dict.fromkeys(values))
        forms: dict[bytes, int] = {}
        for index, value in enumerate(self.values):
            for form in encodings(value):
                forms.setdefault(form, index)
        for value in self.values:
            fragment = _fragment(value)
            if fragment is not None:
                forms.setdefault(fragment, _PART)
        self._forms = list(forms)
        self._owners = list(forms.values())
        self._engine = Engine([Expression(form) for form in self._forms], literal=True) if forms else None

    def __bool__(self) -> bool:
        return self._engine is not None

    def ends(self, data: bytes) -> list[int]:
        """End offsets of all that may be an occurrence, in whatever way JSON writes the text."""
        return [end for end, _ in self._engine.scan(data)] if self._engine else []

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """Occurrences as (start, end, index of the value), in order, the longest where they overlap."""
        if self._engine is None:
            return []
        hits = self._engine.scan(data)
        if not hits:
            return []
        spans = {
            (end - len(self._forms[number]), end, self._owners[number])
            for end, number in hits
            if self._owners[number] != _PART
        }
        found: list[tuple[int, int, int]] = []
        for start, end, owner in sorted(spans, key=lambda span: (span[0], -span[1])):
            if found and start < found[-1][1]:
                if end > found[-1][1]:
                    found[-1] = (found[-1][0], end, found[-1][2])
                continue
            found.append((start, end, owner))
        return found
