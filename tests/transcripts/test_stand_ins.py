"""A run was repaired, went on, and then the real result came: the real one is kept, whatever stands first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.mending import check, mend
from archiver.repair import INTERRUPTED
from archiver.transcripts import get_dialect

from .repairing import codes, mend_items

REAL = "three tests failed"
Make = Callable[..., list[dict[str, Any]]]


def claude(*what: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number, one in enumerate(what):
        own, parent = f"u{number}", f"u{number - 1}" if number else None
        line = {"uuid": own, "parentUuid": parent, "sessionId": "s", "isSidechain": False}
        kind, content = anthropic_of(one)
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message["id"] = f"msg_{number}"
        made.append({**line, "type": kind, "message": message})
    return made


def anthropic(*what: str) -> list[dict[str, Any]]:
    return [dict(zip(("role", "content"), anthropic_of(one), strict=True)) for one in what]


def anthropic_of(what: str) -> tuple[str, list[dict[str, Any]]]:
    blocks: list[dict[str, Any]] = []
    for word in what.split("+"):
        if word == "call":
            blocks.append({"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "make"}})
        elif word in ("synthetic", "real"):
            text = INTERRUPTED if word == "synthetic" else REAL
            error = word == "synthetic"
            blocks.append(
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": text, "is_error": error}
            )
        else:
            blocks.append({"type": "text", "text": word})
    return ("assistant" if "call" in what or what == "said" else "user"), blocks


def chat(*what: str) -> list[dict[str, Any]]:
    function = {"name": "bash", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    words = {
        "call": {"role": "assistant", "content": None, "tool_calls": [call]},
        "synthetic": {"role": "tool", "tool_call_id": "call_1", "content": INTERRUPTED},
        "real": {"role": "tool", "tool_call_id": "call_1", "content": REAL},
        "said": {"role": "assistant", "content": "said"},
    }
    return [dict(words.get(one, {"role": "user", "content": one})) for one in what]


def responses(*what: str) -> list[dict[str, Any]]:
    kind = "function_call_output"
    words = {
        "call": {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": "{}"},
        "synthetic": {"type": kind, "call_id": "call_1", "output": f"Error: {INTERRUPTED}"},
        "real": {"type": kind, "call_id": "call_1", "output": REAL},
        "said": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "said"}],
        },
    }
    asked = {"type": "message", "role": "user"}
    return [dict(words.get(one, {**asked, "content": one})) for one in what]


def codex(*what: str) -> list[dict[str, Any]]:
    head = {"type": "session_meta", "payload": {"id": "5d0f6c53-8c4e-4a1b-9a57-2b7c0f1d9e31"}}
    lines = [head, *({"type": "response_item", "payload": one} for one in responses(*what))]
    return [{"timestamp": "2026-01-01T00:00:00Z", **line} for line in lines]


DIALECTS: dict[str, Make] = {
    "claude-code": claude,
    "anthropic-messages": anthropic,
    "openai-chat": chat,
    "openai-responses": responses,
    "codex": codex,
}
TOGETHER = ("claude-code", "anthropic-messages")


def results(dialect: str, items: list[Any]) -> list[str]:
    facts = get_dialect(dialect).facts
    return [result.text for item in items for result in facts(item).results]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "order",
    [
        ("go", "call", "synthetic", "real", "said"),
        ("go", "call", "synthetic", "said", "go on", "real"),
        ("go", "call", "synthetic", "synthetic", "real", "said"),
        ("go", "call", "synthetic", "go on", "real", "said"),
        ("go", "synthetic", "call", "real", "said"),
    ],
    ids=" ".join,
)
def test_the_real_result_takes_the_place_of_the_synthetic_one(dialect: str, order: tuple[str, ...]) -> None:
    items = DIALECTS[dialect](*order)
    mended, report = mend_items(dialect, items)
    assert results(dialect, mended) == [REAL]
    assert codes(dialect, mended) == []
    assert "duplicate_result" in {action.code for action in report.actions} or "orphan_result" in {
        action.code for action in report.actions
    }


@pytest.mark.parametrize("dialect", TOGETHER)
@pytest.mark.parametrize("message", ["synthetic+real", "real+synthetic", "synthetic+synthetic+real"])
def test_of_two_in_one_message_the_real_one_stays(dialect: str, message: str) -> None:
    mended, report = mend_items(dialect, DIALECTS[dialect]("go", "call", message, "said"))
    assert results(dialect, mended) == [REAL]
    assert {action.code for action in report.actions} == {"duplicate_result"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_that_nothing_came_after_is_an_answer(dialect: str) -> None:
    items = DIALECTS[dialect]("go", "call", "synthetic", "said")
    assert codes(dialect, items) == []
    assert mend_items(dialect, items)[1].actions == ()


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "openai-responses"])
def test_a_late_one_that_nothing_came_after_is_moved(dialect: str) -> None:
    order = (
        ("go", "synthetic", "call", "said")
        if dialect == "codex"
        else ("go", "call", "hm", "said", "synthetic")
    )
    items = DIALECTS[dialect](*order)
    mended, report = mend_items(dialect, items)
    assert [action.code for action in report.actions] == ["misplaced_result"]
    (text,) = results(dialect, mended)
    assert text.removeprefix("Error: ") == INTERRUPTED
    assert codes(dialect, mended) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_with_its_id_used_again_later_keeps_its_own(dialect: str) -> None:
    """The second call is another one: its result is not the first one's."""
    order = ("go", "call", "synthetic", "go on", "call", "real", "said")
    mended, _ = mend_items(dialect, DIALECTS[dialect](*order))
    assert [text.removeprefix("Error: ") for text in results(dialect, mended)] in (
        [INTERRUPTED, REAL],
        [REAL],  # the same call, written twice
    )
    assert codes(dialect, mended) == []


