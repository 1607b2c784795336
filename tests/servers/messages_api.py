"""A model on loopback with just enough of the Messages API: it remembers requests and says one thing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "I have read what was restored and go on."


@dataclass
class Model:
    """The server's address, and the bodies of all requests for a message, in order."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def messages_api() -> Iterator[Model]:
    model = Model("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if self.path.split("?")[0] == "/v1/messages":
                model.requests.append(body)
                events = body.get("stream")
                self._send(
                    *(("text/event-stream", _events(body)) if events else ("application/json", _whole(body)))
                )
            elif self.path.split("?")[0] == "/v1/messages/count_tokens":
                self._send("application/json", b'{"input_tokens": 1}')
            else:
                self._send("application/json", b"{}")

        def do_GET(self) -> None:
            self._send("application/json", b"{}")

        def do_HEAD(self) -> None:
            self._send("application/json", b"")

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Requests are remembered, not printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _message(body: dict[str, Any], content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "msg_from_loopback",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "a-model"),
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _whole(body: dict[str, Any]) -> bytes:
    message = _message(body, [{"type": "text", "text": ANSWER}])
    return json.dumps({**message, "stop_reason": "end_turn"}).encode()


def _events(body: dict[str, Any]) -> bytes:
    events = [
        {"type": "message_start", "message": _message(body, [])},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
