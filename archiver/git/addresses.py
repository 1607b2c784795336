"""Addresses of repositories, without what opens them."""

from __future__ import annotations

import re
from typing import Final

SCHEMES: Final = frozenset({"https", "http", "ssh", "git", "file", "ftp", "ftps", "git+ssh", "ssh+git"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_HOST = re.compile(r"(?!-)(?:\[[0-9A-Fa-f:.%]+\]|[^:@\[\]\\]*)(?::[0-9]+)?")
_AFTER_USER = re.compile(r"[@/?#]")
_COPY = re.compile(r"(?:(?P<user>[^@/?#]*)@)?(?P<host>\[[^\]@/]*\]|[^:@/?#\[\]]+):(?P<path>[^@]*)")
"""`user@host:path`, as `scp` writes it."""
_SSH: Final = frozenset({"ssh", "git+ssh", "ssh+git"})
_PUBLIC: Final = "git"
"""The user that hosts of repositories give to everybody: ssh does not get there without it."""


def stripped(address: str) -> str | None:
    """The address without user, password, query and fragment; None for what no plain address is.

    The user `git` of ssh stays: it names nobody. Addresses that start programs (`ext::…`), that could be
    options, that have control characters, or in which a password may stand where none belongs (an `@` behind
    the host), are none.
    """
    if not address.isprintable() or not address or address.startswith("-") or _HELPER.match(address):
        return None
    if scheme := _SCHEME.match(address):
        return _url(scheme[1].lower(), address[scheme.end() :])
    if "/" in address.partition(":")[0] or ":" not in address:  # a path on this machine, also a relative one
        return None if "@" in address.partition("/")[0] else address
    found = _COPY.fullmatch(address)
    if found is None or found["host"].startswith("-"):
        return None
    user = f"{_PUBLIC}@" if found["user"] == _PUBLIC else ""
    return f"{user}{found['host']}:{_cut(found['path'])}"


def _url(scheme: str, rest: str) -> str | None:
    if scheme not in SCHEMES:
        return None
    user, at, behind = rest.rpartition("@")
    host, slash, path = _cut(behind).partition("/")
    if not _HOST.fullmatch(host) or _AFTER_USER.search(user):
        return None
    if at and user == _PUBLIC and scheme in _SSH:
        host = f"{_PUBLIC}@{host}"
    return f"{scheme}://{host}{slash}{path}"


def _cut(text: str) -> str:
    return re.split(r"[?#]", text, maxsplit=1)[0]
