"""Files that cannot be looked into: none of them is called valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archiver.mending import check, mend

CHAT = [
    {"role": "user", "content": "gr\u00fc\u00dfe"},
    {"role": "assistant", "content": "yes", "refusal": None},
    {"role": "tool", "tool_call_id": "call_1", "content": "x"},
]
RESPONSES = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "gr\u00fc\u00dfe"},
]
BODIES: dict[str, Any] = {
    "chat": {"model": "gpt-5", "messages": CHAT},
    "chat list": CHAT,
    "chat with tools first": {"tools": [{"type": "function", "function": {"name": "ls"}}], "messages": CHAT},
    "responses": {"model": "gpt-5", "input": RESPONSES},
    "responses list": RESPONSES,
}


def written(name: str, indent: int | None) -> bytes:
    return json.dumps(BODIES[name], ensure_ascii=False, indent=indent).encode()


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", BODIES)
def test_a_damaged_document_is_invalid_and_left(name: str, indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    text = written(name, indent)
    for damaged in (text[:-20], text.replace("\u00fc".encode(), b"\xfc"), text.replace(b":", b"", 1)):
        path.write_bytes(damaged)
        checked = check(path)
        assert checked.valid is False, damaged
        assert {(one.code, one.reason is None) for one in checked.findings} == {("broken_line", False)}
        assert mend(path).written == ()
        assert mend(path).valid is False


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_a_file_with_a_mark_ahead_of_it_was_not_looked_into(mark: bytes, tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    path.write_bytes(mark + written("chat", None))
    (found,) = check(path).findings
    assert (found.code, found.line, found.column) == ("broken_line", 1, 1)
    assert "nothing behind it was looked at" in (found.reason or "")
    assert check(path).valid is False


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"# notes\n",
        b"[1, 2",
        b'{"agents": [{"role": "user", "x": "\\q"}]}',
        b"{'role': 'user'}",
        b'{"a": 1}',
    ],
)
def test_what_is_of_no_known_format_is_neither_valid_nor_invalid(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(text)
    assert check(path).findings == ()
    assert check(path).valid is None
    assert mend(path).valid is None
    assert list(tmp_path.iterdir()) == [path]
