"""What was found: fingerprints, counts and places for the receipt, values for the search of copies."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from archiver.model.receipt import Finding
from archiver.redact import placeholder

KNOWN = "known-value"
"""Rule and kind of a value that the caller registered."""
MOST_PLACES = 5
MOST_VALUES = 10_000
"""Different secrets that a receipt lists and whose copies are searched for."""
MORE = "0" * 12
"""Stands for the fingerprints of all further ones."""
MOST_VALUE = 65_536
"""Bytes of a value whose copies are searched for."""
MOST_VALUE_BYTES = 16 << 20
_KEY = re.compile(r"[A-Za-z_]+")
_SPACE = re.compile(rb"\s|\\[nr]")


Note = tuple[str, str, bytes, str]
"""Rule, kind, value and place of one occurrence."""


@dataclass(slots=True)
class _Entry:
    kind: str
    count: int = 0
    places: list[str] = field(default_factory=list)


class Ledger:
    """What one run's redaction found; values live only here, in memory."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._first: dict[str, tuple[str, str]] = {}
        self._values: dict[bytes, None] = {}
        self._value_bytes = 0
        self.total = 0
        """Occurrences noted so far."""
        self.notes: list[Note] | None = None
        """Where it is a list, what `replace` was called with, to be done once more."""

    def afresh(self) -> Ledger:
        """A ledger without findings that knows the same values, and the rule and kind each was found by."""
        made = Ledger(self.key)
        made._first = dict(self._first)
        made._values = dict(self._values)
        made._value_bytes = self._value_bytes
        return made

    def copy(self) -> Ledger:
        """All that was found so far, as another ledger that goes on from here."""
        made = self.afresh()
        made._entries = {
            key: _Entry(one.kind, one.count, [*one.places]) for key, one in self._entries.items()
        }
        made.total = self.total
        return made

    def become(self, other: Ledger) -> None:
        """Take up all that the other one found, in place of what this one has; the other is given up."""
        self._entries, self._first, self._values = other._entries, other._first, other._values
        self._value_bytes, self.total = other._value_bytes, other.total

    def replace(self, rule: str, kind: str, value: bytes, place: str) -> bytes:
        """Note one occurrence of a secret and give its placeholder; one value has one placeholder.

        A copy found as a known value counts for the rule that knew it first.
        """
        if self.notes is not None:
            self.notes.append((rule, kind, value, place))
        shown = self.fingerprint(value)
        known = self._first.get(shown)
        if known is not None:
            kind = known[1]
            rule = known[0] if rule == KNOWN else rule
        elif len(self._first) < MOST_VALUES:
            self._first[shown] = rule, kind
            self._remember(value)
        entry = self._entries.get((rule, shown))
        if entry is None:
            entry = self._new(rule, kind, shown)
        entry.count += 1
        self.total += 1
        if len(entry.places) < MOST_PLACES and place not in entry.places:
            entry.places.append(place)
        return placeholder.make(kind, shown).encode()

    def _new(self, rule: str, kind: str, shown: str) -> _Entry:
        """An entry for a finding; past a number that no receipt should hold, the others are only counted."""
        if len(self._entries) >= MOST_VALUES:
            shown = MORE
        return self._entries.setdefault((rule, shown), _Entry(kind))

    def fingerprint(self, value: bytes) -> str:
        """Twelve hex digits of HMAC-SHA256 under the run's key; line breaks inside a key do not count."""
        if value.startswith(b"-----BEGIN"):
            value = _SPACE.sub(b"", value)
        return hmac.new(self.key, value, hashlib.sha256).hexdigest()[:12]

    def _remember(self, value: bytes) -> None:
        if len(value) <= MOST_VALUE and self._value_bytes + len(value) <= MOST_VALUE_BYTES:
            self._values[value] = None
            self._value_bytes += len(value)

    @property
    def values(self) -> tuple[bytes, ...]:
        """Every value found so far."""
        return tuple(self._values)

    @property
    def count(self) -> int:
        """Number of different values found so far."""
        return len(self._values)

    def _masked(self, place: str) -> str:
        """A place without the words that are secrets."""
        return _KEY.sub(lambda word: "*" if word[0].encode() in self._values else word[0], place)

    def findings(self) -> tuple[Finding, ...]:
        """All findings, by rule and fingerprint."""
        for entry in self._entries.values():
            # A key that was shown as part of a place may have turned out to be a secret since.
            entry.places = list(dict.fromkeys(map(self._masked, entry.places)))
        return tuple(
            Finding(
                rule=rule, kind=entry.kind, fingerprint=shown, count=entry.count, places=tuple(entry.places)
            )
            for (rule, shown), entry in sorted(self._entries.items())
        )
