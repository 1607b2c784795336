"""Which names say that their value is secret: `DB_PASSWORD`, `clientSecret`; never `max_tokens`."""

from __future__ import annotations

import re
from typing import Literal

Says = Literal["password", "secret", "login"]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^a-z]+")
_CACHE_LIMIT = 50_000


class Names:
    """Decides by the words of a name; the words come from a rule file."""

    def __init__(
        self,
        password: list[str],
        secret: list[str],
        login: list[str],
        neutral: list[str],
        harmless: list[str],
    ) -> None:
        """`neutral` words may follow a secret word (`_prod`), `harmless` ones turn it off (`csrf_token`)."""
        self._says: dict[str, Says] = {}
        for says, phrases in (("password", password), ("secret", secret), ("login", login)):
            for phrase in phrases:
                self._says[phrase.replace(" ", "_")] = says  # type: ignore[assignment]  # the three words above
        self._neutral = frozenset(neutral)
        self._harmless = tuple(phrase.replace(" ", "_") for phrase in harmless)
        self._longest = max(phrase.count("_") for phrase in self._says) + 1
        self._cache: dict[str, Says | None] = {}

    def says(self, name: str) -> Says | None:
        """What the name says of its value, or None."""
        try:
            return self._cache[name]
        except KeyError:
            if len(self._cache) > _CACHE_LIMIT:
                self._cache.clear()
            found = self._cache[name] = self._judge(name)
            return found

    def _judge(self, name: str) -> Says | None:
        if not 2 <= len(name) <= 100:
            return None
        words = [word for word in _SEPARATORS.split(_CAMEL.sub("_", name).lower()) if word]
        if not words or any("_".join(words).endswith(phrase) for phrase in self._harmless):
            return None
        while words:
            says = self._phrase(words)
            if says is not None or words.pop() not in self._neutral:
                return says
        return None

    def _phrase(self, words: list[str]) -> Says | None:
        for count in range(min(self._longest, len(words)), 0, -1):
            says = self._says.get("_".join(words[-count:]))
            if says is not None:
                return says
        return self._glued(words[-1])

    def _glued(self, word: str) -> Says | None:
        """`dbpassword`, `mysecret`: a secret word at the end of another."""
        for phrase in ("password", "passwd", "passphrase", "secret", "apikey", "authtoken", "accesstoken"):
            if word.endswith(phrase):
                return self._says.get(phrase)
        return None

    def trigger(self) -> bytes:
        """A caseless Vectorscan pattern: a secret word, perhaps a neutral one, and an assignment sign.

        It also matches where quotes and separators are escaped any number of times.
        """
        phrases = sorted({phrase.replace("_", "[_\\-. ]?") for phrase in self._says})
        neutral = "|".join(sorted(self._neutral))
        return (
            "(?:" + "|".join(phrases) + ")(?:[_\\-. ]?(?:" + neutral + "))?[0-9]{0,4}"
            "[\"'`\\])\\s\\\\]{0,10}[:=]"
        ).encode()
