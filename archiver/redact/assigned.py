"""Values assigned to names that say secret: which rule, if any, says that the value is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from archiver.redact import judge
from archiver.redact.forms import compiled
from archiver.redact.names import Names, Says
from archiver.redact.negatives import is_filler, is_uuid
from archiver.redact.passwords import Place, is_made_up

JUDGES: Final[dict[str, Callable[[bytes], bool]]] = {
    "password": judge.is_password,
    "secret": judge.is_token,
    "opaque": judge.is_opaque,
    "login": judge.is_login,
    "filled": judge.is_filled,
    "secret-data": judge.is_secret_data,
    "url-password": judge.is_url_password,
    "made-up": judge.is_made_up_password,
    "given": judge.is_given,
    "pair": judge.is_pair,
    "hash": judge.is_hash,
}
_MOST_NAMES = 20_000
_NOT_ALONE: Final = frozenset({"pass", "pwd", "psw", "pw"})
"""Words that mean other things too: tests pass, and `pwd` is a folder."""
_LETTERS = re.compile(r"[^a-z0-9]+")


class Assigned:
    """Judges a value by the name it is assigned to.

    Some providers' credentials look like anything (a UUID, 32 hex digits); they are known only by a name that
    holds the provider's, and that says secret too.
    """

    def __init__(self, names: Names, generic: int | None) -> None:
        """`generic` is the index of the rule for values that no provider's rule knows; None: it is off."""
        self.names = names
        self._generic = generic
        self._formats: list[tuple[int, bytes]] = []
        self._by_word: dict[str, list[int]] = {}
        self._sizes: tuple[int, ...] = ()
        self._by_name: dict[str, list[tuple[int, re.Pattern[bytes]]]] = {}

    def add(self, rule: int, words: Iterable[str], pattern: bytes) -> None:
        """A provider's format that counts beside names with one of these words (letters and digits)."""
        for word in words:
            self._by_word.setdefault(word, []).append(len(self._formats))
        self._formats.append((rule, pattern))
        self._sizes = ()

    def rule(self, name: str, says: Says, value: bytes, *, literal: bool = True) -> int | None:
        """The index of the rule that says the value is secret, or None; `literal` values are no code."""
        for rule, pattern in self._providers(name):
            if pattern.fullmatch(value) is not None:
                return None if is_filler(value) else rule
        if JUDGES[says](value) or (is_uuid(value) and self.names.is_certain(name)):
            return self._generic
        return self.made_up(name, says, value, "literal") if literal else None

    def made_up(self, name: str, says: Says, value: bytes, place: Place) -> int | None:
        """The index of the rule if people made the value up as a password, or None."""
        if name.lower() in _NOT_ALONE and place in ("literal", "line"):
            return None
        is_secret = says == "secret" and name.lower().endswith("secret")
        if (says != "password" and not is_secret) or value.lower() in name.lower().encode():
            return None
        return self._generic if is_made_up(value, place, secret=is_secret) else None

    def _providers(self, name: str) -> list[tuple[int, re.Pattern[bytes]]]:
        """The formats of the providers whose words the name holds."""
        found = self._by_name.get(name)
        if found is None:
            if len(self._by_name) > _MOST_NAMES:
                self._by_name.clear()
            numbers = sorted(self._speaking(_LETTERS.sub("", name.lower())))
            found = self._by_name[name] = [
                (rule, compiled(pattern)) for rule, pattern in map(self._formats.__getitem__, numbers)
            ]
        return found

    def _speaking(self, plain: str) -> set[int]:
        """The formats one of whose words is part of a name: each piece of it is looked up."""
        if not self._sizes:
            self._sizes = tuple(sorted(set(map(len, self._by_word))))
        found: set[int] = set()
        for size in self._sizes:
            for at in range(len(plain) - size + 1):
                found.update(self._by_word.get(plain[at : at + size], ()))
        return found
