"""Servers on loopback whose resources really change, and others that do what no honest server does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from archiver.aws.options import AwsOptions
from archiver.freshness import Context

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def context(*hosts: str, timeout: float = 10.0, network: bool = True, **facts: Any) -> Context:
    """A world in which these hosts may be asked."""
    facts.setdefault("aws", AwsOptions(region="us-east-1"))
    return Context(now=NOW, checkpoint_at=NOW, network=network, hosts=hosts, timeout=timeout, **facts)


@dataclass
class Resource:
    """What a server gives for one path."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"content"
    head: int | None = None
    """Another status for HEAD."""


class Web:
    """An HTTP server; change `resources`, look at `requests`."""

    def __init__(self, resources: dict[str, Resource] | None = None) -> None:
        self.resources = resources or {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        handler = type("Handler", (_Handler,), {"owner": self})
        self._start(ThreadingHTTPServer(("127.0.0.1", 0), handler))

    def _start(self, http: ThreadingHTTPServer) -> None:
        self.connections = 0
        self._http = http
        take = http.get_request

        def counted() -> Any:
            self.connections += 1
            return take()

        http.get_request = counted  # type: ignore[method-assign]
        http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients go away here on purpose
        http.daemon_threads = True
        self._thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        """The entry for the list of hosts."""
        return f"127.0.0.1:{self._http.server_address[1]}"

    def url(self, path: str = "/doc") -> str:
        return f"http://{self.host}{path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class Files(Web):
    """A server that only offers the files of a folder."""

    def __init__(self, folder: Path) -> None:
        handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        self._start(ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))))


class _Handler(BaseHTTPRequestHandler):
    owner: Web
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Nothing: nobody reads it."""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.owner.requests.append((self.command, self.path, dict(self.headers.items())))
        found = self.owner.resources.get(self.path, Resource(404, body=b"none"))
        status = found.head if self.command == "HEAD" and found.head is not None else found.status
        self.send_response_only(status)
        for name, value in ({"Content-Length": str(len(found.body))} | found.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found.body)
        self.close_connection = True


class Raw:
    """A server that treats each connection as told, and knows when the other side closed it."""

    def __init__(self, treat: Callable[[socket.socket, threading.Event], None]) -> None:
        self._treat = treat
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.connections = 0
        self.closed = threading.Event()
        """The client has closed a connection."""
        self._threads = [threading.Thread(target=self._serve, daemon=True)]

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def url(self, path: str = "/doc") -> str:
        return f"http://{self.host}{path}"

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                line, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            self._threads.append(threading.Thread(target=self._one, args=(line,), daemon=True))
            self._threads[-1].start()

    def _one(self, line: socket.socket) -> None:
        with line:
            line.settimeout(20)
            try:
                line.recv(65536)
                self._treat(line, self._stop)
                while line.recv(65536):
                    pass
            except TimeoutError:
                return
            except OSError:
                pass  # a reset is a closed connection too
        self.closed.set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(25)
        self._listener.close()


def hang(line: socket.socket, stop: threading.Event) -> None:
    """Say nothing."""


def drip(start: bytes, piece: bytes = b"x") -> Callable[[socket.socket, threading.Event], None]:
    """Begin an answer and go on with it for ever, a little at a time."""

    def treat(line: socket.socket, stop: threading.Event) -> None:
        line.sendall(start)
        while not stop.wait(0.02):
            line.sendall(piece)

    return treat


def flood(start: bytes, piece: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Begin an answer and go on with it for ever, as fast as it is taken."""

    def treat(line: socket.socket, stop: threading.Event) -> None:
        line.sendall(start)
        while not stop.is_set():
            line.sendall(piece)

    return treat
