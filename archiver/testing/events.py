"""Inside an agent under test: count what it does, and die at the point that was chosen, by a real SIGKILL."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from archiver import jsonio, layout
from archiver.testing.points import KINDS, Point

_write = os.write
_NAMES: Final = {
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "fcntl.flock",
}
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_SHOWN: Final = 200


class Events:
    """Counts events by kind, from any thread; `tale` is a descriptor that the death is told to."""

    def __init__(self, point: Point | None, tale: int) -> None:
        self._point, self._tale = point, tale
        self._pid = os.getpid()
        # The next number of a count is taken in one step, so that no two threads get the same.
        self._numbers = {kind: itertools.count(1) for kind in KINDS}
        self._last = dict.fromkeys(KINDS, 0)

    def seen(self, kind: str, what: str, half: Callable[[], object] | None = None) -> None:
        """An event of `kind` is about to happen; where it is the point, do `half` of it and die."""
        if os.getpid() != self._pid:
            return  # a process that the agent started is not the agent
        number = next(self._numbers[kind])
        self._last[kind] = max(self._last[kind], number)
        if self._point == Point(kind, number):
            if half is not None:
                half()
            _write(self._tale, jsonio.dumps({"died": what[:_SHOWN]}) + b"\n")
            os.kill(self._pid, signal.SIGKILL)

    def counts(self) -> dict[str, int]:
        """How many there were of each kind."""
        return {kind: count for kind, count in self._last.items() if count}


def install(events: Events, *, remote: bool) -> None:
    """Watch this process from now on; `remote` for a store that is reached over a network."""
    sys.addaudithook(_files(events))
    _wrap(os, "fsync", _synced(events))
    _wrap(os, "fdatasync", _synced(events))
    _wrap(os, "write", _written(events))
    _wrap(socket.socket, "sendall", _sent(events))
    for store in _stores(remote):
        _wrap(store, "create", _created(events))


def _stores(remote: bool) -> Iterator[type]:
    from archiver.store.local import LocalStore

    yield LocalStore
    if remote:
        from archiver.store.s3 import S3Store

        yield S3Store


def _wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    if hasattr(owner, name):  # not every system has every call
        setattr(owner, name, make(getattr(owner, name)))


def _files(events: Events) -> Callable[[str, tuple[Any, ...]], None]:
    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name in _NAMES or (name == "open" and arguments[2] & _WRITING and arguments[0] != os.devnull):
            events.seen("file", f"before {name} {_shown(arguments[0])}")

    return hook


def _shown(path: Any) -> str:
    return repr(_path_of(path) if isinstance(path, int) else path)


def _path_of(handle: int) -> str:
    with suppress(OSError):
        return str(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 - no path is made of it
    return f"descriptor {handle}"


def _synced(events: Events) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def make(real: Callable[..., None]) -> Callable[..., None]:
        def fsync(handle: Any) -> None:
            path = _path_of(handle) if isinstance(handle, int) else "a file"
            events.seen("fsync", f"before fsync of {path}")
            real(handle)
            events.seen("fsync", f"after fsync of {path}")

        return fsync

    return make


def _written(events: Events) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def make(real: Callable[..., int]) -> Callable[..., int]:
        def write(handle: int, data: Any) -> int:
            path, view = _path_of(handle), memoryview(data)
            events.seen("write", f"before {view.nbytes} bytes are written to {path}")
            half = view.cast("B")[: view.nbytes // 2]
            events.seen("write", f"half of {view.nbytes} bytes written to {path}", lambda: real(handle, half))
            return real(handle, data)

        return write

    return make


def _sent(events: Events) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def make(real: Callable[..., None]) -> Callable[..., None]:
        def sendall(self: socket.socket, data: Any, *flags: int) -> None:
            view = memoryview(data)
            events.seen("send", f"before {view.nbytes} bytes are sent")
            half = view.cast("B")[: view.nbytes // 2]
            events.seen("send", f"half of {view.nbytes} bytes sent", lambda: real(self, half, *flags))
            real(self, data, *flags)
            events.seen("send", f"{view.nbytes} bytes sent, before any answer")

        return sendall

    return make


def _created(events: Events) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def create(self: Any, name: str, body: Iterable[bytes], **options: Any) -> Any:
            kind = "effect" if name.startswith(layout.EFFECTS) else "upload"
            events.seen(kind, f"before {name} is created")
            info = real(self, name, _in_two(events, kind, name, body), **options)
            events.seen(kind, f"after {name} was created")
            return info

        return create

    return make


def _in_two(events: Events, kind: str, name: str, body: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, with an event after the first half of the first piece."""
    pieces = iter(body)
    for first in pieces:
        middle = len(first) // 2
        yield first[:middle]
        events.seen(kind, f"in the middle of the upload of {name}")
        yield first[middle:]
        break
    yield from pieces
