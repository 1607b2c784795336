"""Dialect "openai-chat": what messages say, what is wrong with them, what must not be touched."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Call, Facts, ToolResult, Usage

from .samples_openai_chat import accepted, chat_log, chat_messages, chat_trajectories, legacy_messages

DIALECT = get_dialect("openai-chat")
ASK = {"role": "user", "content": "go"}


def calling(*ids: str, **more: Any) -> dict[str, Any]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answer(call_id: str, content: Any = "fine", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def says(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def found(*items: Any) -> list[tuple[str, int, str | None]]:
    return [(one.code, one.item, one.call_id) for one in DIALECT.problems(iter(items))]


def test_facts_of_a_response() -> None:
    item = {
        "role": "assistant",
        "content": [{"type": "text", "text": "Reading."}, {"type": "refusal", "refusal": "Not that."}],
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"/a"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path":'}},
            {"id": "call_3", "type": "function", "function": {"name": "read", "arguments": "[1]"}},
            {"id": "call_4", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
            {"id": "srvtoolu_5", "type": "function", "function": {"name": "web_search", "arguments": "{}"}},
            {"type": "function", "function": {"name": "nobody", "arguments": "{}"}},
            "nothing",
        ],
        "refusal": "Nor that.",
    }
    facts = DIALECT.facts(item)
    assert facts == Facts(
        "assistant",
        calls=(
            Call("call_1", "read", {"path": "/a"}),
            Call("call_2", "read", '{"path":'),
            Call("call_3", "read", "[1]"),
            Call("call_4", "patch", "*** Begin"),
            Call("srvtoolu_5", "web_search", {}, answered_elsewhere=True),
        ),
        text="Reading.\nNot that.\nNor that.",
    )


def test_facts_of_other_messages() -> None:
    assert DIALECT.facts({"role": "system", "content": "Be."}) == Facts("system", text="Be.")
    assert DIALECT.facts({"role": "developer", "content": "Be."}) == Facts("system", text="Be.")
    reminder = [{"type": "text", "text": "<system-reminder>x</system-reminder> go"}]
    assert DIALECT.facts({"role": "user", "content": reminder}) == Facts("user", instruction="go")
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert DIALECT.facts(answer("call_1", parts)).results == (ToolResult("call_1", "a\nb", False),)
    assert DIALECT.facts(answer("call_1", "Error: no")).results[0].is_error
    assert DIALECT.facts({"role": "tool", "content": "x"}).results == (ToolResult("", "x", False),)
    for odd in (None, 7, "x", {}, {"role": ["user"]}, {"role": "exit", "content": "x"}):
        assert DIALECT.facts(odd) == Facts("meta")


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ({"reasoning_content": "hm"}, True),
        ({"reasoning": "hm"}, True),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}]}, True),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]}, True),
        ({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}]}, True),
        ({"reasoning_content": ""}, False),
        ({"reasoning_content": None}, False),
        ({"thinking_blocks": []}, False),
    ],
)
def test_reasoning_in_all_its_places(more: dict[str, Any], held: bool) -> None:
    item = says("x", provider_specific_fields={"reasoning_content": "hm", "refusal": None}) | more
    facts = DIALECT.facts(item)
    assert (facts.has_reasoning, facts.bound) == (held, False)
    left = DIALECT.without_reasoning(item)
    if held:
        assert left is not None
        assert "hm" not in str(left)
        assert "c2ln" not in str(left)
        assert DIALECT.facts(left).text == "x"
    else:
        assert left is item
    assert DIALECT.facts(calling("a") | more).bound is held


def test_a_message_of_nothing_but_reasoning_can_go_whole() -> None:
    assert DIALECT.without_reasoning(says(None, reasoning_content="hm")) is None
    assert DIALECT.without_reasoning(says([{"type": "thinking", "thinking": "hm"}])) is None


def test_copies_of_a_proxy_are_folded() -> None:
    item = says("x", reasoning_content="hm")
    copy = item | {"provider_specific_fields": {"reasoning_content": "hm", "refusal": None}}
    assert DIALECT.fold(copy) == item
    for more in ({"citations": [1]}, {}, {"reasoning_content": "other"}):
        kept = item | {"provider_specific_fields": more}
        assert DIALECT.fold(kept) is kept
    assert DIALECT.fold(item) is item


def test_valid_conversations_have_no_problems() -> None:
    assert found(*chat_messages(3)) == []
    assert found(*legacy_messages()) == []
    assert found(says("I begin."), ASK, says("x")) == []
    assert found(ASK, calling("a", "b"), answer("b"), answer("a"), {"role": "system", "content": "x"}) == []
    for content in (None, "", [], " "):
        assert found(ASK, calling("a", content=content), answer("a", "")) == []
    assert found(ASK, says(None, refusal="no"), says(None, audio={"id": "audio_1"})) == []
    assert found(ASK, calling("srvtoolu_1"), says("found it")) == []
    assert found(ASK, calling("srvtoolu_1"), answer("srvtoolu_1"), says("found it")) == []


def test_an_id_may_be_used_again() -> None:
    assert found(ASK, calling("a"), answer("a"), calling("a"), answer("a")) == []
    assert found(ASK, calling("a"), answer("a"), calling("a")) == [("unanswered_call", 3, "a")]
    late = found(ASK, calling("a"), ASK, calling("a"), answer("a"), ASK, answer("a"))
    assert late == [("misplaced_result", 6, "a")]
    assert found(ASK, calling("a"), ASK, calling("a"), ASK, answer("a")) == [
        ("unanswered_call", 1, "a"),
        ("misplaced_result", 5, "a"),
    ]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([calling("a", "b"), answer("a")], [("unanswered_call", 0, "b")]),
        ([calling("a"), says("x"), answer("a")], [("misplaced_result", 2, "a")]),
        ([calling("a", "b"), answer("a"), ASK, answer("b")], [("misplaced_result", 3, "b")]),
        ([calling("a"), {"role": "developer", "content": "x"}, answer("a")], [("misplaced_result", 2, "a")]),
        ([calling("a"), answer("a"), answer("a", "again")], [("duplicate_result", 2, "a")]),
        ([calling("a"), answer("a"), ASK, answer("a")], [("duplicate_result", 3, "a")]),
        ([calling("a"), answer("b"), answer("a")], [("orphan_result", 1, "b")]),
        ([answer("a"), ASK], [("orphan_result", 0, "a")]),
        ([answer("a"), calling("a"), ASK], [("misplaced_result", 0, "a")]),
        ([answer("a"), calling("a"), answer("a")], [("duplicate_result", 0, "a")]),
        ([answer("a"), ASK, calling("a"), ASK], [("orphan_result", 0, "a"), ("unanswered_call", 2, "a")]),
        ([{"role": "tool", "content": "x"}], [("orphan_result", 0, "")]),
        ([calling("a", "a"), answer("a")], [("duplicate_call", 0, "a")]),
        ([calling("a", "a"), answer("a"), answer("a")], [("duplicate_call", 0, "a")]),
        ([calling("a", "a"), ASK], [("unanswered_call", 0, "a"), ("duplicate_call", 0, "a")]),
        ([calling("a"), {"role": "session_meta"}, answer("a")], [("bad_role", 1, None)]),
        ([{"role": "exit", "content": "done"}], [("bad_role", 0, None)]),
        ([{"content": "done"}, ASK], [("bad_role", 0, None)]),
        ([None, ASK], [("bad_role", 0, None)]),
        ([says("")], [("empty_text", 0, None)]),
        ([says(" \n")], [("empty_text", 0, None)]),
        ([says([])], [("empty_text", 0, None)]),
        ([{"role": "assistant"}], [("empty_text", 0, None)]),
        ([{"role": "user", "content": None}], [("empty_text", 0, None)]),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], [("empty_text", 0, None)]),
        ([says("x", tool_calls=[])], [("empty_text", 0, None)]),
        ([calling("a"), answer("a", None)], [("empty_text", 1, None)]),
        ([calling("a", content="\ud83d"), answer("a")], [("bad_text", 0, None)]),
        ([calling("a", reasoning_content="\ud83d"), answer("a")], [("bad_text", 0, None)]),
        ([says("x", tool_calls=[{"function": {"name": "f"}}])], [("unanswerable_call", 0, "")]),
        ([legacy_messages()[2], ASK], [("unanswered_call", 0, "function_call:get_weather")]),
        ([legacy_messages()[3], ASK], [("orphan_result", 0, "function_call:get_weather")]),
    ],
)
def test_problems(items: list[Any], expected: list[Any]) -> None:
    assert found(*items) == expected


def test_a_tool_name_that_the_provider_refuses() -> None:
    item = calling("a")
    item["tool_calls"][0]["function"]["name"] = "no name"
    assert found(item, answer("a")) == [("bad_name", 0, "a")]


def stream(runs: list[dict[str, Any]]) -> list[Any]:
    items: list[Any] = []
    for run in runs:
        items += [[run | {"traj": []}], *run["traj"]]
    return items


def test_conversations_of_one_file_are_judged_each() -> None:
    items = stream(chat_trajectories(3))
    ids = [call.id for item in items for call in DIALECT.facts(item).calls]
    assert len(ids) == 3 * len(set(ids))
    assert found(*items) == []
    first = next(place for place, item in enumerate(items) if DIALECT.facts(item).results)
    moved = [*items[:first], *items[first + 1 :], items[first]]
    call = items[first]["tool_call_id"]
    codes = {(code, one) for code, _, one in found(*moved)}
    assert codes == {("unanswered_call", call), ("duplicate_result", call)}


def test_a_log_states_what_its_response_took() -> None:
    log = chat_log(1)
    facts = DIALECT.facts([log | {"messages": []}])
    assert (facts.role, facts.starts, facts.model) == ("meta", True, log["response"]["model"])
    assert facts.usage == Usage(400, 50, 600, 0.25)
    assert facts.at == datetime(2026, 1, 31, 14, tzinfo=UTC)
    assert DIALECT.facts([{"session_id": "s-1", "timestamp": 1e300}]) == Facts(
        "meta", session="s-1", starts=True
    )
    assert DIALECT.facts([{"session_id": "not an id", "model": 7}]) == Facts("meta", starts=True)
    assert DIALECT.facts([1, 2]) == Facts("meta", starts=True)


SEAL = base64.b64encode(bytes(range(100, 200))).decode()
SEALED_FIELDS = {"provider_specific_fields": {"signature": SEAL}}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7" + bytes(16)).decode()
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"id":"x"}'}}


@pytest.mark.parametrize(
    ("path", "item", "expected"),
    [
        (("tool_calls", 0, "id"), says(None, tool_calls=[CALL]), True),
        (("tool_calls", 0, "id"), says(None, tool_calls=[{"id": "with blank"}]), False),
        (("tool_calls", 0, "id"), says(None, tool_calls=[{"id": "call__thought__" + "a+/=" * 500}]), True),
        (("tool_calls", 0, "function", "name"), says(None, tool_calls=[CALL]), False),
        (("tool_calls", 0, "function", "arguments"), says(None, tool_calls=[CALL]), False),
        (("tool_calls", 0, "function", "arguments", "id"), says(None, tool_calls=[CALL]), False),
        (
            ("tool_calls", 0, "extra_content", "google", "thought_signature"),
            says(None, tool_calls=[{"extra_content": {"google": {"thought_signature": SEAL}}}]),
            True,
        ),
        (
            ("tool_calls", 0, "function", "provider_specific_fields", "thought_signature"),
            says(None, tool_calls=[{"function": {"provider_specific_fields": {"thought_signature": SEAL}}}]),
            True,
        ),
        (("tool_call_id",), answer("call_1"), True),
        (("content", 0, "signature"), says([{"type": "thinking", "signature": SEAL}]), True),
        (("content", 0, "signature"), says([{"type": "text", "signature": SEAL}]), False),
        (("content", 0, "signature"), answer("call_1", [{"type": "thinking", "signature": SEAL}]), False),
        (("provider_specific_fields", "signature"), answer("call_1") | SEALED_FIELDS, False),
        (("content", 0, "image_url", "url"), says([picture("data:image/png;base64,aGk=")]), False),
        (("content",), answer("call_1", "c2ln"), False),
        (("content", 0, "text"), answer("call_1", [{"type": "text", "text": "c2ln"}]), False),
        (("thinking_blocks", 0, "signature"), says("x", thinking_blocks=[{"signature": SEAL}]), True),
        (("thinking_blocks", 0, "thinking"), says("x", thinking_blocks=[{"thinking": "c2ln"}]), False),
        (("thinking_blocks", 0, "data"), says("x", thinking_blocks=[{"data": SEAL}]), True),
        (("reasoning_details", 0, "data"), says("x", reasoning_details=[{"data": SEAL}]), True),
        (("reasoning_details", 0, "text"), says("x", reasoning_details=[{"text": "c2ln"}]), False),
        (
            ("codex_reasoning_items", 0, "encrypted_content"),
            says("x", codex_reasoning_items=[{"encrypted_content": SEAL}]),
            True,
        ),
        (("reasoning_content",), says("x", reasoning_content="c2ln"), False),
        (("provider_specific_fields", "data"), says("x", provider_specific_fields={"data": SEAL}), False),
        (("content", 0, "image_url", "url"), says([picture(f"data:image/png;base64,{PNG}")]), True),
        (("content", 0, "image_url"), says([{"image_url": f"data:image/png;base64,{PNG}"}]), True),
        (("content", 0, "image_url", "url"), says([picture("https://x/?token=y")]), False),
        (("content", 0, "image_url", "url"), says([picture("data:text/plain;base64,no!")]), False),
        (("content", 0, "input_audio", "data"), says([{"input_audio": {"data": PNG}}]), True),
        (("content", 0, "file", "file_data"), says([{"file": {"file_data": PDF}}]), True),
        (("content", 0, "file", "file_data"), says([{"file": {"file_data": "no base64!"}}]), False),
        (("content", 0, "file", "file_id"), says([{"file": {"file_id": "file-1"}}]), True),
        (("content", 0, "file", "filename"), says([{"file": {"filename": "aGk="}}]), False),
        (("audio", "data"), says(None, audio={"data": PNG}), True),
        (("audio", "id"), says(None, audio={"id": "audio_1"}), True),
        (("audio", "transcript"), says(None, audio={"transcript": "aGk="}), False),
        (("images", 0, "image_url", "url"), says("x", images=[picture("data:;base64," + PNG)]), False),
    ],
)  # fmt: skip
def test_opaque_by_key_container_and_shape(path: Any, item: Any, expected: bool) -> None:
    assert DIALECT.opaque(path, item) is expected
    choice = {"choices": [{"message": item}]}
    assert DIALECT.opaque(("response", "choices", 0, "message", *path), {"response": choice}) is expected
    assert DIALECT.opaque((0, "choices", 0, "message", *path), [choice]) is expected
    assert not DIALECT.opaque(("request", *path), {"request": item})


def test_without_the_item_only_places_with_one_meaning_are_opaque() -> None:
    assert DIALECT.opaque(("tool_call_id",))
    assert DIALECT.opaque(("tool_calls", 3, "id"))
    assert DIALECT.opaque(("thinking_blocks", 0, "signature"))
    assert not DIALECT.opaque(("content", 0, "image_url", "url"))
    assert not DIALECT.opaque(("content",))
    assert not DIALECT.opaque(())
    assert not DIALECT.opaque((0,))


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}, "image/png"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;charset=x;base64,aGk="}}, "image/png"),
        ({"type": "image_url", "image_url": "DATA:;base64,aGk="}, "application/octet-stream"),
        ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,aGk="}}, "video/mp4"),
        ({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}, "audio/wav"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}}, "application/pdf"),
        ({"type": "file", "file": {"file_data": "aGk="}}, "application/octet-stream"),
    ],
)
def test_payloads_are_found_and_replaced(part: Any, media: str) -> None:
    for item in ({"role": "user", "content": [part]}, answer("a", [part]), says("x", images=[part])):
        (blob,) = DIALECT.blobs(item)
        assert (blob.media_type, blob.data) == (media, "aGk=")
        replaced = DIALECT.replace_blob(item, blob.path, "[note]")
        assert list(DIALECT.blobs(replaced)) == []
        assert {"type": "text", "text": "[note]"} in (replaced.get("images") or replaced["content"])


def test_spoken_words_give_way_to_a_note() -> None:
    item = says(None, audio={"id": "audio_1", "data": "aGk=", "transcript": "hi"})
    (blob,) = DIALECT.blobs(item)
    replaced = DIALECT.replace_blob(item, blob.path, "[note]")
    assert replaced["audio"] == {"id": "audio_1", "data": "[note]", "transcript": "hi"}
    assert list(DIALECT.blobs(replaced)) == []


@pytest.mark.parametrize("url", ["https://x/y.png", "data:image/svg+xml,<svg/>", "", 7, None])
def test_what_is_elsewhere_or_no_payload_is_no_blob(url: Any) -> None:
    assert list(DIALECT.blobs({"role": "user", "content": [{"image_url": {"url": url}}]})) == []


def test_a_moved_result_comes_back_as_the_message_it_was() -> None:
    item = answer("a", [{"type": "text", "text": "x"}], name="bash", cache_control={"type": "ephemeral"})
    held = DIALECT.result_content(item, "a")
    assert DIALECT.error_results([Call("a", "bash", {})], ASK, held, is_error=False) == item
    assert DIALECT.result_content(item, "b") == ""


def test_legacy_calls_are_answered_in_their_way() -> None:
    call = DIALECT.facts(legacy_messages()[2]).calls[0]
    made = DIALECT.error_results([call], ASK, "[lost]")
    assert made == {"role": "function", "name": "get_weather", "content": "Error: [lost]"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (says(None), None),
        (says([{"type": "text", "text": ""}]), None),
        ({"role": "session_meta"}, None),
        (calling("a", content=[{"type": "text", "text": " "}]), calling("a", content=None)),
        (answer("a", None), answer("a", "")),
        (answer("a", []), answer("a", "")),
        (says("x", tool_calls=[]), says("x")),
        (says("\ud83d"), says("\ufffd")),
    ],
)
def test_sound_texts(item: Any, expected: Any) -> None:
    assert DIALECT.with_sound_text(item) == expected
    if expected is not None:
        assert found(*([] if expected["role"] != "tool" else [calling("a")]), expected)[:1] in (
            [],
            [("unanswered_call", 0, "a")],
        )


@given(
    st.lists(st.sampled_from((ASK, says("x"), *map(calling, "ab"), *map(answer, "ab"), calling("a", "b"))))
)
@settings(max_examples=200, deadline=None)
def test_a_list_without_problems_is_what_the_api_takes(items: list[Any]) -> None:
    assert bool(found(*items)) != accepted(items)
