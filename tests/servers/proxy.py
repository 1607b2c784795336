"""A proxy between a client and an HTTP server that does, on demand, what networks and busy servers do.

    with FaultProxy(server.port) as proxy:
        proxy.script(Fault("refuse", method="PUT", times=2), Fault("reset response", at={7}, after=1000))
        ... talk to proxy.endpoint; then look at proxy.requests

Each request takes the first fault that fits it and has not been used up.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import unquote

from servers.pipe import Head, Pipe

Kind = Literal[
    "pass",  # nothing, unless `slow` or `wait` are given: a link with latency, or a slow one
    "refuse",  # answer with `status` and `code`; the server never hears of it
    "reset before",  # the connection is reset before the server has heard of it
    "reset request",  # `after` bytes of the body go to the server, then both connections are reset
    "reset response",  # `after` bytes of the answer's body go to the client, then it is reset
    "drop",  # the server does it, and the client's connection is reset instead of an answer
    "hang",  # the server never hears of it, the client never gets an answer
    "hang response",  # `after` bytes of the answer's body go to the client, then nothing more
    "duplicate",  # the server gets it twice; the client gets the second answer
]


@dataclass(slots=True)
class Request:
    """A request that came in, in the order of coming (from 1 since the last `script`)."""

    number: int
    method: str
    path: str
    """With the query, percent-decoded."""
    headers: dict[str, str]
    """Names in lower case."""
    status: int | None = None
    """What the server (or the fault) answered, whether or not the client got it."""
    fault: Kind | None = None


@dataclass(slots=True)
class Fault:
    """What to do, `times` times, to requests that fit `at`, `method` and `path` (a pattern to be found)."""

    kind: Kind
    at: Set[int] | None = None
    method: str | None = None
    path: str | None = None
    skip: int = 0
    """So many requests that fit are let through before."""
    times: int | None = 1
    """None: for ever."""
    after: int = 0
    status: int = 503
    code: str = "SlowDown"
    body: bytes = b""
    """Of the answer, else that of S3 with the code."""
    wait: float = 0.0
    """Seconds before anything is done."""
    slow: int | None = None
    """Bytes a second, in both directions."""
    do: Callable[[Request], None] | None = None
    """Called at the moment of the fault, such as to kill the client."""

    def takes(self, request: Request) -> bool:
        """Whether it is to be done to this request; if so, one of its times is used up."""
        if not self._fits(request):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    def _fits(self, request: Request) -> bool:
        return (
            self.times != 0
            and (self.at is None or request.number in self.at)
            and self.method in (None, request.method)
            and (self.path is None or re.search(self.path, request.path) is not None)
        )


class FaultProxy:
    """Listens at `endpoint` in a thread of its own, from `with` to its end."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.requests: list[Request] = []
        self.port = 0
        self._faults: list[Fault] = []
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        """The URL to talk to."""
        return f"http://127.0.0.1:{self.port}"

    def script(self, *faults: Fault) -> None:
        """From now on these faults and no others; requests are counted from 1 again."""

        async def change() -> None:
            self._faults, self._count, self.requests = list(faults), 0, []

        asyncio.run_coroutine_threadsafe(change(), self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        # As on a network, and not as on one machine: segments and buffers are small, so that a sender notices
        # a slow receiver and does not hand megabytes to the kernel at once.
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=1 << 14)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._connection(Pipe(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, client: Pipe) -> None:
        server: Pipe | None = None
        try:
            server = await Pipe.to(self.upstream)
            while await self._exchange(client, server):
                pass
        except (OSError, EOFError):
            pass  # One side has gone: so does the other.
        finally:
            client.close()
            if server is not None:
                server.close()

    async def _exchange(self, client: Pipe, server: Pipe) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = await client.head()
        if head is None:
            return False
        self._count += 1
        request = Request(self._count, head.words[0], unquote(head.words[1]), head.fields)
        self.requests.append(request)
        fault = next((fault for fault in self._faults if fault.takes(request)), None)
        if fault is None:
            return await _forward(client, server, head, request, Fault("pass"))
        request.fault = fault.kind
        await asyncio.sleep(fault.wait)
        return await self._at_fault(client, server, head, request, fault)

    async def _at_fault(self, client: Pipe, server: Pipe, head: Head, request: Request, fault: Fault) -> bool:
        if fault.kind in ("pass", "refuse", "reset before", "hang") and fault.do:
            fault.do(request)
        if fault.kind == "refuse":
            await _refuse(client, head, request, fault)
            return False
        if fault.kind == "reset before":
            client.reset()
            return False
        if fault.kind == "hang":
            await asyncio.Event().wait()
        if fault.kind == "duplicate":
            return await self._twice(client, server, head, request)
        return await _forward(client, server, head, request, fault)

    async def _twice(self, client: Pipe, server: Pipe, head: Head, request: Request) -> bool:
        if head.expects:
            await client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b"".join([piece async for piece in client.request_body(head)])
        whole = re.sub(rb"(?i)\r\nexpect:[^\r]*", b"", head.raw) + body
        first = await Pipe.to(self.upstream)
        try:
            await first.send(whole)
            answer = await _final(first)
            async for _ in first.answer_body(answer, request.method):
                pass
        finally:
            first.close()
        await server.send(whole)
        return await _answer(client, server, request, Fault("pass"))


async def _forward(client: Pipe, server: Pipe, head: Head, request: Request, fault: Fault) -> bool:
    """The request to the server while its answer comes back, as the server may answer before the end."""
    await server.send(head.raw)
    upload = asyncio.create_task(_upload(client, server, head, request, fault))
    try:
        goes_on = await _answer(client, server, request, fault)
        if goes_on:  # It has been read to its end, or else the server would not go on either.
            await asyncio.wait({upload}, timeout=1)
        return goes_on and upload.done() and not upload.cancelled() and upload.exception() is None
    finally:
        if not upload.done():
            upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)


