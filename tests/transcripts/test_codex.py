"""Dialect "codex": what lines say, windows between compactions, events, flat files, and what repair mends."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from archiver.errors import UsageError
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.repair import INTERRUPTED, RepairReport, repair
from archiver.resuming import going_on
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.codex_text import typed
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import read
from archiver.transcripts.survey import survey

from .samples import START, line_of, write_jsonl
from .samples_codex import FOLDER, MODEL, VERSION, Rollout, codex_flat, codex_session

DIALECT = get_dialect("codex")


def codes(lines: list[Any]) -> list[tuple[str, int]]:
    return [(problem.code, problem.item) for problem in DIALECT.problems(iter(lines))]


def checkpoint(lines: list[Any]) -> Checkpoint:
    part = TranscriptPart(name="main", items=Items.of_lines(line_of(line) for line in lines))
    transcript = Transcript(dialect="codex", parts=(part,))
    return Checkpoint(
        run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
    )


def mend(lines: list[Any]) -> tuple[list[Any], RepairReport]:
    with Scratch() as scratch:
        after, report = repair(checkpoint(lines), scratch)
        return list(after.transcript.parts[0].items), report


def started(seed: int = 1, **options: Any) -> tuple[Rollout, list[dict[str, Any]]]:
    """A session that has begun: its head and an instruction."""
    write = Rollout(seed, **options)
    return write, [write.meta(), write.item(write.items.user("go"))]


def test_the_facts_of_a_run() -> None:
    lines = list(codex_session(4, seed=1))
    facts = survey(Items.of_lines(map(line_of, lines)), DIALECT).facts
    assert facts.turns == 8  # in each of four rounds a response with calls and one without
    assert facts.instructions == 4
    assert facts.objective.startswith("Instruction 0: ")
    assert facts.session == lines[0]["payload"]["id"]
    assert (facts.cwd, facts.git_branch, facts.model) == (FOLDER, "main", MODEL)
    assert facts.harness == f"codex {VERSION}"
    assert facts.first_at == datetime(2026, 1, 31, 14, 0, 1, 250000, UTC)
    # What is told is the total so far, which the last event has.
    assert (facts.tokens_in, facts.tokens_out, facts.tokens_cached) == (4 * 400, 4 * 50, 4 * 600)


def test_a_total_that_is_told_again_counts_once() -> None:
    write, lines = started()
    lines += [write.tokens(), write.tokens()]
    facts = survey(Items.of_lines(map(line_of, [*lines, lines[-1], lines[-1]])), DIALECT).facts
    assert (facts.tokens_in, facts.tokens_out, facts.tokens_cached) == (800, 100, 1200)
    nothing = write.event("token_count", info=None)
    assert DIALECT.facts(nothing).usage is None


def test_the_first_head_is_the_session(tmp_path: Path) -> None:
    write, lines = started()
    copied = write.meta(id="the-one-it-was-forked-from")
    assert survey(Items.of_lines(map(line_of, [*lines, copied])), DIALECT).facts.session == write.session


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Fix the tests", "Fix the tests"),
        ("  What does <b>bold</b> mean? \n", "What does <b>bold</b> mean?"),
        ("<environment_context>\n<cwd>/a</cwd></environment_context>", ""),
        ("<user_instructions>\nx</user_instructions>", ""),
        ("# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>x</INSTRUCTIONS>", ""),
        ("<permissions instructions>x", ""),
        ("<skills_instructions>x", ""),
        ("<turn_aborted>\nThe user interrupted", ""),
        ("<user_shell_command>ls</user_shell_command>", ""),
        ("<subagent_notification>x", ""),
        ("Another language model started to solve this problem and", ""),
        (
            "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nRename it\n",
            "Rename it",
        ),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n", ""),
        ("# Agents of change", "# Agents of change"),
    ],
)
def test_only_what_a_person_typed_is_an_instruction(text: str, said: str) -> None:
    write = Rollout(1)
    assert typed([text]) == said
    assert DIALECT.facts(write.item(write.items.user(text))).instruction == said
    assert DIALECT.facts(write.item(write.items.developer(text))).instruction == ""
    assert DIALECT.facts(write.event("user_message", message=text)).instruction == ""


def test_a_call_is_read_by_its_kind() -> None:
    write = Rollout(1).items
    call = DIALECT.facts(write.call("exec_command", {"cmd": "ls"})).calls[0]
    assert (call.name, call.arguments) == ("exec_command", {"cmd": "ls"})
    # What the model wrote is a text, and need not be JSON.
    for given in ("not json", '{"cmd": ', '["ls"]'):
        item = write.call("exec_command", given)
        assert DIALECT.facts(item).calls[0].arguments == given
        assert codes([item]) == [("unanswered_call", 0)]
    patched = DIALECT.facts(write.patch("/w/a.py")).calls[0]
    assert (patched.name, patched.arguments["path"]) == ("apply_patch", "/w/a.py")
    shell = {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls", "-l"]}}
    assert DIALECT.facts(shell).calls[0].arguments["command"] == ["ls", "-l"]


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("Chunk ID: 2238c8\nWall time: 0.1597 seconds\nProcess exited with code 0\nOutput:\nx", False),
        ("Chunk ID: 69df10\nWall time: 0.0000 seconds\nProcess exited with code 1\nOutput:\nError: x", True),
        ("Exit code: 2\nWall time: 1 seconds\nOutput:\nx", True),
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}', False),
        ('{"output":"x","metadata":{"exit_code":127,"duration_seconds":0.1}}', True),
        ("plain", False),
        ([{"type": "input_text", "text": "x"}], False),
        ({"changed": True}, False),
    ],
)
def test_a_result_says_whether_its_call_failed(output: Any, failed: bool) -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": output}
    (result,) = DIALECT.facts(item).results
    assert result.is_error == failed
    assert result.text


def test_an_open_call_is_answered_and_goes_on_being_open_to_doubt() -> None:
    write, lines = started(ordinals=True)
    lines.append(write.item(write.items.reasoning()))
    calls = [write.item(write.items.call("exec_command", {"cmd": f"run {n}"})) for n in range(2)]
    lines += calls
    assert codes(lines) == [("unanswered_call", 3), ("unanswered_call", 4)]
    mended, report = mend(lines)
    assert mended[:5] == lines
    assert [line["payload"]["output"] for line in mended[5:]] == [INTERRUPTED] * 2
    assert [line["payload"]["call_id"] for line in mended[5:]] == [c["payload"]["call_id"] for c in calls]
    assert [line["ordinal"] for line in mended[4:]] == [4, 5, 6]
    assert all(line["timestamp"] == lines[-1]["timestamp"] for line in mended[5:])
    assert [action.action for action in report.actions] == ["answered"] * 2


@pytest.mark.parametrize(
    "kind", ["exec_approval_request", "apply_patch_approval_request", "request_user_input"]
)
def test_a_call_for_which_a_person_was_asked_stays_open(kind: str) -> None:
    write, lines = started()
    call = write.items.call("exec_command", {"cmd": "rm -r build"})
    lines += [write.item(call), write.event(kind, call_id=call["call_id"])]
    assert codes(lines) == []
    assert mend(lines) == (lines, RepairReport())
    # Once a person went on without an answer, it was interrupted.
    assert codes([*lines, write.item(write.items.user("never mind"))]) == [("unanswered_call", 2)]


def test_a_result_ahead_of_its_call_moves_behind_it() -> None:
    write, lines = started()
    call = write.items.call("exec_command", {"cmd": "ls"})
    result = write.items.result(call, "a\nb")
    result["id"] = "fco_1"
    lines += [write.item(result), write.item(write.items.reasoning()), write.item(call)]
    assert codes(lines) == [("misplaced_result", 2)]
    mended, report = mend(lines)
    assert [line["payload"].get("type") for line in mended[2:]] == [
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert mended[-1]["payload"] == result
    assert [action.action for action in report.actions] == ["moved"]


def test_a_result_of_another_kind_is_made_one_of_the_right_kind() -> None:
    write = Rollout(1).items
    call = write.call("exec_command", {"cmd": "ls"})
    wrong = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "x"}
    assert codes([call, wrong]) == [("misplaced_result", 1)]
    assert mend([call, wrong])[0] == [call, wrong | {"type": "function_call_output"}]
    right = {**wrong, "type": "function_call_output"}
    assert codes([call, wrong, right]) == [("duplicate_result", 1)]
    assert mend([call, wrong, right])[0] == [call, right]
    shell = {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}}
    assert codes([shell, {"type": "function_call_output", "call_id": "c", "output": "x"}]) == []
    (mended, _) = mend([shell])
    assert mended[1]["type"] == "function_call_output"


def test_searches_for_tools_pair_only_where_codex_ran_them() -> None:
    client = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "x"}}
    found = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [{"name": "t"}]}
    server = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
    given = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    assert codes([client, found, server, given]) == []
    assert codes([client]) == [("unanswered_call", 0)]
    mended, _ = mend([client])
    assert mended[1] == {**found, "status": "incomplete", "tools": []}
    # The tools that were found are what the model may call from then on: no stub takes their place.
    assert DIALECT.stub_result(found, "c", "[stub]") is found


def test_reasoning_without_what_follows_it_is_dropped_and_nothing_else() -> None:
    write, lines = started()
    lone = write.item(write.items.reasoning())
    lines += [lone, write.item(write.items.user("stop")), write.item(write.items.say("Yes."))]
    lines += [write.item(write.items.reasoning()), write.item(write.items.reasoning()), write.tokens()]
    lines += [write.item(write.items.say("Both belong to this.")), write.item(write.items.reasoning())]
    assert codes(lines) == [("lone_reasoning", 2), ("lone_reasoning", 9)]
    mended, report = mend(lines)
    assert mended == [line for line in lines if line is not lone][:-1]
    assert [action.action for action in report.actions] == ["dropped"] * 2


def test_reasoning_whose_call_was_lost_is_dropped_with_the_result() -> None:
    write, lines = started()
    call = write.items.call("exec_command", {"cmd": "ls"})
    lines += [write.item(write.items.reasoning()), write.item(write.items.result(call, "x"))]
    lines += [write.item(write.items.say("done"))]
    assert codes(lines) == [("lone_reasoning", 2), ("orphan_result", 3)]
    mended, _ = mend(lines)
    assert mended == [*lines[:2], lines[4]]


def test_reasoning_that_openai_would_not_take_back_is_dropped() -> None:
    write, lines = started()
    readable = write.items.reasoning() | {"content": [{"type": "reasoning_text", "text": "hm"}]}
    lines += [write.item(readable), write.item(write.items.say("ok"))]
    assert codes(lines) == [("foreign_reasoning", 2)]
    assert mend(lines)[0] == [*lines[:2], lines[3]]
    other = Rollout(1).meta(model_provider="ollama")
    assert codes([other, *lines[1:]]) == []
    assert codes([*lines[:2], write.item(readable | {"content": None}), lines[3]]) == []


@pytest.mark.parametrize("seal", ["REDACTED", "", "[trimmed for fixture]", "REDACTED/REDACTED " * 9])
def test_reasoning_with_a_broken_seal_goes(seal: str) -> None:
    write, lines = started()
    for _ in range(3):
        lines += [write.item(write.items.reasoning() | {"encrypted_content": seal})]
        lines += [write.item(write.items.say("ok"))]
    assert codes(lines) == [
        (code, item) for item in (2, 4, 6) for code, item in (("broken_seal", item), ("bound_id", item + 1))
    ]
    mended, report = mend(lines)
    for line in (said := copy.deepcopy(lines[3::2])):
        del line["payload"]["id"]  # it would ask for the reasoning
    assert mended == [*lines[:2], *said]
    assert [action.action for action in report.actions] == ["dropped"] * 6
    # What stands for all that was said before cannot go.
    marker, told = write.compacted([])
    marker["payload"]["replacement_history"][0]["encrypted_content"] = seal
    mended, report = mend([*lines[:2], marker, told])
    assert mended == [*lines[:2], marker, told]
    assert [action.code for action in report.left] == ["broken_seal"]
    # What a compaction has taken the place of is not sent any more.
    assert codes([*lines, *write.compacted([])]) == []


def test_the_name_of_a_tool_is_one_that_the_provider_takes() -> None:
    write, lines = started()
    nul = write.items.call("exec_\0command\0", {"cmd": "ls"})
    lines += [write.item(nul), write.item(write.items.result(nul, "x"))]
    assert codes(lines) == [("bad_name", 2)]
    mended, report = mend(lines)
    assert mended[2]["payload"] == {**nul, "name": "exec_command"}
    assert mended[3] == lines[3]
    assert [action.action for action in report.actions] == ["renamed"]
    dotted = write.items.call("a.b", {})
    mended, report = mend([*lines[:2], write.item(dotted), write.item(write.items.result(dotted, "x"))])
    assert mended[2]["payload"] == {**dotted, "name": "a_b"}
    assert [action.code for action in report.actions] == ["bad_name"]


def test_half_a_character_is_mended() -> None:
    write, lines = started()
    lines.append(write.item(write.items.say("half \ud83d a pair")))
    raw = [json.dumps(line).encode() for line in lines]
    part = TranscriptPart(name="main", items=Items.of_lines(raw))
    value = checkpoint([]).model_copy(update={"transcript": Transcript(dialect="codex", parts=(part,))})
    with Scratch() as scratch:
        after, report = repair(value, scratch)
        mended = list(after.transcript.parts[0].items)
    assert mended[2]["payload"]["content"][0]["text"] == "half \ufffd a pair"
    assert mended[:2] == lines[:2]
    assert [action.code for action in report.actions] == ["bad_text"]


def test_what_a_compaction_hides_is_history() -> None:
    write, lines = started()
    call = write.items.call("exec_command", {"cmd": "ls"})
    lines += [write.item(call), *write.compacted([write.items.user("go")])]
    assert codes(lines) == []
    # The model never saw the call: what comes for it now answers nothing.
    assert codes([*lines, write.item(write.items.result(call, "late"))]) == [("orphan_result", 5)]


def test_what_a_compaction_leaves_is_the_start_of_what_follows() -> None:
    write, lines = started()
    marker, told = write.compacted([write.items.user("go")], call=True)
    call = marker["payload"]["replacement_history"][-1]
    lines += [marker, told]
    assert DIALECT.facts(marker).boundary
    assert codes([*lines, write.item(write.items.result(call, "x"))]) == []
    assert codes(lines) == [("unanswered_call", 2)]
    mended, _ = mend(lines)
    assert mended[:3] == lines[:3]
    assert mended[3]["payload"]["call_id"] == call["call_id"]
    assert codes(mended) == []
    both = [*marker["payload"]["replacement_history"], write.items.result(call, "x")]
    whole = {**marker, "payload": {**marker["payload"], "replacement_history": both}}
    assert codes([*lines[:2], whole]) == []
    orphan = {**marker, "payload": {**marker["payload"], "replacement_history": both[-1:]}}
    assert codes([lines[0], orphan]) == [("orphan_result", 1)]
    left = DIALECT.without_result(orphan, call["call_id"])
    assert left is not None
    assert left["payload"]["replacement_history"] == []


def test_the_same_ids_on_both_sides_of_a_compaction_are_not_two_calls() -> None:
    write, lines = started()
    call = write.items.call("exec_command", {"cmd": "ls"})
    result = write.items.result(call, "x")
    marker = write.compacted([write.items.user("go")])[0]
    marker["payload"]["replacement_history"] += [call, result]
    assert codes([*lines, write.item(call), write.item(result), marker]) == []


def test_copies_of_an_output_fold_into_one_and_nothing_else_does() -> None:
    write = Rollout(1)
    event = write.ended("c", "some output")
    folded = DIALECT.fold(event)
    assert folded["payload"]["aggregated_output"] == "some output"
    assert (folded["payload"]["stdout"], folded["payload"]["formatted_output"]) == ("", "")
    assert DIALECT.fold(folded) is folded
    other = write.event(
        "exec_command_end", stdout="a", stderr="b", aggregated_output="ab", formatted_output="c"
    )
    assert DIALECT.fold(other) is other
    alone = write.event("exec_command_end", stdout="a", stderr="", aggregated_output="", formatted_output="a")
    assert DIALECT.fold(alone) is alone
    for line in codex_session(2, seed=1, images=True):
        if line["payload"].get("type") != "exec_command_end":
            assert DIALECT.fold(line) is line


def test_pictures_of_events_become_artifacts_too() -> None:
    write = Rollout(1)
    urls = [write.items.picture()["image_url"] for _ in range(2)]
    line = write.event("user_message", message="look", images=urls)
    for blob in list(DIALECT.blobs(line)):
        assert DIALECT.opaque(blob.path, line)
        line = DIALECT.replace_blob(line, blob.path, f"[{len(blob.data)}]")
    assert line["payload"]["images"] == []
    assert line["payload"]["message"].splitlines() == ["look", "[800]", "[800]"]
    made = write.event(
        "image_generation_end", call_id="c", result=write.make.blob(60), revised_prompt="a cat"
    )
    (blob,) = DIALECT.blobs(made)
    payload = DIALECT.replace_blob(made, blob.path, "[gone]")["payload"]
    assert (payload["result"], payload["revised_prompt"]) == ("", "a cat\n[gone]")
    content = [{"type": "image", "mimeType": "image/png", "data": write.make.blob(60)}]
    tool = write.event("mcp_tool_call_end", call_id="c", result={"Ok": {"content": content}})
    (blob,) = DIALECT.blobs(tool)
    replaced = DIALECT.replace_blob(tool, blob.path, "[gone]")
    assert replaced["payload"]["result"]["Ok"]["content"] == [{"type": "text", "text": "[gone]"}]


def test_ids_of_lines_are_opaque_only_at_their_place() -> None:
    write = Rollout(1)
    meta = write.meta()
    for path in (("payload", "id"), ("payload", "git", "commit_hash")):
        assert DIALECT.opaque(path, meta)
    assert not DIALECT.opaque(("payload", "cwd"), meta)
    assert not DIALECT.opaque(("payload", "base_instructions", "text"), meta)
    sealed = write.item(write.items.reasoning())
    assert DIALECT.opaque(("payload", "encrypted_content"), sealed)
    assert DIALECT.opaque(("payload", "encrypted_content"))
    marker = write.compacted([])[0]
    assert DIALECT.opaque(("payload", "replacement_history", 0, "encrypted_content"), marker)
    told = write.item(write.items.call("x", {"id": "s3cret"}))
    assert not DIALECT.opaque(("payload", "arguments"), told)
    leaky = write.item(write.items.reasoning() | {"encrypted_content": "a secret with blanks"})
    assert not DIALECT.opaque(("payload", "encrypted_content"), leaky)
    flat = codex_flat(1)[0]
    assert DIALECT.opaque(("id",), flat)
    assert not DIALECT.opaque(("instructions",), flat)


def test_a_flat_file_is_known_by_its_head_and_keeps_its_bytes(tmp_path: Path) -> None:
    lines = codex_flat(3, seed=2)
    data = b"".join(line_of(line) + b"\r\n" for line in lines)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(data)
    reading = read([path])
    assert reading.transcript.dialect == "codex"
    pieces: list[bytes] = []
    write_native(reading.transcript.parts[0], pieces.append)
    assert b"".join(pieces) == data
    facts = survey(reading.transcript.parts[0].items, DIALECT).facts
    assert (facts.session, facts.git_branch) == (lines[0]["id"], "main")
    assert (facts.cwd, facts.instructions, facts.turns) == (FOLDER, 3, 6)
    assert b"\\r\\n" in data


def test_a_flat_file_is_mended_in_its_own_form_and_line_ends() -> None:
    lines = codex_flat(2, seed=2)
    gone = next(place for place, line in enumerate(lines) if line.get("type") == "function_call_output")
    call_id = lines.pop(gone)["call_id"]
    raw = [line_of(line) + b"\r" for line in lines]
    part = TranscriptPart(name="main", items=Items.of_lines(raw))
    value = checkpoint([]).model_copy(update={"transcript": Transcript(dialect="codex", parts=(part,))})
    with Scratch() as scratch:
        after, _ = repair(value, scratch)
        mended = list(after.transcript.parts[0].items.lines())
    assert all(line.endswith(b"\r") for line in mended)
    new = [line for line in mended if line not in raw]
    assert [json.loads(line) for line in new] == [
        {"type": "function_call_output", "call_id": call_id, "output": INTERRUPTED}
    ]


def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    lines = list(codex_session(2, seed=1))
    path = write_jsonl(tmp_path / "rollout.jsonl", lines[:-1])
    with path.open("ab") as file:
        file.write(line_of(lines[-1])[:40])
    reading = read([path])
    assert list(reading.transcript.parts[0].items) == lines[:-1]
    assert [(one.place, one.bytes) for one in reading.dropped] == [("tail", 40)]


@pytest.mark.parametrize(
    "lines",
    [
        [{"timestamp": "x", "type": "response_item"}] * 2,
        [{"type": "response_item", "payload": {"type": "message"}}] * 2,
        [{"timestamp": "x", "type": "item.completed", "payload": {}}] * 2,
        [{"id": "a", "timestamp": "b"}, {"record_type": "state"}],
        [{"id": "a", "timestamp": "b", "instructions": None}, {"novel": 1}],
    ],
)
def test_what_is_not_plainly_a_rollout_is_not_taken_for_one(tmp_path: Path, lines: list[Any]) -> None:
    assert read([write_jsonl(tmp_path / "x.jsonl", lines)]).transcript.dialect != "codex"


def test_a_folder_stands_for_the_one_rollout_in_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "rollout-a.jsonl", codex_session(1, seed=1))
    assert read([tmp_path]).transcript.dialect == "codex"
    write_jsonl(tmp_path / "rollout-b.jsonl", codex_session(1, seed=2))
    with pytest.raises(UsageError, match="2 sessions"):
        read([tmp_path])


def test_how_a_restored_session_goes_on() -> None:
    lines = list(codex_session(1, seed=1))
    session = lines[0]["payload"]["id"]
    value = checkpoint(lines).model_copy(update={"workspace": checkpoint([]).workspace})
    named = PurePosixPath(f"rollout-2025-12-28T13-18-30-{session}.jsonl")
    _, where, copy, resume = going_on(value, Path("/out"), (named,)).steps
    place = '"${CODEX_HOME:-$HOME/.codex}"/sessions/2025/12/28'
    assert copy == f"mkdir -p {place} && cp -n /out/{named} {place}/{named}"
    assert where == "# do this in the folder of the project, which the checkpoint does not name"
    assert resume == f"codex resume {session}"
    # Any other name would not be found: the session's own takes its place.
    *_, copy, _ = going_on(value, Path("/out"), (PurePosixPath("my run.jsonl"),)).steps
    assert copy.endswith(
        f"cp -n '/out/my run.jsonl' {place[:-10]}2026/01/31/rollout-2026-01-31T14-00-01-{session}.jsonl"
    )
    flat = checkpoint(codex_flat(1))
    assert going_on(flat, Path("/out"), (named,)).steps[-1] == f"cat -v /out/{named}"
