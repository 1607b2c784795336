"""Probe `upstream`: whether resources outside the workspace still have the version they had at the save."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from archiver import jsonio
from archiver.freshness import callables, git_remote
from archiver.freshness.callables import CallableResource
from archiver.freshness.file_resource import FileResource
from archiver.freshness.git_remote import GitResource
from archiver.freshness.hosts import MAX_ADDRESS, AddressError, without_secrets
from archiver.freshness.http_resource import HttpResource
from archiver.freshness.network import Network
from archiver.freshness.probe import Context
from archiver.freshness.resources import LOOK, REDACTED, GoneError, Kind, World, side_by_side, within
from archiver.freshness.s3_resource import S3Resource
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue

MAX_RESOURCES: Final = 64
_ROOM: Final = 12 << 10
"""Bytes of JSON for all resources in a record."""

_KINDS: Final[dict[str, Kind]] = {
    "https://": HttpResource(),
    "http://": HttpResource(),
    "s3://": S3Resource(),
    "file:": FileResource(),
    callables.SCHEME: CallableResource(),
    **dict.fromkeys(git_remote.SCHEMES, GitResource()),
}


_BY_HAND: Final = "look at it by hand"
_USER = re.compile(r"^[^/?#]*@|://[^/?#]*@")
"""A user or password before a host."""


class UpstreamProbe:
    """Each resource by its own token, side by side; the most cautious answer wins."""

    name = "upstream"

    def capture(self, context: Context) -> JsonValue | None:
        """`{resources: [{at, token}, {at, not_seen}, …], left_out}`; None where nothing is watched."""
        watched = tuple(dict.fromkeys((*map(_written, context.watch), *callables.addresses())))
        if not watched:
            return None
        world = World(context, Network.of(context))
        rows = side_by_side(
            [partial(_captured, address, world) for address in watched[:MAX_RESOURCES]],
            world.network.gathered,
            instead=lambda _, reason: {"not_seen": reason},
        )
        kept = within(
            _ROOM, ({"at": shown(address), **row} for address, row in zip(watched, rows, strict=False))
        )
        return {"resources": kept, "left_out": len(watched) - len(kept)}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        rows, left_out = _remembered(captured)
        world = World(context, Network.of(context))
        names = [str(row.get("at"))[:MAX_ADDRESS] for row in rows]
        tasks: list[Callable[[], Finding]] = [
            partial(_judged, name, row, world) for name, row in zip(names, rows, strict=True)
        ]
        findings = side_by_side(
            tasks,
            world.network.gathered,
            instead=lambda index, reason: Finding("UNKNOWN", f"{names[index]}: {reason}", _BY_HAND),
        )
        if left_out:
            said = f"{left_out} resources were too many to remember"
            findings.insert(0, Finding("UNKNOWN", said, "watch fewer of them"))
        return together(self.name, findings, nothing="no resource was watched")


def _written(address: str) -> str:
    """The address with its scheme in lower case, as it is stored and compared."""
    scheme, colon, rest = address.partition(":")
    return f"{scheme.lower()}{colon}{rest}"


def _kind(address: str) -> Kind:
    for start, kind in _KINDS.items():
        if address.startswith(start):
            return kind
    raise Unasked("it is of no kind that probes know", f"an address begins with one of {', '.join(_KINDS)}")


def _captured(address: str, world: World) -> dict[str, JsonValue]:
    try:
        return {"token": _kind(address).see(address, world)}
    except Unasked as reason:
        return {"not_seen": reason.evidence}
    except GoneError as gone:
        return {"not_seen": str(gone)}


def _judged(address: str, row: dict[str, JsonValue], world: World) -> Finding:
    then = row.get("token")
    if REDACTED in jsonio.dumps(row).decode():
        said = "a credential was taken out of what was remembered"
        return Finding("UNKNOWN", f"{address}: {said}", _BY_HAND)
    try:
        if isinstance(then, dict):
            return _kind(address).compare(address, then, world)
    except Unasked as reason:
        return reason.finding(address)
    except GoneError as gone:
        return Finding("STALE", f"{address}: {gone}", LOOK)
    except ValueError as error:
        return Finding("UNKNOWN", f"{address}: {error}")
    why = row.get("not_seen")
    said = why[:300] if isinstance(why, str) else "no reason is recorded"
    return Finding("UNKNOWN", f"{address}: not seen at the save ({said})", _BY_HAND)


def shown(address: str) -> str:
    """The address as it is stored: its beginning alone where it carries what looks like a credential."""
    scheme, separator, rest = address.partition("://")
    if separator:
        try:
            without_secrets(address.partition("#")[0] if scheme.startswith("git+") else address)
        except (AddressError, ValueError):
            return f"{scheme}://…"
        if _USER.search(rest):
            return f"{scheme}://…"
    return address if len(address) <= MAX_ADDRESS else f"{address[:40]}…"


def _remembered(captured: JsonValue) -> tuple[list[dict[str, JsonValue]], int]:
    if not isinstance(captured, dict) or not isinstance(rows := captured.get("resources"), list):
        raise TypeError("the record holds no resources")
    left_out = captured.get("left_out")
    good = [row for row in rows[:MAX_RESOURCES] if isinstance(row, dict)]
    return good, (left_out if isinstance(left_out, int) else 0) + len(rows) - len(good)
