"""Dialect "anthropic-messages": what messages say, what is wrong with them, what must not be touched."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Call, Usage
from transcripts.samples import anthropic_messages

DIALECT = get_dialect("anthropic-messages")


def use(call_id: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def answer(call_id: str, content: Any = "fine", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def picture(data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def searched(**found: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "content": [{"type": "web_search_result", **found}]}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content[0] if isinstance(content[0], str) else list(content)}


def found(*items: Any) -> list[tuple[str, int, str | None]]:
    return [(one.code, one.item, one.call_id) for one in DIALECT.problems(iter(items))]


def test_facts_of_a_response() -> None:
    item = {
        "role": "assistant",
        "id": "msg_01",
        "model": "claude-sample",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "c2ln"},
            {"type": "text", "text": "Reading."},
            use("toolu_1", file_path="/a"),
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        ],
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 11,
            "output_tokens": 13,
        },
    }
    facts = DIALECT.facts(item)
    assert facts.role == "assistant"
    assert facts.text == "Reading."
    assert facts.calls == (
        Call("toolu_1", "Read", {"file_path": "/a"}),
        Call("srvtoolu_1", "web_search", {"query": "x"}, answered_elsewhere=True),
    )
    assert facts.results == ()
    assert facts.has_reasoning
    assert facts.message == "msg_01"
    assert facts.usage == Usage(tokens_in=12, tokens_out=13, tokens_cached=11)
    assert facts.model == "claude-sample"


def test_facts_of_results_and_what_a_person_typed_beside_them() -> None:
    shown = [
        {"type": "text", "text": "one"},
        picture("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"),
        {"type": "text", "text": "two"},
    ]
    item = user(
        answer("t1", shown, is_error=True),
        {"type": "text", "text": "<system-reminder>be good</system-reminder>"},
        {"type": "text", "text": "Now stop. <system-reminder>x</system-reminder>"},
    )
    facts = DIALECT.facts(item)
    assert facts.role == "user"
    assert [(one.call_id, one.text, one.is_error) for one in facts.results] == [("t1", "one\ntwo", True)]
    assert facts.instruction == "Now stop."


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        "text",
        [],
        {},
        {"role": ["user"], "content": None},
        {"role": "user", "content": {"type": "text"}},
        {"role": "assistant", "content": [None, "x", {"type": ["text"]}, {"type": "tool_use", "id": 7}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": {}, "content": [3]}]},
        {"role": "assistant", "content": [], "usage": {"input_tokens": "many", "output_tokens": -3}},
    ],
)
def test_odd_shapes_never_raise(odd: Any) -> None:
    for name in ("anthropic-messages", "claude-code", "opaque"):
        dialect = get_dialect(name)
        for item in (odd, {"type": "user", "message": odd}, {"type": "assistant", "message": odd, "uuid": 3}):
            facts = dialect.facts(item)
            assert not facts.calls
            assert not any(result.call_id for result in facts.results)
            assert list(dialect.blobs(item)) == []
            assert dialect.fold(item) is item
            dialect.link(item)
            dialect.relinked(item, {})
            dialect.problems(iter([item]))


def test_a_valid_conversation_has_no_problems() -> None:
    assert found(*anthropic_messages(6, seed=1, images=True)) == []


def test_an_unanswered_call_at_the_end_and_in_the_middle() -> None:
    ask = user("go")
    assert found(ask, assistant(use("a"))) == [("unanswered_call", 1, "a")]
    assert found(ask, assistant(use("a"), use("b")), user(answer("a")), assistant("ok")) == [
        ("unanswered_call", 1, "b")
    ]


def test_a_result_must_stand_in_the_next_user_message() -> None:
    late = found(user("go"), assistant(use("a")), user("wait"), assistant("ok"), user(answer("a")))
    assert late == [("misplaced_result", 4, "a")]
    # Two user messages in a row are one message to the API.
    assert found(user("go"), assistant(use("a")), user("note"), user(answer("a"))) == []


def test_orphans_and_doubles() -> None:
    items = (user("go"), assistant(use("a")), user(answer("a"), answer("a"), answer("zzz")))
    assert found(*items) == [("duplicate_result", 2, "a"), ("orphan_result", 2, "zzz")]
    again = (*items[:2], user(answer("a")), assistant(use("a")), user(answer("a")))
    assert found(*again) == [("duplicate_call", 3, "a")]


def test_server_tools_answer_themselves() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    assert found(user("go"), assistant(call)) == []


def test_texts_the_api_refuses() -> None:
    assert [one[0] for one in found(user(""))] == ["empty_text"]
    assert [one[0] for one in found(user({"type": "text", "text": " \n"}))] == ["empty_text"]
    assert [one[0] for one in found(user("go"), assistant(use("a", "bad name")), user(answer("a")))] == [
        "bad_name"
    ]
    assert [one[0] for one in found(user("lone \ud83d surrogate"))] == ["bad_text"]
    empty_thinking = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    assert found(user("go"), assistant(empty_thinking, {"type": "text", "text": "ok"})) == []


def test_order_and_roles() -> None:
    assert found(assistant("hello"), user("hi")) == [("bad_order", 0, None)]
    assert found(user("hi"), {"role": "exit", "content": "x"}) == [("bad_role", 1, None)]


def test_a_compaction_block_is_a_boundary() -> None:
    summary = {"type": "compaction", "content": "what went before"}
    items = (user("go"), assistant(use("a")), assistant(summary, {"type": "text", "text": "ok"}), user("on"))
    assert DIALECT.facts(items[2]).boundary
    assert found(*items) == []
    assert found(*items[2:]) == []


SEAL = base64.b64encode(bytes(range(100, 200))).decode()


@pytest.mark.parametrize(
    ("path", "block", "expected"),
    [
        (("signature",), {"type": "thinking", "thinking": "x", "signature": SEAL}, True),
        (("thinking",), {"type": "thinking", "thinking": "x", "signature": SEAL}, False),
        (("signature",), {"type": "text", "text": "x", "signature": SEAL}, False),
        (("signature",), {"type": "thinking", "thinking": "x", "signature": "with blanks inside"}, False),
        (("data",), {"type": "redacted_thinking", "data": SEAL}, True),
        (("data",), {"type": "text", "data": SEAL}, False),
        (("id",), use("toolu_1"), True),
        (("id",), {"type": "text", "id": "toolu_1"}, False),
        (("input", "id"), use("toolu_1", id="c2VjcmV0"), False),
        (("input", "signature"), use("toolu_1", signature="c2VjcmV0"), False),
        (("input", "source", "data"), use("t", source={"type": "base64", "data": "c2VjcmV0"}), False),
        (("tool_use_id",), answer("toolu_1"), True),
        (("content", 0, "source", "data"), answer("t", [picture("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB")]), True),
        (("content", 0, "signature"), answer("t", [{"type": "thinking", "signature": SEAL}]), False),
        (("content", 0, "encrypted_content"), answer("t", [{"encrypted_content": SEAL}]), False),
        # JSON inside a string has paths that go on below the string.
        (("content", 0, "source", "data"), answer("t", '[{"source":{"data":"c2VjcmV0"}}]'), False),
        (("source", "data"), picture("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"), True),
        (("source", "data"), picture("no base64!"), False),
        (("source", "data"), {"type": "document", "source": {"type": "text", "data": "c2VjcmV0"}}, False),
        (("source", "media_type"), picture("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"), False),
        (("source", "file_id"), {"type": "document", "source": {"type": "file", "file_id": "file_1"}}, True),
        (("content", 0, "encrypted_content"), searched(encrypted_content=SEAL), True),
        (("content", 0, "title"), searched(title=SEAL), False),
        (
            ("citations", 0, "encrypted_index"),
            {"type": "text", "text": "x", "citations": [{"encrypted_index": SEAL}]},
            True,
        ),
    ],
)  # fmt: skip
def test_opaque_by_key_container_and_shape(path: Any, block: Any, expected: bool) -> None:
    item = {"role": "assistant", "content": [block]}
    assert DIALECT.opaque(("content", 0, *path), item) is expected
    line = {"type": "assistant", "message": item, "uuid": "u"}
    assert get_dialect("claude-code").opaque(("message", "content", 0, *path), line) is expected


def test_without_the_item_only_places_with_one_meaning_are_opaque() -> None:
    assert DIALECT.opaque(("content", 0, "signature"))
    assert DIALECT.opaque(("content", 0, "tool_use_id"))
    assert not DIALECT.opaque(("content", 0, "source", "data"))
    assert not DIALECT.opaque(("content", 0, "content", 0, "source", "data"))
    assert not DIALECT.opaque(("content", 0, "input", "id"))
    assert not DIALECT.opaque(())


def test_results_are_added_behind_leading_results_and_once() -> None:
    item = user(answer("a"), {"type": "text", "text": "and now?"})
    calls = [Call("a", "Read", {}), Call("b", "Read", {})]
    before = copy.deepcopy(item)
    added = DIALECT.with_results(item, calls, "lost")
    assert item == before
    assert [block.get("tool_use_id", "text") for block in added["content"]] == ["a", "b", "text"]
    assert added["content"][1]["is_error"] is True
    assert DIALECT.with_results(added, calls, "lost") is added
    assert DIALECT.with_results(user("plain"), calls[:1], "lost")["content"][-1] == {
        "type": "text",
        "text": "plain",
    }


def test_error_results_hold_nothing_the_api_does_not_know() -> None:
    made = DIALECT.error_results([Call("a", "Read", {}), Call("b", "Read", {})], assistant(use("a")), "lost")
    assert made["role"] == "user"
    assert set(made) == {"role", "content"}
    assert found(user("go"), assistant(use("a"), use("b")), made) == []


def test_a_result_is_taken_out_by_its_number() -> None:
    item = user(answer("a", "first"), answer("a", "second"), answer("b"))
    assert DIALECT.without_result(item, "a", 1) == user(answer("a", "first"), answer("b"))
    assert DIALECT.without_result(item, "a", 0) == user(answer("a", "second"), answer("b"))
    assert DIALECT.without_result(item, "a", 2) is item
    assert DIALECT.without_result(user(answer("a")), "a") is None


def test_reasoning_goes_and_may_leave_nothing() -> None:
    thought = {"type": "thinking", "thinking": "x", "signature": "c2ln"}
    said = {"type": "text", "text": "ok"}
    assert DIALECT.without_reasoning(assistant(thought, said)) == assistant(said)
    assert DIALECT.without_reasoning(assistant(thought)) is None
    item = assistant(said)
    assert DIALECT.without_reasoning(item) is item
