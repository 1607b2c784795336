"""A resource on the web: its ETag, its Last-Modified, or a digest of its content, in this order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from archiver.freshness import digests
from archiver.freshness.hosts import AddressError, without_secrets
from archiver.freshness.network import Answer, not_asked, place_of
from archiver.freshness.resources import LOOK, Token, World, changed, check_status
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding

_WORDS: Final = {"etag": "ETag", "last_modified": "Last-Modified"}
_NOT_FOR_HEAD: Final = frozenset({404, 405, 410, 501})
"""With these, a server may only mean that it does not know HEAD for this resource."""
_TOKEN = re.compile(r"(?!(?:W/)?(?:\"\")?$)[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?")
"""A version that says something: servers that have none send an empty ETag for everything."""


class HttpResource:
    """Asked with HEAD; with GET where HEAD is not known or gives no token."""

    def see(self, address: str, world: World) -> Token:
        answer = _ask(address, world, _WORDS)
        return _tokens(answer.headers) or {"content": digests.guarded(answer.body)}

    def compare(self, address: str, then: Token, world: World) -> Finding:
        for name in _WORDS:
            if isinstance(was := then.get(name), str):
                answer = _ask(address, world, (name,))
                return _compared(address, name, was, _tokens(answer.headers).get(name))
        if "content" not in then:
            raise ValueError("the record holds no token of it")
        answer = _ask(address, world, ())
        if digests.matches(answer.body, then["content"]):
            return Finding("FRESH", f"{address}: its content is the same")
        return Finding("STALE", f"{address}: its content has changed", LOOK)


def _ask(address: str, world: World, wanted: Collection[str]) -> Answer:
    """The answer that holds one of the wanted tokens, or else the content."""
    try:
        place = place_of(without_secrets(address))
    except AddressError as error:
        raise not_asked(error) from error

    def enough(headers: Mapping[str, str]) -> bool:
        return any(name in wanted for name in _tokens(headers))

    if wanted:
        answer = world.network.ask("HEAD", place)
        if answer.status not in _NOT_FOR_HEAD:
            check_status(answer)
            if enough(answer.headers):
                return answer
    answer = world.network.ask("GET", place, enough=enough, hashed=True)
    check_status(answer)
    return answer


def _tokens(headers: Mapping[str, str]) -> Token:
    """Those of the headers that can be compared later."""
    found = {name: headers.get(word.lower(), "") for name, word in _WORDS.items()}
    return {name: value for name, value in found.items() if _TOKEN.fullmatch(value)}


def _compared(address: str, name: str, was: str, now: object) -> Finding:
    word = _WORDS[name]
    if not isinstance(now, str):
        raise Unasked(f"it gives no {word} any more", "look at it by hand")
    same = _weak(was) == _weak(now) if name == "etag" else _moment(was) == _moment(now)
    if same:
        return Finding("FRESH", f"{address}: {word} {now} as then")
    return changed(address, word, was, now)


def _weak(etag: str) -> str:
    """Compared weakly (RFC 9110, 8.8.3.2): equivalent content is what matters here."""
    return etag.removeprefix("W/")


def _moment(text: str) -> datetime | str:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return text
