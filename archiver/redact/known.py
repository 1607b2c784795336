"""What one save knows to be secret: values that are registered or learned, and values that rules found."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.redact import exact as exact_values
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.ledger import Ledger


class KnownValues:
    """The values in the order in which they became known: content need only be searched for later ones."""

    def __init__(self, given: Iterable[ExactValue]) -> None:
        """`given` are the registered ones."""
        self.given: tuple[ExactValue, ...] = ()
        self.registered: tuple[bytes, ...] = ()
        """What of them is searched for."""
        self._order: dict[bytes, None] = {}
        self._found: list[bytes] = []
        self._taken = 0
        """Number of values of the ledger that were looked at."""
        self._all: tuple[int, ExactMatcher] | None = None
        self.learn(given)

    def learn(self, values: Iterable[ExactValue]) -> bool:
        """Take up more values as registered; false where all of them were registered before."""
        held = {(one.value, one.missing) for one in self.given}
        new = tuple(one for one in values if (one.value, one.missing) not in held)
        if not new:
            return False
        self.given += new
        self.registered += tuple(exact_values.bytes_of(one) for one in new if exact_values.searchable(one))
        self._order |= dict.fromkeys(self.registered)
        self._all = None
        return True

    @property
    def too_short(self) -> tuple[str, ...]:
        """Names of registered values that are not searched for."""
        short = {one.name for one in self.given if not one.missing and not exact_values.searchable(one)}
        return tuple(sorted(short))

    @property
    def unread(self) -> tuple[str, ...]:
        """What values are missing, and why."""
        return tuple(f"{one.name}: {one.missing}" for one in self.given if one.missing)

    def count(self, ledger: Ledger) -> int:
        """How many values are known by now, with those that the ledger has."""
        if self._taken != ledger.count:
            for value in ledger.values[self._taken :]:
                if value not in self._order and exact_values.safe_to_search(value):
                    self._found.append(value)
                    self._order[value] = None
            self._taken = ledger.count
        return len(self._order)

    def values(self, ledger: Ledger) -> tuple[bytes, ...]:
        """All of them, in their order."""
        self.count(ledger)
        return tuple(self._order)

    def registered_alone(self) -> ExactMatcher:
        """The search for registered values."""
        return exact_values.matcher_of(self.registered)

    def matcher(self, ledger: Ledger) -> ExactMatcher:
        """The search for all values: registered ones, and found ones that are safe to search for."""
        count = self.count(ledger)
        if not self._found:
            return self.registered_alone()
        if self._all is None or self._all[0] != count:
            self._all = count, ExactMatcher(self.registered, self._found)
        return self._all[1]
