"""Dialect "openai-responses": kinds of items, containers of them, and what repair mends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.redact import Redactor, new_key
from archiver.repair import INTERRUPTED, RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import detect, get_dialect
from archiver.transcripts.dialect import Usage
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import Reading, read
from archiver.transcripts.survey import survey

from .samples import START, line_of, write_jsonl
from .samples_responses import (
    MODEL,
    ItemWriter,
    hosted_items,
    response_body,
    response_chain,
    response_items,
    response_request,
)

DIALECT = get_dialect("openai-responses")
NAME = DIALECT.name
LAYOUTS: list[dict[str, Any]] = [{"separators": (",", ":"), "ensure_ascii": False}, {"indent": 2}, {}]


def codes(items: list[Any]) -> list[tuple[str, int]]:
    return [(problem.code, problem.item) for problem in DIALECT.problems(iter(items))]


def mend(items: list[Any]) -> tuple[list[Any], RepairReport]:
    part = TranscriptPart(name="main", items=Items.of_lines(line_of(item) for item in items))
    value = Checkpoint(
        run_id="run",
        task_id="task",
        created_at=START,
        checkpoint_at=START,
        transcript=Transcript(dialect=NAME, parts=(part,)),
    )
    with Scratch() as scratch:
        after, report = repair(value, scratch)
        return list(after.transcript.parts[0].items), report


def written(path: Path, value: Any, **layout: Any) -> Reading:
    path.write_text(json.dumps(value, **layout), encoding="utf-8")
    return read([path])


def native(reading: Reading) -> Any:
    pieces: list[bytes] = []
    write_native(reading.transcript.parts[0], pieces.append)
    return json.loads(b"".join(pieces))


def test_roles() -> None:
    roles = [DIALECT.facts(item).role for item in response_items(1)]
    assert roles == ["system", "user", *["assistant"] * 4, "tool", "tool", "assistant", "assistant"]
    easy = {"role": "user", "content": "Hello"}
    assert (DIALECT.facts(easy).role, DIALECT.facts(easy).instruction) == ("user", "Hello")
    for item in ({"type": "item_reference", "id": "msg_1"}, {"type": "novelty"}, {}, None, [1], "x"):
        assert DIALECT.facts(item).role == "meta"


def test_calls_of_the_providers_own_tools_need_no_result() -> None:
    items = hosted_items()
    calls = {call.kind: call for item in items for call in DIALECT.facts(item).calls}
    assert all(call.answered_elsewhere for call in calls.values())
    assert calls["mcp_call"].name == "ask"
    assert calls["mcp_call"].arguments == {"question": "what"}
    assert calls["web_search_call"].arguments == {"type": "search", "query": "how"}
    assert calls["code_interpreter_call"].arguments == {"code": "print(1)"}
    assert codes(items) == []
    assert mend(items) == (items, RepairReport())


def test_an_approval_that_waits_stays_open() -> None:
    asked = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "s",
        "name": "rm",
        "arguments": "{}",
    }
    items = [ItemWriter(1).user("go"), ItemWriter(2).reasoning(), asked]
    (call,) = DIALECT.facts(asked).calls
    assert (call.id, call.name, call.answered_elsewhere) == ("mcpr_1", "rm", True)
    assert mend(items) == (items, RepairReport())
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert codes([*items, answer]) == []


ANSWERED = [
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"output": "x"}),
    ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}, {"output": "x"}),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}, {"output": [{"stdout": "x"}]}),
    ({"type": "apply_patch_call", "call_id": "c", "operation": {}}, {"status": "completed", "output": "x"}),
]


@pytest.mark.parametrize(("call", "fields"), ANSWERED, ids=lambda value: str(value.get("type", "")))
def test_each_kind_of_call_has_its_kind_of_result(call: dict[str, Any], fields: dict[str, Any]) -> None:
    result = {"type": f"{call['type']}_output", "call_id": "c", **fields}
    assert codes([call, result]) == []
    assert codes([call]) == [("unanswered_call", 0)]
    assert codes([result]) == [("orphan_result", 0)]
    mended, _ = mend([call])
    assert mended[1]["type"] == result["type"]
    (said,) = DIALECT.facts(mended[1]).results
    assert (said.call_id, said.text, said.is_error) == ("c", INTERRUPTED, True)
    stub = DIALECT.stub_result(result, "c", "[stub]")
    assert stub.keys() == result.keys()
    assert DIALECT.facts(stub).results[0].text == "[stub]"


def test_a_local_shell_is_answered_by_its_id() -> None:
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {"command": ["ls"]}}
    for own in ("id", "call_id"):
        assert codes([call, {"type": "local_shell_call_output", own: "c", "output": "{}"}]) == []
    mended, _ = mend([call])
    assert mended[1] == {"type": "local_shell_call_output", "id": "c", "output": INTERRUPTED}


def test_no_text_stands_in_for_a_screenshot() -> None:
    call = {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}}
    url = f"data:image/png;base64,{ItemWriter(1).make.blob(60)}"
    shot = {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": url},
    }
    assert codes([call, shot]) == []
    assert list(DIALECT.blobs(shot)) == []
    assert DIALECT.opaque(("output", "image_url"), shot)
    assert DIALECT.stub_result(shot, "c", "[stub]") is shot
    mended, report = mend([call])
    assert mended == [call]
    assert [action.code for action in report.left] == ["unanswerable_call"]


def test_a_generated_picture_leaves_its_item_in_place() -> None:
    item = next(item for item in hosted_items() if item["type"] == "image_generation_call")
    (blob,) = DIALECT.blobs(item)
    assert DIALECT.opaque(blob.path, item)
    made = DIALECT.replace_blob(item, blob.path, "[gone]")
    assert made == {**item, "result": None, "revised_prompt": "a cat\n[gone]"}
    assert DIALECT.blobs(made) is not None
    assert list(DIALECT.blobs(made)) == []


def test_files_and_spoken_words_are_found() -> None:
    blob = ItemWriter(1).make.blob(60)
    parts = [
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{blob}"},
        {"type": "input_audio", "input_audio": {"data": blob, "format": "mp3"}},
        {"type": "input_image", "image_url": "https://example.test/a.png"},
        {"type": "input_image", "file_id": "file-1"},
    ]
    item = {"type": "message", "role": "user", "content": parts}
    found = list(DIALECT.blobs(item))
    assert [one.media_type for one in found] == ["application/pdf", "audio/mp3"]
    for one in found:
        assert DIALECT.opaque(one.path, item)
        item = DIALECT.replace_blob(item, one.path, "[gone]")
    assert item["content"][:2] == [{"type": "input_text", "text": "[gone]"}] * 2
    assert DIALECT.opaque(("content", 3, "file_id"), item)


def test_what_precedes_a_compaction_may_be_missing_its_half() -> None:
    write = ItemWriter(1)
    call = write.call("f", {})
    sealed = {"type": "compaction", "id": write.id("cmp"), "encrypted_content": write.sealed()}
    assert codes([write.user("a"), call, sealed, write.user("b")]) == []
    assert codes([sealed, write.user("b"), call]) == [("unanswered_call", 2)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_request_is_known_and_comes_back(tmp_path: Path, layout: dict[str, Any]) -> None:
    request = response_request(2, images=True)
    reading = written(tmp_path / "request.json", request, **layout)
    (part,) = reading.transcript.parts
    assert (reading.transcript.dialect, part.items_at) == (NAME, ("input",))
    assert list(part.items) == request["input"]
    assert native(reading) == request
    facts = survey(part.items, DIALECT, part.header).facts
    assert (facts.model, facts.turns, facts.instructions) == (MODEL, 4, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_response_is_known_and_its_call_is_not_open(tmp_path: Path, layout: dict[str, Any]) -> None:
    write = ItemWriter(1)
    body = response_body([write.reasoning(), write.call("f", {"a": 1})])
    reading = written(tmp_path / "response.json", body, **layout)
    (part,) = reading.transcript.parts
    assert (reading.transcript.dialect, part.nested_at) == (NAME, ("output",))
    assert DIALECT.problems(iter(part.items)) == []
    assert native(reading) == body
    facts = survey(part.items, DIALECT, part.header).facts
    assert (facts.tokens_in, facts.tokens_cached, facts.tokens_out) == (400, 600, 50)
    assert facts.model == MODEL


def test_a_log_of_one_exchange_is_its_request(tmp_path: Path) -> None:
    write = ItemWriter(1)
    log = {"request": response_request(1), "response": response_body([write.call("f", {})])}
    reading = written(tmp_path / "log.json", log)
    (part,) = reading.transcript.parts
    assert (reading.transcript.dialect, part.items_at) == (NAME, ("request", "input"))
    assert DIALECT.problems(iter(part.items)) == []
    assert native(reading) == log


def test_a_log_of_a_request_that_is_one_text_is_its_response(tmp_path: Path) -> None:
    write = ItemWriter(1)
    response = response_body([write.reasoning(), write.call("f", {})])
    log = {"request": {"model": MODEL, "input": "Begin."}, "response": response}
    for count, layout in ((1, {"indent": 1}), (3, {})):
        path = tmp_path / f"{count}.log"
        path.write_text("".join(json.dumps(log, **layout) + "\n" for _ in range(count)))
        (part,) = read([path]).transcript.parts
        assert part.nested_at == ("response", "output")
        assert DIALECT.problems(iter(part.items)) == []
        assert sum(len(DIALECT.facts(item).calls) for item in part.items) == count


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_a_chain_of_responses_is_one_conversation(tmp_path: Path, shape: str) -> None:
    chain = response_chain(4)
    path = tmp_path / "chain"
    reading = read([write_jsonl(path, chain)]) if shape == "lines" else written(path, chain, indent=1)
    (part,) = reading.transcript.parts
    assert (reading.transcript.dialect, part.nested_at) == (NAME, ("request", "input"))
    # Each request holds what came for the call of the response before, which it only names.
    assert DIALECT.problems(iter(part.items)) == []
    shells = [item for item in part.items if isinstance(item, list)]
    assert [DIALECT.facts(shell).starts for shell in shells] == [True, False, False, False]
    assert DIALECT.facts(shells[0]).usage == Usage(400, 50, 600)


def test_a_chain_of_response_bodies_is_read_too(tmp_path: Path) -> None:
    bodies = [exchange["response"] for exchange in response_chain(3)]
    reading = read([write_jsonl(tmp_path / "bodies.jsonl", bodies)])
    (part,) = reading.transcript.parts
    assert (reading.transcript.dialect, part.nested_at) == (NAME, ("output",))
    assert DIALECT.problems(iter(part.items)) == []
    calls = [call for item in part.items for call in DIALECT.facts(item).calls]
    assert len(calls) == 3
    pieces: list[bytes] = []
    write_native(part, pieces.append)
    assert b"".join(pieces) == (tmp_path / "bodies.jsonl").read_bytes()


def test_requests_on_lines_are_mended_in_their_place(tmp_path: Path) -> None:
    write = ItemWriter(1)
    open_call = write.call("f", {})
    requests = [
        {"model": MODEL, "input": [write.user("a"), open_call, write.user("b")]},
        {"model": MODEL, "input": [write.user("c"), write.say("d")]},
    ]
    (part,) = read([write_jsonl(tmp_path / "requests.jsonl", requests)]).transcript.parts
    assert codes(list(part.items)) == [("unanswered_call", 2)]
    mended, _ = mend(list(part.items))
    made = part.model_copy(update={"items": Items.of(mended)})
    pieces: list[bytes] = []
    write_native(made, pieces.append)
    first, second = map(json.loads, b"".join(pieces).splitlines())
    assert first["input"][2] == {
        "type": "function_call_output",
        "call_id": open_call["call_id"],
        "output": INTERRUPTED,
    }
    assert second == requests[1]


def test_seals_and_ids_of_what_stands_around_are_opaque(tmp_path: Path) -> None:
    write = ItemWriter(1)
    said = [write.reasoning(), write.call("f", {"id": "x y"})]
    log = {"request": response_request(1), "response": response_body(said)}
    (part,) = written(tmp_path / "log.json", log).transcript.parts
    place = ("response", "output", 0)
    assert DIALECT.opaque((*place, "encrypted_content"), part.header)
    assert DIALECT.opaque((*place, "id"), part.header)
    assert DIALECT.opaque(("response", "id"), part.header)
    assert not DIALECT.opaque(("response", "output", 1, "arguments"), part.header)
    assert not DIALECT.opaque(("request", "instructions"), part.header)
    shell = [part.header]
    assert DIALECT.opaque((0, *place, "encrypted_content"), shell)
    assert not DIALECT.opaque((0, "request", "instructions"), shell)


def test_redaction_spares_a_seal_that_looks_like_a_secret(tmp_path: Path) -> None:
    write = ItemWriter(1)
    looks = write.sealed(60) + "AKIA" + "ABCDEFGHJKLMNPQR" + write.sealed(60)
    item = {**write.reasoning(), "encrypted_content": looks}
    token = "ghp_" + "a1B2c3D4e5" * 4
    items = [write.user(f"my token is {token[:40]}"), item, write.say("ok")]
    log = {"model": MODEL, "input": items, "response": response_body([item])}
    reading = written(tmp_path / "log.json", log)
    with Scratch() as scratch:
        made = Redactor.load(new_key()).transcript(reading.transcript, scratch).value
        again = list(made.parts[0].items)
    assert again[1:] == items[1:]
    assert token[:40] not in json.dumps(again)
    assert made.parts[0].header["response"]["output"][0]["encrypted_content"] == looks


ASK = {"role": "user", "content": "Hello"}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("values", "container", "dialect"),
    [
        ([ASK], {"input": [], "model": "gpt-5"}, NAME),
        ([ASK], {"input": [], "model": "gpt-5", "parallel_tool_calls": True}, NAME),
        ([ASK], {"input": []}, "opaque"),
        ([ASK, {"type": "reasoning", "id": "rs_1", "summary": []}], None, NAME),
        ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], None, NAME),
        ([CALL, {"type": "new_call", "id": "x"}], None, NAME),
        # Items of the JavaScript Agents SDK, and of other programs.
        ([{"type": "function_call", "callId": "a", "name": "f", "arguments": "{}"}], None, "opaque"),
        ([{"type": "message", "id": "1", "message": {"role": "user", "content": []}}], None, "opaque"),
        ([{"type": "tool_call_item", "raw_item": {}}], None, "opaque"),
        ([CALL], {"output": []}, "opaque"),
        ([{"type": "reasoning", "text": "x"}], None, "opaque"),
        ([{"type": "compaction", "content": "x"}], None, "opaque"),
    ],
)  # fmt: skip
def test_items_are_known_by_marks_of_their_own(values: list[Any], container: Any, dialect: str) -> None:
    assert detect.of_messages(values, container) == dialect
