"""Two models on loopback that play one script: what loops need of Messages and of Chat Completions.

They remember nothing between two requests: which answer comes next follows from the conversation that
is sent, so a resumed run goes on wherever it was. They refuse what the real ones refuse of a conversation:
calls without results, results without calls, wrong roles, empty texts, nulls in place of lists, thoughts
that were changed.

    python examples/fake_models.py        # serves until Ctrl-C and says what to set
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]
SCRIPT: tuple[tuple[str, tuple[Call, ...]], ...] = (
    ("I look at the feed first.", (("read_feed", {"day": "2026-03-02"}),)),
    (
        "Two prices look wrong.",
        (("check_price", {"item": "tea"}), ("check_price", {"item": "coffee"})),
    ),
    ("Tea is wrong, coffee is right.", (("check_price", {"item": "sugar"}),)),
    (
        "The buyers have to know.",
        (("send_mail", {"to": "buyers@shop.example", "text": "Tea costs 3.20, not 320."}),),
    ),
    ("The price of tea was wrong by a factor of 100; the buyers have been told.", ()),
)


class RefusedError(Exception):
    """What the real service would answer with status 400."""


@dataclass
class Fake:
    """The address of the server, and what it was sent so far: (path, body)."""

    url: str
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def serve() -> Iterator[Fake]:
    """Both models, until the block is left."""
    fake = Fake("")
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    fake: Fake
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one piece

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.fake.requests.append((self.path, body))
        answer = {"/v1/messages": anthropic, "/v1/chat/completions": openai}.get(self.path.split("?")[0])
        try:
            status, document = (200, answer(body)) if answer else (404, _error("there is nothing here"))
        except RefusedError as refused:
            status, document = 400, _error(str(refused))
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Requests are remembered, not printed."""


def _error(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _need(holds: object, message: str) -> None:
    if not holds:
        raise RefusedError(message)


def _turn(messages: list[dict[str, Any]]) -> int:
    """The place in the script: how many answers the conversation has."""
    turn = len([message for message in messages if message["role"] == "assistant"])
    _need(turn < len(SCRIPT), "the script has ended")
    return turn


def _seal(thought: str) -> str:
    return hashlib.sha256(thought.encode()).hexdigest() * 4


def anthropic(body: dict[str, Any]) -> dict[str, Any]:
    """One answer of the Messages API; raises `RefusedError`."""
    messages = body["messages"]
    _need(messages and messages[0]["role"] == "user", "messages: first message must use the `user` role")
    _need(messages[-1]["role"] == "user", "the conversation must end with a user message")
    blocks = [_blocks(index, message) for index, message in enumerate(messages)]
    _need_pairs(blocks)
    turn = _turn(messages)
    text, calls = SCRIPT[turn]
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"Turn {turn}.", "signature": _seal(f"Turn {turn}.")},
        {"type": "text", "text": text},
    ]
    for number, (name, arguments) in enumerate(calls):
        content.append({"type": "tool_use", "id": f"toolu_{turn}_{number}", "name": name, "input": arguments})
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 400 + 100 * turn, "output_tokens": 50},
    }


def _blocks(index: int, message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of one message as blocks, each of them looked at."""
    _need(
        message["role"] in ("user", "assistant"), f"messages.{index}: Input should be 'user' or 'assistant'"
    )
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    _need(blocks, f"messages.{index}: all messages must have non-empty content")
    for block in blocks:
        if block["type"] == "text":
            _need(block["text"].strip(), f"messages.{index}: text content blocks must be non-empty")
        if block["type"] == "thinking":
            sealed = block["signature"] == _seal(block["thinking"])
            _need(sealed, f"messages.{index}: Invalid `signature` in `thinking` block")
    return blocks


def _need_pairs(blocks: list[list[dict[str, Any]]]) -> None:
    """Every call has its result in the next message, and every result its call in the one before."""
    asked: list[str] = []
    for index, content in enumerate(blocks):
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        lost, found = sorted(set(asked) - set(results)), sorted(set(results) - set(asked))
        _need(
            not lost,
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {lost}",
        )
        _need(not found, f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {found}")
        _need(len(set(results)) == len(results), f"messages.{index}: each tool_use must have a single result")
        asked = [block["id"] for block in content if block["type"] == "tool_use"]
    _need(not asked, f"messages.{len(blocks) - 1}: `tool_use` ids without `tool_result` blocks: {asked}")


def openai(body: dict[str, Any]) -> dict[str, Any]:
    """One answer of Chat Completions; raises `RefusedError`."""
    messages = body["messages"]
    _need(messages, "[] is too short - 'messages'")
    waiting: list[str] = []
    for index, message in enumerate(messages):
        waiting = _answered(index, message, waiting)
    _need(not waiting, _unanswered(waiting))
    turn = _turn(messages)
    text, calls = SCRIPT[turn]
    answer: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        answer["tool_calls"] = [
            {
                "id": f"call_{turn}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls)
        ]
    tokens = 400 + 100 * turn
    return {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "created": 1772441000,
        "model": body["model"],
        "choices": [{"index": 0, "message": answer, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 50, "total_tokens": tokens + 50},
    }


def _answered(index: int, message: dict[str, Any], waiting: list[str]) -> list[str]:
    """The calls that still wait for a result after this message."""
    role = message["role"]
    _need(role in ("system", "developer", "user", "assistant", "tool"), f"Invalid value: '{role}'")
    for name in ("tool_calls", "function_call", "audio"):
        _need(message.get(name, ...) not in (None, []), f"Invalid type for 'messages[{index}].{name}'")
    if role == "tool":
        known = message["tool_call_id"] in waiting
        _need(known, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
        return [one for one in waiting if one != message["tool_call_id"]]
    _need(not waiting, _unanswered(waiting))
    _need(message.get("content") or message.get("tool_calls"), f"messages[{index}] has no content")
    return [call["id"] for call in message.get("tool_calls", ())]


def _unanswered(calls: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(calls)}"
    )


if __name__ == "__main__":
    with serve() as running:
        print(f"export ANTHROPIC_BASE_URL={running.url} ANTHROPIC_API_KEY=fake", flush=True)
        print(f"export OPENAI_BASE_URL={running.url}/v1 OPENAI_API_KEY=fake", flush=True)
        threading.Event().wait()
