"""A run cannot hide a credential where ids, seals and pictures stand: only what has their shape is spared."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from archiver.model import Items, Transcript, TranscriptPart
from archiver.redact import Redactor, new_key
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect

Make = Callable[[str], Any]


def kept(dialect: str, item: Any, scratch: Scratch) -> str:
    """The text of the item behind redaction."""
    line = json.dumps(item, separators=(",", ":")).encode()
    part = TranscriptPart(name="main", items=Items.of_lines([line]))
    made = Redactor.load(new_key()).transcript(Transcript(dialect=dialect, parts=(part,)), scratch).value
    return json.dumps(list(made.parts[0].items))


def token() -> str:
    return "ghp_" + secrets.token_hex(18)


def output(given: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": given}


def message(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [part], **more}


ITEMS: dict[str, Make] = {
    "file_of_a_result": lambda t: output([{"type": "input_text", "text": "x", "file_id": t}]),
    "seal_of_a_result": lambda t: output([{"type": "x", "encrypted_content": "A" * 300 + "-" + t}]),
    "container_of_a_result": lambda t: output([{"type": "x", "container_id": t}]),
    "result_as_object": lambda t: output({"a": {"b": {"encrypted_content": t}}}),
    "file_of_a_message": lambda t: message({"type": "input_file", "file_id": t}),
    "own_id": lambda t: message({"type": "input_text", "text": "x"}, id=t),
    "id_in_an_id": lambda t: message({"type": "input_text", "text": "x"}, id=f"msg_{t}"),
    "call_id": lambda t: {"type": "function_call", "name": "f", "arguments": "{}", "call_id": t},
    "unknown_kind": lambda t: {"type": "shopping_list", "id": t, "encrypted_content": t},
    "reasoning": lambda t: {"type": "reasoning", "summary": [], "encrypted_content": t},
    "parameter": lambda t: message({"type": "input_image", "image_url": f"data:a/b;name={t};base64,QUJD"}),
    "screenshot": lambda t: {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": {"type": "computer_screenshot", "file_id": t, "image_url": t},
    },
    "generated": lambda t: {"type": "image_generation_call", "id": "ig_1", "result": t},
    "turn": lambda t: message(
        {"type": "input_text", "text": "x"}, internal_chat_message_metadata_passthrough={"turn_id": t}
    ),
    "outputs": lambda t: {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "outputs": [{"type": "logs", "file_id": t}],
    },
}
LINES: dict[str, Make] = {
    "session": lambda t: {"type": "session_meta", "payload": {"id": t, "cwd": "/w"}},
    "commit": lambda t: {"type": "session_meta", "payload": {"git": {"commit_hash": t}}},
    "process": lambda t: {
        "type": "event_msg",
        "payload": {"type": "exec_command_begin", "process_id": t, "call_id": f"call_{t}"},
    },
    "unknown_line": lambda t: {"type": "weird", "payload": {"id": t}},
    "generated": lambda t: {"type": "event_msg", "payload": {"type": "image_generation_end", "result": t}},
    "block": lambda t: {
        "type": "event_msg",
        "payload": {
            "type": "mcp_tool_call_end",
            "result": {"Ok": {"content": [{"type": "text", "data": t}]}},
        },
    },
    "history": lambda t: {"type": "compacted", "payload": {"replacement_history": [{"type": "z", "id": t}]}},
}
BODIES: dict[str, Make] = {
    "previous": lambda t: {"model": "m", "previous_response_id": t, "input": []},
    "cache": lambda t: {"model": "m", "prompt_cache_key": t, "input": []},
    "tools": lambda t: {"model": "m", "tools": [{"type": "message", "id": t}], "input": []},
}
MESSAGES: dict[str, Make] = {
    "call": lambda t: {"role": "assistant", "content": None, "tool_calls": [{"id": t, "type": "function"}]},
    "fields": lambda t: {"role": "assistant", "content": "y", "provider_specific_fields": {"signature": t}},
    "part": lambda t: {"role": "user", "content": [{"type": "text", "text": "x", "signature": t}]},
    "result": lambda t: {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": [{"type": "text", "text": "ok", "signature": t}],
    },
    "file": lambda t: {"role": "user", "content": [{"type": "file", "file": {"file_data": t}}]},
    "audio": lambda t: {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": t, "format": "wav"}}],
    },
}


def enveloped(make: Make) -> Make:
    return lambda said: {"type": "response_item", "payload": make(said)}


CASES = [
    *(("openai-responses", name, make) for name, make in (ITEMS | BODIES).items()),
    *(("codex", f"item-{name}", enveloped(make)) for name, make in ITEMS.items()),
    *(("codex", name, make) for name, make in LINES.items()),
    *(("openai-chat", name, make) for name, make in MESSAGES.items()),
    ("claude-code", "session", lambda t: {"type": "user", "uuid": t, "sessionId": t}),
]


@pytest.mark.parametrize(("dialect", "name", "make"), CASES, ids=[f"{one}-{two}" for one, two, _ in CASES])
def test_no_place_hides_a_credential(dialect: str, name: str, make: Make, scratch: Scratch) -> None:
    secret = token()
    text = kept(dialect, make(secret), scratch)
    assert secret not in text
    assert "[REDACTED:" in text


def test_a_text_file_in_base64_is_no_picture() -> None:
    url = "data:text/plain;base64," + base64.b64encode(b"a text of some length").decode()
    for part in ({"type": "input_image", "image_url": url}, {"type": "input_file", "file_data": url}):
        key = next(reversed(part))
        assert not get_dialect("openai-responses").opaque(("content", 0, key), message(part))
    file = {"role": "user", "content": [{"type": "file", "file": {"file_data": url}}]}
    assert not get_dialect("openai-chat").opaque(("content", 0, "file", "file_data"), file)


def test_what_a_provider_writes_stays_byte_for_byte(scratch: Scratch) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + secrets.token_bytes(600)).decode()
    near = token()  # beside a secret, so that the line is looked at
    item = message({"type": "input_image", "image_url": f"data:image/png;base64,{png}"}, id="msg_0a1")
    item["content"].append({"type": "input_text", "text": near})
    text = kept("openai-responses", item, scratch)
    assert png in text
    assert "msg_0a1" in text
    assert near not in text
    seal = "gAAAAA" + base64.urlsafe_b64encode(secrets.token_bytes(600)).decode()
    thought = {"type": "reasoning", "id": "rs_0a1", "summary": [{"text": near}], "encrypted_content": seal}
    text = kept("openai-responses", thought, scratch)
    assert seal in text
    assert near not in text
