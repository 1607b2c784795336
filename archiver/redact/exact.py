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

from archiver.redact import judge
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
    """A secret the caller knows, and the name it may be called by."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"ExactValue(name={self.name!r})"


def exact_from_environment(
    environ: Mapping[str, str], extra_names: Iterable[str] = (), *, names: Names | None = None
) -> list[ExactValue]:
    """The values of environment variables whose names say secret, and of those named."""
    if names is None:
        from archiver.redact import rules  # a rule file is read only when nobody has the names yet

        names = rules.load().assigned.names
    wanted = set(extra_names)
    return [
        ExactValue(name, value)
        for name, value in sorted(environ.items())
        if name in wanted
        or (names.says(name) is not None and _worth_searching(name, value.encode("utf-8", "replace")))
    ]


_PLACE: Final = re.compile(rb"(?:[A-Za-z]:)?[~.]{0,2}(?:[/\\][\w.@% -]*)+")
_FOLDERS: Final = frozenset({"PWD", "OLDPWD"})
"""Names that say `pwd` and mean the working folder: searching for it would tear up every path of the run."""


def _worth_searching(name: str, value: bytes) -> bool:
    if name in _FOLDERS or (_PLACE.fullmatch(value) and value.count(b"/") + value.count(b"\\") > 1):
        return False
    return len(value) >= SHORTEST and not judge.says_nothing(value) and not judge.is_common(value)


def searchable(value: str) -> bool:
    """True when a registered value is long enough to be searched for."""
    return len(value.encode("utf-8", "surrogatepass")) >= SHORTEST


def safe_to_search(value: bytes) -> bool:
    """True for a found value so long and mixed that it cannot stand in a text by chance."""
    if not _SHORTEST_FOUND <= len(value) <= _LONGEST or PLACEHOLDER.search(value):
        return False
    classes = sum(any(low <= c <= high for c in value) for low, high in ((48, 57), (65, 90), (97, 122))) + (
        not value.isalnum()
    )
    return len(set(value)) >= 6 and (classes >= 2 or len(value) >= 24) and not judge.is_common(value)


def encodings(value: bytes) -> Iterator[bytes]:
    """The forms in which a value is searched for; the first is the value itself."""
    yield value
    if len(value) > _ENCODED_LONGEST:
        return
    text = value.decode("utf-8", "surrogateescape")
    for level in range(2):
        text = json.dumps(text, ensure_ascii=bool(level))[1:-1]
        yield text.encode("utf-8", "surrogatepass")
    yield quote(value, safe="").encode()
    yield quote(value, safe="~()*!'").encode()
    yield quote_plus(value).encode()
    yield value.hex().encode()
    yield value.hex().upper().encode()
    yield from _base64(value)


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


class ExactMatcher:
    """Literal search for a set of values in all their encodings."""

    def __init__(self, values: Iterable[bytes]) -> None:
        """Compile the search; raises `RedactionUnavailableError`."""
        self.values = tuple(dict.fromkeys(values))
        forms: dict[bytes, int] = {}
        for index, value in enumerate(self.values):
            for form in encodings(value):
                forms.setdefault(form, index)
        self._forms = list(forms)
        self._owners = list(forms.values())
        self._engine = Engine([Expression(form) for form in self._forms], literal=True) if forms else None

    def __bool__(self) -> bool:
        return self._engine is not None

    def ends(self, data: bytes) -> list[int]:
        """End offsets of all that may be an occurrence."""
        return [end for end, _ in self._engine.scan(data)] if self._engine else []

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """Occurrences as (start, end, index of the value), in order, the longest where they overlap."""
        if self._engine is None:
            return []
        hits = self._engine.scan(data)
        if not hits:
            return []
        spans = {(end - len(self._forms[number]), end, self._owners[number]) for end, number in hits}
        found: list[tuple[int, int, int]] = []
        for start, end, owner in sorted(spans, key=lambda span: (span[0], -span[1])):
            if found and start < found[-1][1]:
                if end > found[-1][1]:
                    found[-1] = (found[-1][0], end, found[-1][2])
                continue
            found.append((start, end, owner))
        return found
