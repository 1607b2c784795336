"""Resources that only the user's own code can look at: a name, and a function that returns a token.

    freshness.register_resource("orders", lambda: orders.latest_id())

At a restore the function registered under the same name is called; without one the resource is UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from archiver.errors import UsageError
from archiver.freshness import digests
from archiver.freshness.resources import LOOK, GoneError, Token, World
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding

SCHEME = "call:"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class _Registered:
    function: Callable[[], str | bytes | int | None]
    network: bool


_registered: dict[str, _Registered] = {}


def register_resource(
    name: str, token: Callable[[], str | bytes | int | None], *, network: bool = True
) -> None:
    """Ask `token` for the version of a resource at each save and restore of this process.

    It is called in a thread of its own and returns what changes when the resource does, or None when the
    resource is not there; a keyed digest of it is stored. `network=False` says that it asks no other host, so
    that a plan without network calls it too. Raises `UsageError` for a name that is taken or cannot be one.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a resource",
            remedy="use letters, digits, `.`, `_` and `-`, at most 64",
        )
    if not callable(token):
        raise UsageError(f"the token of resource {name!r} is no function", remedy="give a function to call")
    made = _Registered(token, network)
    if _registered.setdefault(name, made) is not made:
        raise UsageError(f"there is a resource {name!r} already", remedy="give yours another name")


def unregister_resource(name: str) -> None:
    """Forget a function; no error when there is none of that name."""
    _registered.pop(name, None)


def addresses() -> tuple[str, ...]:
    """The resources that are registered, as addresses."""
    return tuple(f"{SCHEME}{name}" for name in _registered)


class CallableResource:
    """What the function returns is compared by a salted digest: it may be anything."""

    def see(self, address: str, world: World) -> Token:
        return {"token": digests.guarded(_call(address, world))}

    def compare(self, address: str, then: Token, world: World) -> Finding:
        if digests.matches(_call(address, world), then.get("token")):
            return Finding("FRESH", f"{address}: its token is the same")
        return Finding("STALE", f"{address}: its token has changed", LOOK)


def _call(address: str, world: World) -> bytes:
    name = address.removeprefix(SCHEME)
    found = _registered.get(name)
    if found is None:
        raise Unasked("no function is registered under this name", "register it, as the saving process did")
    if found.network:
        world.network.check_used()
    try:
        token = found.function()
    except Exception as error:  # whatever it says may hold anything
        raise Unasked(f"its function failed with {type(error).__name__}") from None
    if token is None:
        raise GoneError("its function says that it is gone")
    if isinstance(token, bytes):
        return b"bytes:" + token
    if isinstance(token, str | int):
        return f"{'text' if isinstance(token, str) else 'number'}:{token}".encode("utf-8", "surrogatepass")
    raise Unasked(f"its function returned {type(token).__name__}, which is no token", "return a text")