@pytest.mark.parametrize("dialect", ["openai-responses", "codex"])
def test_two_calls_with_one_id_keep_their_order(dialect: str) -> None:
    items = DIALECTS[dialect]("go", "call", "call", "synthetic", "real", "said")
    second = items[-4] if dialect == "openai-responses" else items[-4]["payload"]
    second["arguments"] = '{"other": 1}'
    mended, _ = mend_items(dialect, items)
    assert [text.removeprefix("Error: ") for text in results(dialect, mended)] == [INTERRUPTED, REAL]
    facts = get_dialect(dialect).facts
    assert [one.call_id for item in mended for one in facts(item).results] == ["call_1", "call_1_2"]


def test_three_rounds_name_items_of_the_first_list() -> None:
    items = chat("go", "call", "call", "real", "go on", "call", "go on", "said")
    items[5:5] = chat("call")
    items.insert(1, {"role": "info", "content": "a line of the harness's own"})
    _, report = mend_items("openai-chat", items)
    assert [(one.code, one.item) for one in report.actions] == [
        ("bad_role", 1),
        ("duplicate_call", 3),
        ("duplicate_call", 7),
        ("unanswered_call", 6),
    ]


def test_what_was_done_names_lines_of_the_original(tmp_path: Path) -> None:
    """Later rounds work on another list: their numbers, too, are those of the file."""
    items = codex("go", "synthetic", "call", "real", "call", "said", "go on", "call", "said")
    for line in items:
        if line["payload"].get("type") == "function_call" and line is not items[3]:
            line["payload"] = {**line["payload"], "call_id": "call_9", "name": "b c"}
    items[5]["payload"]["arguments"] = '{"n": 1}'
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (items[0], *items[1:])))
    found = {(one.code, one.line) for one in check(path).findings}
    told = {(one.code, one.line) for one in mend(path, dry_run=True).actions}
    assert ("unanswered_call", 9) in told
    assert found <= told
    assert {line for _, line in told} <= {3, 6, 9}


ROLES = ("exit", "info", "model", "human")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("place", range(4))
def test_a_message_of_chat_in_a_role_of_nobody_is_found_whatever_it_holds(
    role: str, place: int, tmp_path: Path
) -> None:
    """One such line must not make the whole file one of no known format."""
    items = chat("go", "call", "real", "said")
    items[0]["content"] = [{"type": "text", "text": "go"}]
    items[place]["role"] = role
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"model": "gpt-5", "messages": items}))
    checked = check(path)
    assert checked.dialect == "openai-chat"
    assert "bad_role" in {one.code for one in checked.findings}
    result = mend(path, into=tmp_path / "mended")
    assert check(tmp_path / "mended/chat.json").findings == ()
    assert result.left == ()
    mended = json.loads((tmp_path / "mended/chat.json").read_bytes())["messages"]
    assert results("openai-chat", mended) == [REAL]
    assert len(mended) == 4 or place in (0, 3)
