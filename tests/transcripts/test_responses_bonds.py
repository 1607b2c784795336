"""Ids that ask for reasoning whose seal is destroyed: they go with it, and no others do."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from .repairing import codes, mend_items

RESPONSES, CODEX = "openai-responses", "codex"
SEALED = "gAAAA" + base64.urlsafe_b64encode(os.urandom(90)).decode()
ASKED = {"type": "message", "role": "user", "content": "go"}


def thought(own: str, sealed: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": own, "summary": [], "encrypted_content": sealed}


def call(number: int, kind: str = "function_call", **more: Any) -> dict[str, Any]:
    given = {"input": "x"} if kind == "custom_tool_call" else {"arguments": "{}"}
    return {"type": kind, "id": f"fc_{number}", "call_id": f"call_{number}", "name": "bash", **given, **more}


def result(number: int, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": f"call_{number}", "output": "fine"}


def said(number: int) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "done"}]
    return {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}


def lines(dialect: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if dialect == RESPONSES:
        return items
    head = {"type": "session_meta", "payload": {"id": "5d0f6c53-8c4e-4a1b-9a57-2b7c0f1d9e31"}}
    wrapped = [head, *({"type": "response_item", "payload": one} for one in items)]
    return [{"timestamp": "2026-01-01T00:00:00Z", **line} for line in wrapped]


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


@pytest.mark.parametrize("dialect", [RESPONSES, CODEX])
def test_what_followed_reasoning_that_goes_loses_its_id(dialect: str) -> None:
    first, second, third = call(1), call(2, "custom_tool_call"), call(3)
    turn = [
        result(1),
        result(2, "custom_tool_call_output"),
        thought("rs_2", SEALED),
        third,
        result(3),
        said(1),
    ]
    items = [ASKED, thought("rs_1", "REDACTED"), first, second, *turn]
    mended, report = mend_items(dialect, lines(dialect, items))
    assert mended == lines(dialect, [ASKED, without_id(first), without_id(second), *turn])
    assert [action.code for action in report.actions] == ["broken_seal", "bound_id", "bound_id"]
    assert codes(dialect, mended) == []


@pytest.mark.parametrize("dialect", [RESPONSES, CODEX])
def test_a_message_loses_its_id_as_well_and_whole_seals_bind_nothing(dialect: str) -> None:
    items = [ASKED, thought("rs_1", "[gone]"), said(1), ASKED, thought("rs_2", SEALED), said(2)]
    mended, _ = mend_items(dialect, lines(dialect, items))
    assert mended == lines(dialect, [ASKED, without_id(said(1)), *items[3:]])
    sound = [ASKED, thought("rs_1", SEALED), call(1), result(1), said(1)]
    assert codes(dialect, lines(dialect, sound)) == []


@pytest.mark.parametrize("dialect", [RESPONSES, CODEX])
def test_reasoning_of_a_call_that_needs_its_id_is_left(dialect: str) -> None:
    """A search that the provider ran cannot be sent without its id, nor with it and without the reasoning."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    items = lines(dialect, [ASKED, thought("rs_1", "REDACTED"), search, said(1)])
    mended, report = mend_items(dialect, items)
    assert [(one.code, one.action) for one in report.left] == [("broken_seal", "left")]
    assert mended == items
    assert "cannot be sent without it" in report.left[0].detail


def test_in_a_kept_history_only_those_ids_go() -> None:
    history = [thought("rs_1", "REDACTED"), call(1), result(1), thought("rs_2", SEALED), call(2), result(2)]
    head, *_ = lines(CODEX, [])
    kept = {**head, "type": "compacted", "payload": {"message": "", "replacement_history": history}}
    mended, _ = mend_items(CODEX, [head, kept])
    expected = [without_id(call(1)), *history[2:]]
    assert mended[1]["payload"]["replacement_history"] == expected