async def _upload(client: Pipe, server: Pipe, head: Head, request: Request, fault: Fault) -> None:
    sent = 0
    try:
        async for piece in client.request_body(head):
            if fault.kind == "reset request" and sent + len(piece) >= fault.after:
                await server.send(piece[: fault.after - sent])
                if fault.do:
                    fault.do(request)
                server.reset()
                client.reset()
                return
            sent += len(piece)
            await server.send(piece, fault.slow)
    except (OSError, EOFError):
        server.reset()  # The server must see that the client broke off.


async def _final(server: Pipe, client: Pipe | None = None) -> Head:
    """The head of the answer; "go on sending" before it is passed on to the client."""
    while True:
        head = await server.head()
        if head is None:
            raise EOFError
        if head.words[1] != "100":
            return head
        if client is not None:
            await client.send(head.raw)


async def _answer(client: Pipe, server: Pipe, request: Request, fault: Fault) -> bool:
    head = await _final(server, client)
    request.status = int(head.words[1])
    body = server.answer_body(head, request.method)
    if fault.kind == "drop":
        async for _ in body:
            pass
        if fault.do:
            fault.do(request)
        client.reset()
        return False
    await client.send(head.raw)
    sent = 0
    async for piece in body:
        if "response" in fault.kind and sent + len(piece) > fault.after:
            await client.send(piece[: fault.after - sent], fault.slow)
            return await _cut(client, request, fault)
        sent += len(piece)
        await client.send(piece, fault.slow)
    return head.fields.get("connection", "").lower() != "close"


async def _cut(client: Pipe, request: Request, fault: Fault) -> bool:
    if fault.do:
        fault.do(request)
    if fault.kind == "hang response":
        await asyncio.Event().wait()
    client.reset()
    return False


async def _refuse(client: Pipe, head: Head, request: Request, fault: Fault) -> None:
    if not head.expects:
        async for _ in client.request_body(head):
            pass
    request.status = fault.status
    body = fault.body or f"<Error><Code>{fault.code}</Code><Message>Come again.</Message></Error>".encode()
    shown = b"" if request.method == "HEAD" else body
    await client.send(
        f"HTTP/1.1 {fault.status} {fault.code}\r\nContent-Type: application/xml\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + shown
    )
