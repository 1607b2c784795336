"""What of a (name, value) pair is secret, and what it holds besides: passwords in URLs, decoded keys."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from archiver.redact import negatives
from archiver.redact.names import Names
from archiver.redact.secretfiles import forms
from archiver.redact.secretfiles.reading import UnusableFileError

_SURE: Final = frozenset(
    {
        *("auth", "_auth", "value", "key", "access", "refresh", "secret", "oauth_token", "identitytoken"),
        *("registrytoken", "client-key-data", "client_assertion", "cookie", "dsn", "pat", "sig", "htpasswd"),
    }
)
"""Names that mean a secret in a file of credentials, and too little elsewhere."""
_PUBLIC = re.compile(
    r"certificate|public|fingerprint|(?:^|[_\-.])(?:cert|ca|id|url|uri|host|email|path|file|region|name|scopes?"
    r"|sha|sha1|sha256|commit|digest|hash|checksum|integrity|etag|rev|revision|image|tag|build|arn|model|bucket"
    r"|version|expir\w*|type|algorithm|issuer|username|user)(?:[_\-]data)?$|(?<=[a-z])(?:Id|Url|Uri|Host|Name|At)$",
    re.IGNORECASE,
)
"""Ends of names whose values are no secrets, whatever they look like."""
_USERINFO = re.compile(r"[a-z][a-z0-9+.\-]*://([^\s/?#@:]*):([^\s/?#]+)@", re.IGNORECASE)
_TOKEN_USER = re.compile(r"https?://([^\s/?#@:]{16,})(?::x-oauth-basic)?@", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]{8,}={0,2}\s*")
_LOGIN = re.compile(r"[^\s:\x00-\x1f]{0,200}:([^\x00-\x1f]{3,})")
_RANDOM: Final = 16
_MOST_DECODED: Final = 64 << 10
_PRINTABLE = re.compile(r"[\t\n\r\x20-\x7e]+")


def secrets_in(
    name: str, value: str, names: Names, *, eager: bool, depth: int = 0
) -> Iterator[tuple[str, str]]:
    """The secrets that the pair holds, each with a name.

    `eager`: the pair stands in a file of credentials, so a value that looks random counts under any name.
    """
    value = value.strip()
    logins = list(passwords(value))
    yield from ((name, password) for password in logins)
    if value[:1] in ("{", "[") and depth < 2:  # a service account, or the like, in a variable
        yield from _inner(value, names, depth)
    if logins:
        return
    if _says(name, names, eager=eager) or (eager and _looks_random(name, value)):
        yield name, value
        yield from ((name, inner) for inner in _decoded(value))


def passwords(value: str) -> Iterator[str]:
    """The passwords of URLs in a value, as they stand and percent-decoded; tokens in place of users too."""
    for match in (*_USERINFO.finditer(value), *_TOKEN_USER.finditer(value)):
        found = match[match.lastindex or 1]
        yield found
        if "%" in found:
            yield unquote(found)


def _inner(value: str, names: Names, depth: int) -> Iterator[tuple[str, str]]:
    try:
        for name, inner in forms.json_file(value):
            yield from secrets_in(name, inner, names, eager=False, depth=depth + 1)
    except UnusableFileError:
        return


def _says(name: str, names: Names, *, eager: bool) -> bool:
    if name.lower() in _SURE:
        return eager
    return names.says(name) is not None


def _looks_random(name: str, value: str) -> bool:
    """True for a long value of digits and letters that is no path, no date, no UUID and no identifier."""
    if _PUBLIC.search(name) or len(value) < _RANDOM or re.search(r"\s", value):
        return False
    data = value.encode("utf-8", "surrogatepass")
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed and not (
        negatives.is_code(data) or negatives.is_identifier(data) or negatives.says_nothing(data)
    )


def _decoded(value: str) -> Iterator[str]:
    """What base64 hides: a key, a password, or the password behind `user:`."""
    if len(value) > _MOST_DECODED or _BASE64.fullmatch(value) is None:
        return
    bare = re.sub(r"\s", "", value).rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        text = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return
    if _PRINTABLE.fullmatch(text) is None:
        return
    login = _LOGIN.fullmatch(text)
    yield login[1] if login else text
