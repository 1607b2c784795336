"""What became known after a content was scanned, and the search for that alone.

Values have names, HMACs under the key of `reuse`: a set of names says for which values something was
searched, and nothing else, so it can be kept from one save to the next.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.known import KnownValues
from archiver.redact.ledger import Ledger
from archiver.redact.raw import RawPass
from archiver.redact.scrub import Scrubber

Mark = frozenset[bytes]
"""Names of the values that were known at some time."""
_SIZE = 16


class Later:
    """The values of one save by their names, and searches for some of them."""

    def __init__(self, finder: Finder, ledger: Ledger, values: KnownValues, key: bytes) -> None:
        self._finder = finder
        self._ledger = ledger
        self._values = values
        self._key = key
        self._names: dict[bytes, bytes] = {}
        self._made: tuple[tuple[int, int], Scrubber] | None = None
        self._last: tuple[tuple[bytes, ...], Scrubber] | None = None

    def mark(self) -> Mark:
        """What is known by now."""
        return frozenset(map(self._name, self._values.values(self._ledger)))

    def new_since(self, mark: Mark) -> tuple[bytes, ...]:
        """The values that are known by now and were not then."""
        return tuple(value for value in self._values.values(self._ledger) if self._name(value) not in mark)

    def holds(self, blocks: Iterable[bytes], scrubber: Scrubber) -> bool:
        """Whether something stands in the content, also compressed; nothing is noted.

        True for content that cannot be looked into.
        """
        work = RawPass(scrubber, None, "")
        for block in blocks:
            work.feed(block)
        return work.close().reason is not None or work.found

    def scrubber_since(self, first: int) -> Scrubber | None:
        """What replaces the values after the first so many, and nothing else; None where there are none."""
        count = self._values.count(self._ledger)
        if first >= count:
            return None
        if self._made is None or self._made[0] != (first, count):
            self._made = (first, count), self.scrubber(self._values.values(self._ledger)[first:])
        return self._made[1]

    def scrubber(self, values: tuple[bytes, ...]) -> Scrubber:
        """What replaces these values, and nothing else."""
        if self._last is None or self._last[0] != values:
            known = ExactMatcher((), values)
            self._last = values, Scrubber(self._finder, known, self._ledger, rules=False)
        return self._last[1]

    def _name(self, value: bytes) -> bytes:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = hmac.digest(self._key, b"value\n" + value, "sha256")[:_SIZE]
        return name
