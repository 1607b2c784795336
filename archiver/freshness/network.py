"""The one door from probes to other hosts: listed hosts only, one exchange, bounded in time and size.

No redirect is followed, no proxy of the environment used (its host is not on the list), and nothing is sent
that was not given: no cookies, no passwords of a `.netrc`.
"""

from __future__ import annotations

import hashlib
import io
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from archiver.freshness.addresses import safe_addresses
from archiver.freshness.hosts import MAX_ADDRESS, AddressError, Target, is_listed, target
from archiver.freshness.probe import Context
from archiver.freshness.unasked import TooLargeError, Unasked

if TYPE_CHECKING:
    from http.client import HTTPResponse

SHARE: Final = 0.8
"""Part of a probe's time that an exchange may take, so that it has ended before the probe is given up."""
_GATHERED: Final = 0.9
"""Part of it after which a probe of many things answers without those that have not ended."""
MAX_HEADERS: Final = 64 << 10
MAX_BODY: Final = 8 << 20
_PIECE: Final = 64 << 10
_AGENT: Final = "checkpoint-archiver"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host said."""

    status: int
    headers: Mapping[str, str]
    """Those that came exactly once, by their names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Network:
    """Who may be asked, and until when."""

    allowed: bool
    hosts: tuple[str, ...]
    deadline: float
    """Of the monotonic clock: when an exchange has to end."""
    gathered: float
    """When a probe that has several under way answers without those that have not ended."""

    @classmethod
    def of(cls, context: Context) -> Network:
        """What the caller of the probes allows."""
        now, time = monotonic(), context.timeout
        return cls(context.network, context.hosts, now + time * SHARE, now + time * _GATHERED)

    def check(self, place: Target) -> None:
        """`Unasked` unless the host may be asked."""
        line = f'the line `hosts = ["{place.entry}"]` in the section [freshness] of archiver.toml'
        if not is_listed(place, self.hosts):
            raise Unasked(f"not contacted: {place.entry} is not on the list of hosts", f"{line} allows it")
        self.check_used()

    def check_used(self) -> None:
        """`Unasked` where no host at all may be asked."""
        if not self.allowed:
            raise Unasked(
                "not contacted: the network is not used", "a plan asks the hosts on the list with --network"
            )

    def ask(
        self,
        method: str,
        place: Target,
        *,
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        limit: int = MAX_BODY,
        enough: Callable[[Mapping[str, str]], bool] = lambda _: False,
        hashed: bool = False,
    ) -> Answer:
        """The answer to one request, whatever its status; `Unasked` where there is none.

        Its body is not read where its headers are `enough`, or its status is no success; `hashed`: only the
        SHA-256 of it is kept.
        """
        from http.client import HTTPException

        self.check(place)
        addresses = safe_addresses(place, self.deadline)
        try:
            with _connect(place, addresses, self.deadline) as line:
                line.settimeout(_left(self.deadline))
                line.sendall(_request(method, place, headers, body))
                return _read(line, method, self.deadline, limit, enough, hashed)
        except TimeoutError as error:
            raise Unasked("no answer within the time of a probe", "try again later") from error
        except (OSError, HTTPException, ValueError, EOFError) as error:
            raise Unasked(f"no usable answer ({_reason(error)})") from error


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connect(place: Target, addresses: list[str], deadline: float) -> socket.socket:
    """A connection to one of the addresses that were looked at; the name is not looked up again."""
    failure: OSError = OSError("no address")
    for index, address in enumerate(addresses):
        try:
            line = socket.create_connection((address, place.port), _left(deadline) / (len(addresses) - index))
        except OSError as error:
            failure = error
            continue
        try:
            return line if place.scheme == "http" else _encrypted(line, place.host, deadline)
        except BaseException:
            line.close()
            raise
    raise failure


def _encrypted(line: socket.socket, host: str, deadline: float) -> socket.socket:
    import ssl

    line.settimeout(_left(deadline))
    return ssl.create_default_context().wrap_socket(line, server_hostname=host)


def _request(method: str, place: Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
    given = {
        "Host": place.entry,
        "User-Agent": _AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    } | dict(headers)
    if body is not None:
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {place.path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


class _Line(io.RawIOBase):
    """What comes in, until the deadline, and no more than there is room for."""

    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line = line
        self._deadline = deadline
        self.room = MAX_HEADERS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.room <= 0:
            raise TooLargeError("its answer is larger than probes read")
        self._line.settimeout(_left(self._deadline))
        count = self._line.recv_into(memoryview(buffer)[: self.room])
        self.room -= count
        return count

    def makefile(self, *_: Any) -> io.BufferedReader:
        """As of a socket: `http.client` reads from this."""
        return io.BufferedReader(self)


def _read(
    line: socket.socket,
    method: str,
    deadline: float,
    limit: int,
    enough: Callable[[Mapping[str, str]], bool],
    hashed: bool,
) -> Answer:
    from http.client import HTTPResponse

    coming = _Line(line, deadline)
    with HTTPResponse(cast("socket.socket", coming), method=method) as response:
        response.begin()
        names = [name.lower() for name in response.headers]
        once = {
            name.lower(): value for name, value in response.headers.items() if names.count(name.lower()) == 1
        }
        if not 200 <= response.status < 300 or enough(once):
            return Answer(response.status, once, b"")
        coming.room = 2 * limit + MAX_HEADERS  # chunks have sizes of their own
        pieces = _pieces(response, limit)
        if not hashed:
            return Answer(response.status, once, b"".join(pieces))
        total = hashlib.sha256()
        for piece in pieces:
            total.update(piece)
        return Answer(response.status, once, total.digest())


def _pieces(response: HTTPResponse, limit: int) -> Iterator[bytes]:
    """The whole content, or an error: where it is cut off, `http.client` says nothing."""
    stated = response.length
    if (stated or 0) > limit:
        raise TooLargeError(f"its content is larger than {limit} bytes")
    size = 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > limit:
            raise TooLargeError(f"its content is larger than {limit} bytes")
        yield piece
    if stated is not None and size < stated:
        raise EOFError


def _reason(error: Exception) -> str:
    """The kind of failure, and what the system says of it; never what the other side said."""
    said = error.strerror if isinstance(error, OSError) and isinstance(error.strerror, str) else None
    verify = getattr(error, "verify_message", None)
    return f"{type(error).__name__}: {verify or said}" if verify or said else type(error).__name__


def place_of(url: str, *, longest: int = MAX_ADDRESS) -> Target:
    """The place that an address names; `Unasked` for one that probes do not ask."""
    try:
        return target(url, longest=longest)
    except AddressError as error:
        raise not_asked(error) from error


def not_asked(error: AddressError) -> Unasked:
    """What is said of an address that probes do not ask."""
    return Unasked(f"not contacted: {error}", "watch it by a plain address, or register a function for it")
