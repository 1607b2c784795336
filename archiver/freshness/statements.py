"""What a credential states of itself: its kind, when it expires, what it is good for. Never the value.

Nothing here is verified: whoever holds a token could make another one that says the same. It is enough to
tell a person that a token has run out before the run finds out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Final

from archiver import jsonio
from archiver.model import JsonValue

_KINDS: Final = (
    ("github_pat_", "GitHub token"), ("ghp_", "GitHub token"), ("gho_", "GitHub token"),
    ("ghs_", "GitHub token"), ("ghu_", "GitHub token"), ("glpat-", "GitLab token"),
    ("sk-ant-", "Anthropic key"), ("sk-", "API key"), ("AKIA", "AWS access key id"),
    ("ASIA", "AWS access key id of a session"), ("xox", "Slack token"), ("npm_", "npm token"),
    ("hf_", "Hugging Face token"), ("pypi-", "PyPI token"), ("AIza", "Google API key"),
    ("-----BEGIN ", "PEM"),
)  # fmt: skip
_EXPIRY: Final = (
    *("expiresat", "expireson", "expires", "expiry", "expirydate", "expiration", "expirationdate"),
    *("validuntil", "notafter"),
)
"""How names of an expiry end, without what joins their words."""
_LASTS: Final = frozenset({"expiresin", "expiresinseconds", "ttl"})
"""Names of a time that counts from a moment which is not stated."""
_NEVER: Final = frozenset({"", "never", "none", "null", "false", "0"})
_TOKENS: Final = frozenset({"accesstoken", "token"})
_LINE = re.compile(r"(?m)^[ \t]*[\"']?([A-Za-z_-]{3,40})[\"']?[ \t]*[=:][ \t]*[\"']?([^\"'\r\n#;]{4,40})")
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]+")
_MOST_TOKENS: Final = 20
_MOST_NODES: Final = 10_000
_MOST_SCOPES: Final = 50
_MILLISECONDS: Final = 1e11
"""Numbers above are no seconds: those would lie in the year 5138."""
_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BEARER = re.compile(r"(?i)^bearer\s+")


@dataclass(frozen=True, slots=True)
class Stated:
    """Without anything from which the credential could be made or guessed."""

    kind: str
    expires: datetime | None = None
    scope: tuple[str, ...] = ()
    renews: bool = False
    """Whether a refresh token lies beside it."""
    unread: bool = False
    """Whether it states an expiry that cannot be understood."""


def of_value(text: str) -> Stated:
    """What one value states."""
    text = _BEARER.sub("", text.strip().strip("\"'"))
    claims = _claims(text)
    if claims is not None:
        ends = claims.get("exp")
        return Stated("JWT", moment(ends), _scope(claims), unread=_is_unread("exp", ends))
    kind = next((kind for start, kind in _KINDS if text.startswith(start)), "text")
    return Stated(kind)


def of_file(text: str) -> Stated:
    """What the content of a file states: a token, JSON, or lines of names and values."""
    try:
        document = jsonio.loads(text.encode("utf-8", "replace"))
    except ValueError:
        document = None
    if isinstance(document, dict | list):
        entries = list(_entries(document))
        found = [value for name, value in entries if _plain(name) in _TOKENS and isinstance(value, str)]
        return _gathered("JSON file", entries, [of_value(value) for value in found])
    alone = of_value(text)
    if alone.kind != "text":
        return alone
    lines = [(name, value.strip()) for name, value in _LINE.findall(text)]
    tokens = [of_value(found[0]) for found in islice(_TOKEN.finditer(text), _MOST_TOKENS)]
    stated = _gathered("file", lines, tokens)
    return stated if stated.expires or stated.unread else alone


def _gathered(kind: str, entries: Sequence[tuple[str, JsonValue]], tokens: Sequence[Stated]) -> Stated:
    """The earliest expiry that is stated beside the tokens, else by themselves."""
    moments = [found for name, value in entries if (found := _expiry(name, value))]
    moments = moments or [token.expires for token in tokens if token.expires is not None]
    unread = any(_is_unread(name, value) for name, value in entries) or any(token.unread for token in tokens)
    return Stated(
        kind,
        min(moments, default=None),
        tuple(sorted({word for token in tokens for word in token.scope})),
        renews=any("refreshtoken" in _plain(name) and bool(value) for name, value in entries),
        unread=unread,
    )


def moment(value: object) -> datetime | None:
    """A time as credentials write it; None if it is none, or one that stands for no end.

    Seconds or milliseconds since 1970, ISO 8601, or as in mails: `Sun, 01 Mar 2026 10:00:00 GMT`.
    """
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,20}(?:\.[0-9]{1,9})?", value):
            found = _written(value.strip())
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
            return found if found > _BEGIN else None
        if isinstance(value, str | int | float):
            number = float(value)
            return (
                datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
                if number
                else None
            )
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _written(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.removesuffix("UTC").strip())
    except ValueError:
        return parsedate_to_datetime(text)


def _expiry(name: str, value: object) -> datetime | None:
    return moment(value) if _is_expiry(name) else None


def _is_expiry(name: str) -> bool:
    plain = _plain(name)
    return plain == "exp" or (plain.endswith(_EXPIRY) and "refresh" not in plain)


def _is_unread(name: str, value: object) -> bool:
    """Whether this says that there is an end, and not so that it can be understood."""
    if not value or isinstance(value, dict | list) or (isinstance(value, str) and _is_never(value)):
        return False
    if _plain(name) in _LASTS:
        return True
    return _is_expiry(name) and moment(value) is None


def _is_never(text: str) -> bool:
    """Whether it stands for no end: in words, or as the time at which a clock begins to count."""
    plain = text.strip().lower()
    return plain in _NEVER or plain.startswith(("0001-01-01", "1970-01-01t00:00:00"))


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _entries(document: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Names and values of a document, however deep, up to a number of them."""
    todo: list[JsonValue] = [document]
    seen = 0
    while todo and seen < _MOST_NODES:
        value = todo.pop()
        if isinstance(value, dict):
            seen += len(value)
            yield from value.items()
            todo += value.values()
        elif isinstance(value, list):
            seen += len(value)
            todo += value


def _claims(text: str) -> Mapping[str, JsonValue] | None:
    """The claims of a JSON Web Token; None for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or len(text) > 1 << 16 or not text.startswith("eyJ"):
        return None
    try:
        claims = jsonio.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def _scope(claims: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The words of `scope` or `scp`: what the token is good for."""
    given = claims.get("scope", claims.get("scp"))
    words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
    good = {word for word in words if isinstance(word, str) and 0 < len(word) <= 100 and word.isprintable()}
    return tuple(sorted(good)[:_MOST_SCOPES])
