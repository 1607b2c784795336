"""Texts of the surroundings and of people, free of credentials, before they are written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from archiver.errors import RedactionUnavailableError
from archiver.model.audit import MAX_WHY
from archiver.safetext import shorten

if TYPE_CHECKING:
    from archiver.setup import Setup

_WORD = r"(?:[A-Za-z]{1,16}|[0-9]{1,10})"
NAME = re.compile(rf"{_WORD}(?:[._-]{_WORD})*")
_PLAIN = re.compile(rf"[0-9a-f]{{32,64}}|\d{{1,8}}|(?:/\.?{NAME.pattern})+")
"""Digests, numbers and paths of plain words, for which the rules are not loaded: that takes longer than most
restores, and seconds where they are not compiled yet."""


def unicode(text: str) -> str:
    """Text of the system, which need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Clean:
    """Takes credentials out of what somebody typed; the rules are loaded only for such text."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def text(self, text: str) -> str:
        text = unicode(text)
        if not text.strip() or _PLAIN.fullmatch(text):
            return text.strip()
        return shorten(self._redacted(text), MAX_WHY)

    def whole(self, text: str) -> str:
        """The same, as long as it is and with its blanks: a path stays one."""
        text = unicode(text)
        return text if not text.strip() or _PLAIN.fullmatch(text) else self._redacted(text)

    def url(self, url: str) -> str:
        """The address of a store: no bucket is called by a credential, the path of a folder may hold one."""
        if urlsplit(url).scheme != "file":
            return unicode(url)
        path = unquote(urlsplit(url).path, errors="backslashreplace")
        cleaned = self.text(path)
        return url if cleaned == path else f"file://{cleaned}"

    def value(self, value: Any) -> Any:
        """The same for every text in a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(one) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(one) for one in value]
        return value

    def _redacted(self, text: str) -> str:
        from archiver.redact import new_key

        try:
            with self._setup.session.lock:
                redactor = self._setup.session.redactor or self._setup.redactor(new_key())
                self._setup.session.redactor = redactor
            return redactor.text(text)
        except RedactionUnavailableError:
            return "[not written: it could not be searched for credentials]"
