"""The IP addresses of a host, and those that probes never ask, whatever the list of hosts says."""

from __future__ import annotations

import ipaddress
import socket
import threading
from time import monotonic
from typing import Any, Final

from archiver.freshness.hosts import Target
from archiver.freshness.unasked import Unasked

_MAX_ADDRESSES: Final = 4

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"),
            *("::/128", "fe80::/10", "fec0::/10", "ff00::/8"),
            *("fd00:ec2::/32", "fd20:ce::/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
        ),
    )
)
"""Link-local addresses, those at which clouds hand out credentials, and what is no single host."""
_HOLD_IPV4 = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")))
"""Addresses whose last 32 bits are one of IPv4, to some machine on the way: NAT64, and two old forms."""


def safe_addresses(place: Target, deadline: float) -> list[str]:
    """The addresses of a host; `Unasked` if one of them is never asked, whatever the list says."""
    found = _addresses(place, deadline)
    for text in found:
        address = _inner(ipaddress.ip_address(text.partition("%")[0]))
        if any(address.version == net.version and address in net for net in _NEVER) or "%" in text:
            raise Unasked(f"not contacted: {place.host} leads to {address}, which probes never ask")
        if address.is_loopback and not _may_be_here(place.host):
            raise Unasked(
                f"not contacted: {place.host} leads to this machine ({address})",
                "list and watch it as localhost if that is meant",
            )
    return found[:_MAX_ADDRESSES]


def _inner(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that one of IPv6 stands for, where it does."""
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in net for net in _HOLD_IPV4) and int(address) > 1:  # those two are of IPv6 itself
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address
    return address


def _may_be_here(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def _addresses(place: Target, deadline: float) -> list[str]:
    try:
        return [str(ipaddress.ip_address(place.host))]
    except ValueError:
        found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError):
            found.append([])

    # The resolver takes no time limit; a thread that waits for it ends when it gives up by itself.
    thread = threading.Thread(target=look_up, name="archiver-look-up", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - monotonic()))
    if not found or not found[0]:
        raise Unasked(f"the name {place.host} cannot be resolved{'' if found else ' in time'}")
    return list(dict.fromkeys(str(entry[4][0]) for entry in found[0]))
