"""A result that stands ahead of its call is that call's: it is moved, never dropped for a synthetic one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archiver.mending import check, mend

SAMPLE = next((Path(__file__).parents[2] / "examples" / "sample-run").glob("*.jsonl"))


def call(call_id: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "run", "input": {}}]}


def result(call_id: str, text: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call_id, "content": text}]
    return {"role": "user", "content": content}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def results(text: str) -> list[tuple[str, str]]:
    return [
        (block["tool_use_id"], block["content"])
        for message in json.loads(text)
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block["type"] == "tool_result"
    ]


@pytest.mark.parametrize(
    ("messages", "codes", "kept"),
    [
        (
            [user("go"), result("t1", "REAL"), call("t1"), user("more")],
            ["misplaced_result"],
            [("t1", "REAL")],
        ),
        (
            [user("go"), result("t1", "REAL"), call("t1"), result("t1", "LATER")],
            ["orphan_result"],
            [("t1", "LATER")],
        ),
        (
            [user("go"), result("t1", "REAL"), result("t1", "TWICE"), call("t1"), user("more")],
            ["misplaced_result", "orphan_result"],
            [("t1", "REAL")],
        ),
        (
            [user("go"), result("t2", "B"), call("t1"), result("t1", "A"), call("t2"), user("more")],
            ["misplaced_result"],
            [("t1", "A"), ("t2", "B")],
        ),
        ([user("go"), result("t9", "LOST"), user("more")], ["orphan_result"], []),
    ],
)
def test_in_messages(tmp_path: Path, messages: list[Any], codes: list[str], kept: list[Any]) -> None:
    path, into = tmp_path / "m.json", tmp_path / "out"
    path.write_text(json.dumps(messages), encoding="utf-8")
    assert [problem.code for problem in check(path).findings] == codes
    mend(path, into=into)
    mended = (into / "m.json").read_text(encoding="utf-8")
    assert results(mended) == kept
    assert not check(into / "m.json").findings


def test_in_a_session_whose_lines_changed_places(tmp_path: Path) -> None:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    contents = [json.loads(line).get("message", {}).get("content") for line in lines]
    place = next(
        number
        for number, content in enumerate(contents)
        if isinstance(content, list) and content[0]["type"] == "tool_use"
    )
    held = json.loads(lines[place + 1])["message"]["content"][0]
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    path, into = tmp_path / "s.jsonl", tmp_path / "out"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    codes = [problem.code for problem in check(path).findings]
    assert codes == ["misplaced_result", "unanswered_call"]
    mend(path, into=into)
    mended = (into / "s.jsonl").read_text(encoding="utf-8")
    assert not check(into / "s.jsonl").findings
    after = [json.loads(line).get("message", {}).get("content", "") for line in mended.splitlines()]
    blocks = [block for content in after if isinstance(content, list) for block in content]
    (found,) = [one for one in blocks if one.get("tool_use_id") == held["tool_use_id"]]
    assert found["content"] == held["content"]
