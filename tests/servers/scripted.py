"""An HTTP server that gives the answers it is told, one after the other: those that no real server gives.

with ScriptedServer(Answer(409, code="ConditionalRequestConflict"), Answer(200)) as server:
    ... talk to server.endpoint, then look at server.requests
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from xml.sax.saxutils import escape


@dataclass(frozen=True, slots=True)
class Answer:
    """A status with its headers, and a body: the one given, or an S3 error of `code`."""

    status: int
    code: str = ""
    message: str = "no"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def content(self) -> bytes:
        if self.body is not None or not self.code:
            return self.body or b""
        return (
            f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{escape(self.code)}</Code>"
            f"<Message>{escape(self.message)}</Message></Error>"
        ).encode()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came: headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class ScriptedServer:
    """Answers in the order given, and then for ever with the last."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Asked] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        """The URL to talk to."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, *answers: Answer) -> None:
        """From now on these, and no request was made yet."""
        with self.lock:
            self.answers, self.requests = list(answers), []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    owner: ScriptedServer
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body together, so that no acknowledgement is waited for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Nothing: nobody reads it."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self._answer.headers.get("Date") or super().date_time_string(timestamp)

    def do(self) -> None:
        """Answer any method."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.owner.lock:
            self.owner.requests.append(Asked(self.command, self.path, headers, body))
            left = self.owner.answers
            self._answer = left.pop(0) if len(left) > 1 else left[0]
        content = self._answer.content()
        self.send_response(self._answer.status)
        given = {
            "Content-Length": str(len(content)),
            "Content-Type": "application/xml",
            "x-amz-request-id": "REQ-77",
        } | self._answer.headers
        for name, value in given.items():
            if name != "Date":
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and self._answer.status != 204:
            self.wfile.write(content)
        if given["Content-Length"] != str(len(content)):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do  # noqa: N815 - names of the base class
