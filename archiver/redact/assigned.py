"""Values assigned to names that say secret: which rule, if any, says that the value is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from archiver.redact import judge
from archiver.redact.names import Names, Says
from archiver.redact.negatives import says_nothing

JUDGES: Final[dict[str, Callable[[bytes], bool]]] = {
    "password": judge.is_password,
    "secret": judge.is_token,
    "opaque": judge.is_opaque,
    "login": judge.is_login,
    "filled": judge.is_filled,
    "secret-data": judge.is_secret_data,
    "url-password": judge.is_url_password,
}
_MOST_NAMES = 20_000
_LETTERS = re.compile(r"[^a-z0-9]+")


class Assigned:
    """Judges a value by the name it is assigned to.

    Some providers' credentials look like anything (a UUID, 32 hex digits); they are known only by a name that
    holds the provider's, and that says secret too.
    """

    def __init__(self, names: Names, generic: int) -> None:
        """`generic` is the index of the rule for values that no provider's rule knows."""
        self.names = names
        self._generic = generic
        self._named: list[tuple[int, tuple[str, ...], re.Pattern[bytes]]] = []
        self._by_name: dict[str, list[tuple[int, re.Pattern[bytes]]]] = {}

    def add(self, rule: int, words: Iterable[str], pattern: bytes) -> None:
        """A provider's format that counts beside names with one of these words."""
        self._named.append((rule, tuple(words), re.compile(pattern)))

    def rule(self, name: str, says: Says, value: bytes) -> int | None:
        """The index of the rule that says the value is secret, or None."""
        for rule, pattern in self._providers(name):
            if pattern.fullmatch(value) is not None:
                return None if says_nothing(value) else rule
        return self._generic if JUDGES[says](value) else None

    def _providers(self, name: str) -> list[tuple[int, re.Pattern[bytes]]]:
        """The formats of the providers whose words the name holds."""
        found = self._by_name.get(name)
        if found is None:
            if len(self._by_name) > _MOST_NAMES:
                self._by_name.clear()
            plain = _LETTERS.sub("", name.lower())
            found = self._by_name[name] = [
                (rule, pattern)
                for rule, words, pattern in self._named
                if any(word in plain for word in words)
            ]
        return found
