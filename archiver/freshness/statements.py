"""What a credential states of itself: its kind, when it expires, what it is good for. Never the value.

Nothing here is verified: whoever holds a token could make another one that says the same. It is enough to
tell a person that a token has run out before the run finds out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
_EXPIRY: Final = frozenset(
    {
        *("expiresat", "expiry", "expiration", "expires", "exp", "expirydate", "tokenexpiry"),
        *("accesstokenexpiresat", "awsexpiration", "awscredentialexpiration", "xsecuritytokenexpires"),
    }
)
_TOKENS: Final = frozenset({"accesstoken", "token"})
_LINE = re.compile(r"(?m)^[ \t]*[\"']?([A-Za-z_-]{3,40})[\"']?[ \t]*[=:][ \t]*[\"']?([^\"'\r\n#;]{4,40})")
_MOST_NODES: Final = 10_000
_MOST_SCOPES: Final = 50
_MILLISECONDS: Final = 1e11
"""Numbers above are no seconds: those would lie in the year 5138."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Without anything from which the credential could be made or guessed."""

    kind: str
    expires: datetime | None = None
    scope: tuple[str, ...] = ()
    renews: bool = False
    """Whether a refresh token lies beside it."""


def of_value(text: str) -> Stated:
    """What one value states."""
    claims = _claims(text.strip())
    if claims is not None:
        return Stated("JWT", moment(claims.get("exp")), _scope(claims))
    kind = next((kind for start, kind in _KINDS if text.startswith(start)), "text")
    return Stated(kind)


def of_file(text: str) -> Stated:
    """What the content of a file states: a token, JSON, or lines of names and values."""
    try:
        document = jsonio.loads(text.encode("utf-8", "replace"))
    except ValueError:
        document = None
    if not isinstance(document, dict | list):
        alone = of_value(text)
        moments = [found for name, value in _LINE.findall(text) if (found := _expiry(name, value.strip()))]
        return alone if alone.kind != "text" or not moments else Stated("file", min(moments))
    moments, tokens, renews = [], [], False
    for name, value in _entries(document):
        if found := _expiry(name, value):
            moments.append(found)
        renews = renews or (_plain(name) == "refreshtoken" and bool(value))
        if _plain(name) in _TOKENS and isinstance(value, str):
            tokens.append(of_value(value))
    moments = moments or [token.expires for token in tokens if token.expires is not None]
    scope = tuple(sorted({word for token in tokens for word in token.scope}))
    return Stated("JSON file", min(moments, default=None), scope, renews)


def moment(value: object) -> datetime | None:
    """A time as credentials write it: seconds or milliseconds since 1970, or ISO 8601; None if it is none."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,20}(?:\.[0-9]{1,9})?", value):
            found = datetime.fromisoformat(value.removesuffix("UTC").strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, str | int | float):
            number = float(value)
            return datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _expiry(name: str, value: object) -> datetime | None:
    return moment(value) if _plain(name) in _EXPIRY else None


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
