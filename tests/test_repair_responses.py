"""How single ways to be invalid are mended in conversations with OpenAI: what comes out, word for word."""

from __future__ import annotations

from transcripts.repairing import codes, mend_items
from transcripts.samples_codex import Rollout
from transcripts.samples_invalid_openai import (
    CHAT,
    CODEX,
    DOT,
    ONE,
    OTHER,
    RESPONSES,
    RESULT,
    both,
    changed,
    chat,
    chat_call,
    chat_pictures,
    responses,
    twice,
    with_item,
)

from archiver.transcripts.openai_limits import MOST_BYTES, MOST_PICTURES


def test_two_calls_with_one_id_keep_their_results() -> None:
    items = both(with_item(6, OTHER), with_item(7, RESULT | {"output": "/w"}))(responses())
    mended, report = mend_items(RESPONSES, items)
    assert mended[:6] == items[:6]
    assert mended[8:] == items[8:]
    assert [item["call_id"] for item in mended[5:8]] == [ONE, f"{ONE}_2", f"{ONE}_2"]
    assert mended[6] == OTHER | {"call_id": f"{ONE}_2"}
    assert [action.action for action in report.actions] == ["renamed"]
    doubled = chat()
    doubled[2]["tool_calls"][1]["id"] = doubled[4]["tool_call_id"] = "a"
    mended, _ = mend_items(CHAT, doubled)
    assert [call["id"] for call in mended[2]["tool_calls"]] == ["a", "a_2"]
    assert [item["tool_call_id"] for item in mended[3:5]] == ["a", "a_2"]
    assert [item["content"] for item in mended[3:5]] == ["x.py", "/w"]


def test_what_was_written_twice_is_there_once() -> None:
    for place in (2, 3, 4, 7, 8):
        assert mend_items(RESPONSES, twice(place)(responses()))[0] == responses()
    whole = responses()
    assert mend_items(RESPONSES, [*whole[:9], *whole[2:]])[0] == whole
    assert mend_items(CHAT, twice(2)(chat()))[0] == chat()
    two = changed(2, tool_calls=[chat_call(own, own) for own in "aab"])(chat())
    mended, _ = mend_items(CHAT, two)
    assert [call["id"] for call in mended[2]["tool_calls"]] == ["a", "b"]


def test_nothing_is_answered_whose_result_is_of_unknown_owner() -> None:
    mended, report = mend_items(RESPONSES, with_item(4, OTHER)(responses()))
    assert mended == with_item(4, OTHER)(responses())
    assert "nothing says" in report.left[0].detail


def test_a_result_of_another_kind_is_kept_and_none_is_invented() -> None:
    shell = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    wrong = {"type": "function_call_output", "call_id": "c", "output": "x.py"}
    mended, _ = mend_items(RESPONSES, [shell, wrong])
    assert mended[1]["type"] == "shell_call_output"
    assert mended[1]["output"][0]["stdout"] == "x.py"
    seen = [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": DOT}]
    patch = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "x"}
    mended, _ = mend_items(RESPONSES, [patch, wrong | {"output": seen, "id": "fco_1"}])
    assert mended[1] == {"type": "custom_tool_call_output", "call_id": "c", "output": seen, "id": "fco_1"}
    click = {"type": "computer_call", "call_id": "c", "action": {"type": "click"}}
    mended, report = mend_items(RESPONSES, [click, wrong])
    assert mended == [click]
    assert [left.code for left in report.left] == ["unanswerable_call"]


def test_too_large_payloads_become_texts_the_oldest_first() -> None:
    mended, report = mend_items(CHAT, chat_pictures(chat()))
    parts = mended[6]["content"]
    assert [part["type"] for part in parts] == ["text"] * 3 + ["image_url"] * MOST_PICTURES
    assert "image/png of 8 bytes" in parts[1]["text"]
    assert [action.action for action in report.actions] == ["replaced"] * 2
    large = f"data:image/png;base64,{'A' * (MOST_BYTES // 2)}"
    items = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": large}}]}] * 3
    mended, _ = mend_items(CHAT, [*items, chat()[7]])
    assert [item["content"][0]["type"] for item in mended[:3]] == ["text", "text", "image_url"]
    # What is in another conversation of the file, or ahead of a compaction, is not sent with it.
    assert codes(CHAT, [[{"messages": []}], *items[:1], [{"messages": []}], *items[:1]]) == []
    seen = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": large}]}
    write = Rollout(3)
    lines = [write.meta(), write.item(seen), *write.compacted([]), write.item(seen)]
    assert codes(CODEX, lines) == []
