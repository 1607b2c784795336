"""Which host an address names, and whether the restorer's list lets probes ask it.

One form is compared and connected to: lower case, IDNA, no dot at the end, IP addresses in their canonical
form. What has no such form is refused, so no second reading of an address can lead anywhere else.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

PORTS: Final = {"http": 80, "https": 443}
MAX_ADDRESS: Final = 2048
"""Characters of the address of a resource."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_STRANGE = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[-_.])(?:[a-z]*(?:key|secret|token|passwd|password|signature|credentials?)|sig|pass|pwd|auth|"
    r"authorization|session|sid|jwt|code|sas|hmac)(?:$|[-_.]|id$)"
)
_LOOKS_RANDOM = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])[A-Za-z0-9_\-+/=.~:]{20,}")
_PLACEHOLDER: Final = "[REDACTED:"


class AddressError(Exception):
    """An address that probes do not ask; the text says why and repeats nothing that may be a secret."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query, as it is sent."""

    @property
    def entry(self) -> str:
        """The line of the allow list that lets this host be asked: `example.com`, `example.com:8443`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def target(url: str, *, longest: int = MAX_ADDRESS) -> Target:
    """The place that an `http` or `https` address names; `AddressError` for one that is not plainly that."""
    if len(url) > longest:
        raise AddressError(f"its address is longer than {longest} characters")
    if _STRANGE.search(url):
        raise AddressError("its address holds white space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError("its address cannot be read") from error
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise AddressError("only http and https addresses are asked")
    if "@" in parts.netloc:
        raise AddressError("its address holds a user or a password")
    if port == 0:
        raise AddressError("its address names port 0")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise AddressError("its path has characters that must be percent-encoded")
    return Target(scheme, host_of(_bare(parts.netloc)), port or PORTS[scheme], path)


def _bare(netloc: str) -> str:
    """The host as it is written, without its port; brackets only around an IPv6 address."""
    host, bracket, rest = netloc.partition("]")
    if bracket:
        if not host.startswith("[") or (rest and not rest.startswith(":")):
            raise AddressError("its address cannot be read")
        return host[1:] if ":" in host else ""
    return netloc.partition(":")[0]


def host_of(text: str) -> str:
    """The one form of a host name or IP address; `AddressError` for anything that has none."""
    if "%" in text:
        raise AddressError("its host is no host name")
    if ":" in text or _NUMBER.fullmatch(text.removesuffix(".").rpartition(".")[2].lower()):
        try:
            # A name that ends in a number is an IP address to every resolver, and each reads it differently.
            return str(ipaddress.ip_address(text))
        except ValueError as error:
            raise AddressError("its host is no IP address in the usual form") from error
    try:
        name = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise AddressError("its host is no host name") from error
    if len(name) > 253 or not all(map(_LABEL.fullmatch, name.split("."))):
        raise AddressError("its host is no host name")
    return name if name == text.lower().removesuffix(".") else host_of(name)


def without_secrets(url: str) -> str:
    """The address itself; `AddressError` if it carries what looks like a credential: it would be stored."""
    parts = urlsplit(url)
    if parts.fragment:
        raise AddressError("its address has a part behind `#`, which no server sees")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if value.startswith(("http://", "https://")):
            without_secrets(value)
        elif _LOOKS_RANDOM.search(value):
            raise AddressError("the query of its address looks like a credential")
        if _SECRET_NAME.search(name) or _LOOKS_RANDOM.search(name):
            raise AddressError("the query of its address looks like a credential")
    if _PLACEHOLDER in url:
        raise AddressError("a credential was taken out of its address")
    return url


def is_listed(place: Target, hosts: Iterable[str]) -> bool:
    """Whether one of the entries names this host and port; an entry without a port means the usual ones."""
    return any(_names(entry, place) for entry in hosts)


def _names(entry: str, place: Target) -> bool:
    try:
        pattern, port = read_entry(entry)
    except AddressError:
        return False
    if port != place.port and (port is not None or place.port != PORTS[place.scheme]):
        return False
    if pattern.startswith("*."):
        return place.host.endswith(pattern[1:]) and not _is_ip(place.host)
    return place.host == pattern


def read_entry(entry: str) -> tuple[str, int | None]:
    """Host, or `*.` and a domain, and port of an entry of the list; `AddressError` if it is none."""
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = entry, ""
    if colon and host != entry and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535):
        raise AddressError(f"{entry!r} has no port behind its colon")
    if host.startswith("[") and host.endswith("]") and ":" in host:
        host = host[1:-1]
    start = "*." if host.startswith("*.") else ""
    name = host_of(host.removeprefix(start))
    if start and _is_ip(name):
        raise AddressError(f"{entry!r} has a star before an IP address")
    return start + name, int(port) if port else None


def _is_ip(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdigit()
