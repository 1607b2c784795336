"""One connection that speaks HTTP/1.1, as the proxy sees it: heads are read, bodies pass as they are."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the fields (names in lower case) of a request or an answer."""

    raw: bytes
    words: list[str]
    fields: dict[str, str]

    @property
    def expects(self) -> bool:
        """Whether the sender waits for a word before it sends the body."""
        return "expect" in self.fields

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.fields.get("transfer-encoding", "").lower()

    @property
    def size(self) -> int | None:
        """Bytes of the body, where the head says it."""
        return int(self.fields["content-length"]) if "content-length" in self.fields else None


class Pipe:
    """A connection to one side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._due = 0.0

    @classmethod
    async def to(cls, port: int) -> Pipe:
        """Connect to a port of this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def head(self) -> Head | None:
        """The next head; None when the other side has closed."""
        try:
            raw = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = raw.decode("latin-1").rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return Head(raw, first.split(" "), {name.lower(): value.strip() for name, _, value in pairs})

    async def request_body(self, head: Head) -> AsyncIterator[bytes]:
        """The body of a request, as it is on the wire."""
        async for piece in self._chunks() if head.chunked else self._exactly(head.size or 0):
            yield piece

    async def answer_body(self, head: Head, method: str) -> AsyncIterator[bytes]:
        """The body of the answer to `method`, as it is on the wire."""
        if method == "HEAD" or head.words[1] in ("204", "304"):
            return
        if head.chunked:
            body = self._chunks()
        else:
            body = self._to_the_end() if head.size is None else self._exactly(head.size)
        async for piece in body:
            yield piece

    async def send(self, data: bytes, rate: int | None = None) -> None:
        """Send it all, at `rate` bytes a second if given."""
        step = PIECE if rate is None else max(1, rate // 20)
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            self._writer.write(piece)
            await self._writer.drain()
            if rate is not None:
                await self._wait(len(piece) / rate)

    def reset(self) -> None:
        """Break the connection off, so that the other side sees a reset."""
        found = self._writer.get_extra_info("socket")
        if found is not None and found.fileno() != -1:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    async def _wait(self, seconds: float) -> None:
        """After each piece; a pause that came out too long makes the next ones shorter."""
        now = time.monotonic()
        self._due = (self._due if self._due > now - 1 else now) + seconds
        await asyncio.sleep(max(0.0, self._due - now))

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            piece = await self._reader.read(min(size, PIECE))
            if not piece:
                raise EOFError
            size -= len(piece)
            yield piece

    async def _to_the_end(self) -> AsyncIterator[bytes]:
        while piece := await self._reader.read(PIECE):
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Chunks with their sizes and the trailer, to the empty line that ends them."""
        while True:
            line = await self._reader.readuntil(b"\r\n")
            yield line
            size = int(line.split(b";")[0], 16)
            if size == 0:
                break
            async for piece in self._exactly(size + 2):
                yield piece
        while line != b"\r\n":
            line = await self._reader.readuntil(b"\r\n")
            yield line
