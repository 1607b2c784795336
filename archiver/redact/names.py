"""Which names say that their value is secret: `DB_PASSWORD`, `clientSecret`; never `max_tokens`."""

from __future__ import annotations

import re
from typing import Literal

Says = Literal["password", "secret", "login"]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^a-z]+")
_CERTAIN = re.compile(
    "(?:api_?key|(?:client|api|app|consumer)_?secret|password|(?:api|auth|access|bearer|secret)_?token)$"
)
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
        self._harmless = tuple("_" + phrase.replace(" ", "_") for phrase in harmless)
        self._longest = max(phrase.count("_") for phrase in self._says) + 1
        self._cache: dict[str, Says | None] = {}
        # A name that the trigger does not see must not count either, or a raw scan would miss its value.
        self._end = re.compile(self._ending() + "[\"'`\\])\\s]{0,4}[:=]?\\Z", re.IGNORECASE | re.ASCII)

    def says(self, name: str) -> Says | None:
        """What the name says of its value, or None."""
        try:
            return self._cache[name]
        except KeyError:
            if len(self._cache) > _CACHE_LIMIT:
                self._cache.clear()
            found = self._cache[name] = self._judge(name)
            return found

    def is_certain(self, name: str) -> bool:
        """True for names of nothing but credentials, beside which even a UUID is one."""
        words = "_".join(word for word in _SEPARATORS.split(_CAMEL.sub("_", name).lower()) if word)
        return _CERTAIN.search(words) is not None

    def _judge(self, name: str) -> Says | None:
        if not 2 <= len(name) <= 100 or self._end.search(name) is None:
            return None
        words = [word for word in _SEPARATORS.split(_CAMEL.sub("_", name).lower()) if word]
        if not words or ("_" + "_".join(words)).endswith(self._harmless):
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
        """A caseless Vectorscan pattern: a secret word, perhaps a neutral one, and what makes it a name.

        That is an assignment sign; or the end of a JSON string where the value is another string, as in
        `"name": "DB_PASSWORD", "value": …` and `"--password", …`. It also matches where quotes and separators
        are escaped any number of times.
        """
        sign = "(?:\\[[0-9]{0,6}\\]\\s{0,4})?[?.+|!:&]{0,3}[:=]"
        typed = r"\s{1,4}(?:string|str|\[\]byte|char)\s{0,4}:?="
        beside = r"(?:\s|\\+[nrt]){1,24}[+\-]?\s{0,16}value\s{0,4}[:=]"
        after = rf"[\"'`\])\s\\]*{sign}|\\*[\"'`]\s*[,}}\]]|{typed}|(?:\\*[\"'])?{beside}|>|\\+u003[eE]"
        return f"{self._ending()}(?:{after})".encode()

    def _ending(self) -> str:
        """The end of every name that says secret, as a pattern of both engines."""
        lasts: dict[str, list[str]] = {}
        for phrase in self._shortest_phrases():
            first, _, last = phrase.rpartition("_")
            lasts.setdefault(last, []).append(first.replace("_", "[_\\-. ]?"))
        words = [
            f"(?:{'|'.join(firsts)})[_\\-. ]?{last}" if firsts != [""] else last
            for last, firsts in sorted(lasts.items())
        ]
        neutral = "|".join(sorted(self._neutral))
        return f"(?:{'|'.join(words)})(?:[_\\-. ]?(?:{neutral})){{0,2}}[_\\-. ]?[0-9]{{0,4}}"

    def _shortest_phrases(self) -> list[str]:
        """The phrases without those that end in another: where the longer one stands, so does the shorter."""
        return sorted(
            phrase
            for phrase in self._says
            if not any(phrase != other and phrase.endswith(other) for other in self._says)
        )
