"""Repair mends what makes a transcript invalid, says so, and leaves everything else alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compact.sessions import (
    BLOCKS,
    DIALECTS,
    Turn,
    Use,
    call_id,
    checkpoint,
    items_of,
    lines_of,
    output_of,
    sessions,
    waiting_for,
    write,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts.samples import inline_sidechains

from archiver import jsonio
from archiver.model import Items, Transcript, TranscriptPart
from archiver.repair import INTERRUPTED, RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import ToolResult

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[2] / "shared")) / "transcripts"
LEFT = {"duplicate_call"}
"""Damage of these tests that nothing mends: two calls with one id."""

PARALLEL = [
    Turn(ask="go", uses=tuple(Use("Bash", {"command": f"run {n}"}, f"out {n}") for n in range(3))),
    Turn(say="done"),
    Turn(ask="and now", say="fine"),
]


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


def _mend(dialect: str, items: list[Any], scratch: Scratch, **fields: Any) -> tuple[list[Any], RepairReport]:
    """Repair items, check what always holds, and give what came out."""
    lines = [jsonio.dumps(item) for item in items]
    before = checkpoint(dialect, lines, **fields)
    after, report = repair(before, scratch)
    assert lines_of(before) == lines
    again, second = repair(after, scratch)
    assert again is after
    assert (second.actions, second.left) == ((), report.left) or not second.actions
    assert (after is before) == (not report.actions)
    return items_of(after), report


def _problems(dialect: str, items: list[Any]) -> list[str]:
    return [problem.code for problem in get_dialect(dialect).problems(iter(items))]


def _results(dialect: str, items: list[Any]) -> list[ToolResult]:
    return [result for item in items for result in get_dialect(dialect).facts(item).results]


def _codes(report: RepairReport) -> list[tuple[str, str]]:
    return [(action.code, action.action) for action in report.actions]


def _without_results(dialect: str, items: list[Any], *gone: str) -> list[Any]:
    kept = []
    for item in items:
        left = item
        for one in gone:
            left = left if left is None else get_dialect(dialect).without_result(left, one)
        if left is not None:
            kept.append(left)
    return kept


def _chain(items: list[Any]) -> list[str]:
    """Ids from the last line up to its root."""
    parents = {item["uuid"]: item["parentUuid"] for item in items if "uuid" in item}
    chain: list[str] = []
    place = next(item["uuid"] for item in reversed(items) if "uuid" in item)
    while place is not None:
        assert place not in chain
        chain.append(place)
        place = parents[place]
    return chain


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_valid_transcript_comes_back_as_it_is(dialect: str, scratch: Scratch) -> None:
    value = checkpoint(dialect, write(PARALLEL, dialect).lines)
    assert repair(value, scratch) == (value, RepairReport())
    assert repair(value, scratch)[0] is value


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("gone", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_parallel_calls_partly_answered_are_all_answered(
    dialect: str, gone: tuple[int, ...], scratch: Scratch
) -> None:
    ids = [call_id(1, number) for number in gone]
    items = _without_results(dialect, write(PARALLEL, dialect).items, *ids)
    mended, report = _mend(dialect, items, scratch)
    assert _problems(dialect, mended) == []
    answered = [action for action in report.actions if action.code != "dangling_parent"]
    assert [(action.action, action.call_id) for action in answered] == [("answered", one) for one in ids]
    found = {result.call_id: result for result in _results(dialect, mended)}
    for number in range(3):
        result = found[call_id(1, number)]
        expected = (INTERRUPTED, True) if number in gone else (f"out {number}", False)
        assert (result.text, result.is_error) == expected


def test_a_missing_result_joins_the_next_user_message(scratch: Scratch) -> None:
    session = [Turn(uses=(Use("Bash", {"command": "x"}),)), Turn(ask="you stopped", say="sorry")]
    items = _without_results(DIALECTS[0], write(session, DIALECTS[0]).items, call_id(1, 0))
    mended, _ = _mend(DIALECTS[0], items, scratch)
    assert [item["role"] for item in mended] == ["user", "assistant", "user", "assistant"]
    assert [block["type"] for block in mended[2]["content"]] == ["tool_result", "text"]
    assert mended[:2] == items[:2]


def test_a_missing_result_gets_a_line_that_the_chain_goes_through(scratch: Scratch) -> None:
    session = [Turn(uses=(Use("Bash", {"command": "x"}),)), Turn(ask="you stopped", say="sorry")]
    items = _without_results(DIALECTS[1], write(session, DIALECTS[1]).items, call_id(1, 0))
    items[2]["parentUuid"] = items[1]["uuid"]  # what the person said follows the call, as after a kill
    mended, _ = _mend(DIALECTS[1], items, scratch)
    assert len(mended) == len(items) + 1
    new = mended[2]
    assert new["isSynthetic"] is True
    assert new["message"]["content"][0]["content"] == INTERRUPTED
    assert (new["parentUuid"], mended[3]["parentUuid"]) == (mended[1]["uuid"], new["uuid"])
    assert _chain(mended) == [item["uuid"] for item in reversed(mended)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_transcript_that_ends_in_a_call_gets_its_result_at_the_end(dialect: str, scratch: Scratch) -> None:
    written = write([Turn(ask="go", uses=(Use("Bash", {"command": "x"}, answered=False),))], dialect)
    mended, report = _mend(dialect, written.items, scratch)
    assert mended[: len(written.items)] == written.items
    assert len(mended) == len(written.items) + 1
    assert _problems(dialect, mended) == []
    assert report.actions[0].item == len(written.items) - 1
    assert "outcome of the call is unknown" in report.actions[0].detail


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_waits_for_a_person_stays_open(dialect: str, scratch: Scratch) -> None:
    uses = tuple(Use("Bash", {"command": command}, answered=False) for command in ("rm", "ls"))
    written = write([Turn(ask="go", uses=uses)], dialect)
    mended, report = _mend(dialect, written.items, scratch, plan=waiting_for(call_id(1, 0)))
    assert [result.call_id for result in _results(dialect, mended)] == [call_id(1, 1)]
    (left,) = report.left
    assert (left.call_id, left.action) == (call_id(1, 0), "left")
    assert "approval" in left.detail
    alone = write([Turn(ask="go", uses=uses[:1])], dialect)
    value = checkpoint(dialect, alone.lines, plan=waiting_for(call_id(1, 0)))
    assert repair(value, scratch)[0] is value


def test_what_the_provider_answers_itself_stays_open(scratch: Scratch) -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    items = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}]
    mended, report = _mend("anthropic-messages", items, scratch)
    assert (mended, report) == (items, RepairReport())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_without_its_call_is_dropped(dialect: str, scratch: Scratch) -> None:
    items = write(PARALLEL, dialect).items
    if dialect == "claude-code":
        gone = next(place for place, item in enumerate(items) if call_id(1, 1) in json.dumps(item))
        children = [item for item in items if item.get("parentUuid") == items[gone]["uuid"]]
        for child in children:
            child["parentUuid"] = items[gone]["parentUuid"]
        del items[gone]
    elif dialect == "openai-chat":
        items[2]["tool_calls"] = [call for call in items[2]["tool_calls"] if call["id"] != call_id(1, 1)]
    else:
        items[1]["content"] = [block for block in items[1]["content"] if block.get("id") != call_id(1, 1)]
    mended, report = _mend(dialect, items, scratch)
    assert _codes(report) == [("orphan_result", "dropped")]
    assert [result.call_id for result in _results(dialect, mended)] == [call_id(1, 0), call_id(1, 2)]
    assert _problems(dialect, mended) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_two_results_the_first_stays(dialect: str, scratch: Scratch) -> None:
    items = write(PARALLEL, dialect).items
    if dialect == "claude-code":
        place = next(place for place, item in enumerate(items) if "out 0" in json.dumps(item))
        second = json.loads(json.dumps(items[place]).replace("out 0", "other"))
        items.insert(place + 1, {**second, "uuid": "second", "parentUuid": items[place]["uuid"]})
        items[place + 2]["parentUuid"] = "second"
    elif dialect == "openai-chat":
        items.insert(4, {**items[3], "content": "other"})
    else:
        items[2]["content"].insert(1, {**items[2]["content"][0], "content": "other"})
    mended, report = _mend(dialect, items, scratch)
    assert _codes(report) == [("duplicate_result", "dropped")]
    assert [result.text for result in _results(dialect, mended)] == ["out 0", "out 1", "out 2"]
    assert _problems(dialect, mended) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("failed", [False, True])
def test_a_late_result_moves_behind_its_call(dialect: str, failed: bool, scratch: Scratch) -> None:
    use = Use("Bash", {"command": "x"}, "it went so", failed=failed)
    session = [Turn(ask="a", uses=(use,)), Turn(ask="b", say="hm"), Turn(ask="c", say="well")]
    items = write(session, dialect).items
    if dialect not in BLOCKS:
        items.append(items.pop(3))
    elif dialect == "claude-code":
        items.append(items.pop(2))
    else:
        items[4]["content"].append(items[2]["content"].pop(0))
    assert _problems(dialect, items) == ["misplaced_result"]
    mended, report = _mend(dialect, items, scratch)
    assert _codes(report) == [("misplaced_result", "moved")]
    assert _problems(dialect, mended) == []
    (result,) = _results(dialect, mended)
    assert (result.text, result.is_error) == (output_of(use, dialect), failed)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_empty_texts_and_lone_surrogates_are_mended(dialect: str, scratch: Scratch) -> None:
    items = write([Turn(ask="go", say="a"), Turn(ask="on", say="b"), Turn(ask="up", say="c")], dialect).items
    said = [item for item in items if get_dialect(dialect).facts(item).role == "assistant"]
    messages = [item.get("message", item) for item in said]
    for message, text in zip(messages, "abc", strict=True):
        message["content"] = [{"type": "text", "text": text}]
    content = [message["content"] for message in messages]
    content[0][0]["text"] = " \n"
    content[1].append({"type": "text", "text": ""})
    content[2][0]["text"] = "half \ud83d a pair"
    lines = [json.dumps(item).encode() for item in items]
    after, report = repair(checkpoint(dialect, lines), scratch)
    dropped = ("empty_text", "dropped")
    assert sorted(_codes(report)) == [("bad_text", "mended"), dropped, dropped]
    mended = items_of(after)
    assert _problems(dialect, mended) == []
    facts = [get_dialect(dialect).facts(item) for item in mended]
    assert [one.text for one in facts if one.role == "assistant"] == ["b", "half \ufffd a pair"]
    assert len(mended) == len(items) - 1
    assert repair(after, scratch)[0] is after


def test_a_parent_that_is_lost_is_replaced_by_the_line_before(scratch: Scratch) -> None:
    items = write(PARALLEL, "claude-code").items
    cut = len(items) - 2
    items[0]["parentUuid"] = "never-recorded"
    items[cut]["parentUuid"] = "lost-in-between"
    mended, report = _mend("claude-code", items, scratch)
    assert _codes(report) == [("dangling_parent", "relinked")] * 2
    assert mended[0]["parentUuid"] is None
    assert mended[cut]["parentUuid"] == mended[cut - 1]["uuid"]
    assert _chain(mended)[-1] == items[0]["uuid"]


def test_a_lost_beginning_is_spoken_for(scratch: Scratch) -> None:
    items = write(PARALLEL, "anthropic-messages").items[2:]
    mended, report = _mend("anthropic-messages", items, scratch)
    assert {code for code, _ in _codes(report)} == {"orphan_result"} | (
        {"bad_order"} if mended[0] not in items else set()
    )
    assert _problems("anthropic-messages", mended) == []
    assert mended[0]["role"] == "user"


def test_a_session_that_starts_with_the_assistant_is_spoken_for(scratch: Scratch) -> None:
    items = write(PARALLEL, "claude-code").items[1:]
    mended, report = _mend("claude-code", items, scratch)
    assert sorted(_codes(report)) == [("bad_order", "added"), ("dangling_parent", "relinked")]
    note = mended[0]
    assert (note["message"]["role"], note["parentUuid"]) == ("user", None)
    assert "was not recorded" in note["message"]["content"]
    assert mended[1]["parentUuid"] == note["uuid"]
    assert _chain(mended)[-1] == note["uuid"]


def test_a_lost_parent_is_never_looked_for_in_a_side_conversation(scratch: Scratch) -> None:
    items = write(PARALLEL, "claude-code").items
    side = {**items[0], "uuid": "side", "parentUuid": None, "isSidechain": True, "agentId": "a1"}
    items[-1]["parentUuid"] = "lost"
    mended, _ = _mend("claude-code", [*items[:-1], side, items[-1]], scratch)
    assert mended[-1]["parentUuid"] == items[-2]["uuid"]


def test_a_marker_that_lost_both_its_links_gets_both_back(scratch: Scratch) -> None:
    items = write(PARALLEL, "claude-code").items
    marker = {**items[0], "type": "system", "subtype": "compact_boundary", "uuid": "marker"}
    del marker["message"]
    marker |= {"parentUuid": "lost", "logicalParentUuid": "lost too"}
    mended, report = _mend("claude-code", [*items, marker], scratch)
    assert _codes(report) == [("dangling_parent", "relinked")] * 2
    assert mended[-1]["parentUuid"] == mended[-1]["logicalParentUuid"] == items[-1]["uuid"]


@pytest.mark.parametrize("gone", [0, 1])
def test_side_conversations_that_interleave_are_mended_each(gone: int, scratch: Scratch) -> None:
    items = inline_sidechains()
    dialect = get_dialect("claude-code")
    read = [call.id for item in items for call in dialect.facts(item).calls if call.name == "Read"]
    damaged = _without_results("claude-code", items, read[gone])
    answer = next(item for item in items if read[gone] in json.dumps(item) and item["type"] == "user")
    for item in damaged:
        if item["parentUuid"] == answer["uuid"]:
            item["parentUuid"] = answer["parentUuid"]
    mended, report = _mend("claude-code", damaged, scratch)
    assert [(action.code, action.call_id) for action in report.actions] == [("unanswered_call", read[gone])]
    assert _problems("claude-code", mended) == []


def test_what_is_nested_too_deeply_is_left(scratch: Scratch) -> None:
    deep: Any = "x"
    for _ in range(700):
        deep = {"a": deep}
    call = {"type": "tool_use", "id": "toolu_1", "name": "odd", "input": deep}
    lines = [b'{"role":"user","content":"go"}', json.dumps({"role": "assistant", "content": [call]}).encode()]
    after, report = repair(checkpoint("anthropic-messages", lines), scratch)
    assert _codes(report) == [("unanswered_call", "answered")]
    assert lines_of(after)[:2] == lines
    assert [left.code for left in report.left] == ["bad_text"]


def test_what_cannot_be_mended_is_left_and_said(scratch: Scratch) -> None:
    items = write(PARALLEL, "anthropic-messages").items
    items[1]["content"][1]["id"] = call_id(1, 0)
    items.append({"role": "system", "content": "x"})
    mended, report = _mend("anthropic-messages", items, scratch)
    assert {left.code for left in report.left} == {"duplicate_call", "bad_role"}
    assert mended[-1] == items[-1]


def test_parts_are_mended_each_and_named(scratch: Scratch) -> None:
    good = write(PARALLEL, "claude-code")
    bad = write([Turn(ask="go", uses=(Use("Bash", {"command": "x"}, answered=False),))], "claude-code")
    parts = tuple(
        TranscriptPart(name=name, items=Items.of_lines(written.lines), segments=("transcript/0001.jsonl",))
        for name, written in (("main", good), ("agent", bad))
    )
    value = checkpoint("claude-code", [])
    value = value.model_copy(update={"transcript": Transcript(dialect="claude-code", parts=parts)})
    after, report = repair(value, scratch)
    assert [action.part for action in report.actions] == ["agent"]
    assert after.transcript.parts[0] is parts[0]
    assert after.transcript.parts[1].segments == ()
    assert value.transcript.parts == parts


@pytest.mark.parametrize("media", ["jsonl", "raw"])
def test_opaque_parts_are_never_touched(media: str, scratch: Scratch) -> None:
    items = Items.of_chunks([b'{"role":"us', b'er"}\xff']) if media == "raw" else Items.of([{"role": "x"}])
    part = TranscriptPart(name="p", media=media, items=items)  # type: ignore[arg-type]  # a word of the two
    value = checkpoint("opaque", []).model_copy(update={"transcript": Transcript(parts=(part,))})
    assert repair(value, scratch)[0] is value


def _answered(dialect: str, items: list[Any]) -> set[str]:
    """Ids of calls that have a result somewhere behind them."""
    called: set[str] = set()
    found: set[str] = set()
    for item in items:
        facts = get_dialect(dialect).facts(item)
        called |= {call.id for call in facts.calls}
        found |= {result.call_id for result in facts.results} & called
    return found


def _damage(dialect: str, items: list[Any], data: st.DataObject) -> list[Any]:
    """One way in which a session is damaged."""
    if not items:
        return items
    place = data.draw(st.integers(0, len(items) - 1), label="place")
    kind = data.draw(st.sampled_from(("cut", "head", "drop", "twice", "late", "result")), label="kind")
    if kind == "cut":
        return items[: place + 1]
    if kind == "head":
        return items[place:]
    if kind == "drop":
        return [*items[:place], *items[place + 1 :]] if len(items) > 1 else items
    results = [
        (index, result.call_id)
        for index, item in enumerate(items)
        for result in get_dialect(dialect).facts(item).results
    ]
    if not results:
        return items
    index, which = data.draw(st.sampled_from(results), label="result")
    if kind == "result":
        return _without_results(dialect, items, which)
    copies = [*items[: index + 1], items[index], *items[index + 1 :]]
    return copies if kind == "twice" else [*items[:index], *items[index + 1 :], items[index]]


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(session=sessions, data=st.data())
def test_any_damage_is_mended(dialect: str, session: list[Turn], data: st.DataObject) -> None:
    whole = write(session, dialect).items
    items = whole
    for _ in range(data.draw(st.integers(1, 3), label="damages")):
        items = _damage(dialect, items, data)
    with Scratch() as scratch:
        mended, report = _mend(dialect, items, scratch)
        assert set(_problems(dialect, mended)) <= LEFT
        assert {left.code for left in report.left} <= LEFT
        held = {result.text for result in _results(dialect, whole)}
        assert {result.text for result in _results(dialect, mended)} <= held | {INTERRUPTED}
        invented = {r.call_id for r in _results(dialect, mended) if r.text == INTERRUPTED}
        assert not invented & _answered(dialect, items)
        if dialect == "claude-code" and any("uuid" in item for item in mended):
            _chain(mended)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(session=sessions)
def test_whatever_is_valid_is_untouched(dialect: str, session: list[Turn]) -> None:
    value = checkpoint(dialect, write(session, dialect).lines)
    with Scratch() as scratch:
        assert repair(value, scratch)[0] is value


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no transcripts at {SHARED}: set ARCHIVER_SHARED")
@pytest.mark.parametrize(
    "path", sorted((SHARED / "claude_code").rglob("*.jsonl")), ids=lambda path: path.name
)
def test_real_claude_code_sessions(path: Path, scratch: Scratch) -> None:
    items = []
    for line in path.read_bytes().split(b"\n"):
        try:
            items.append(jsonio.loads(line))
        except ValueError:
            continue
    before = _problems("claude-code", items)
    mended, report = _mend("claude-code", items, scratch)
    assert set(_problems("claude-code", mended)) <= {"bad_text"}
    assert bool(report.actions) == bool([code for code in before if code != "bad_text"])


@pytest.mark.parametrize("broken", [{}, [], 7, None, ""])
def test_a_result_whose_id_is_no_id_goes(scratch: Scratch, broken: Any) -> None:
    use, result = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}, {"type": "tool_result"}
    lost = {**result, "tool_use_id": broken, "content": "nobody asked"}
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [lost, {"type": "text", "text": "more"}]},
    ]
    mended, report = _mend("anthropic-messages", items, scratch)
    assert [result.call_id for result in _results("anthropic-messages", mended)] == ["toolu_1"]
    assert sorted(_codes(report)) == [("orphan_result", "dropped"), ("unanswered_call", "answered")]
    assert _problems("anthropic-messages", mended) == []


def _late(content: Any, *calls: str) -> list[Any]:
    said = [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in calls]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": said[:1]},
        {"role": "user", "content": "an instruction between"},
        {"role": "assistant", "content": said[1:] or "well"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]},
    ]


def test_a_moved_result_keeps_its_images(scratch: Scratch) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    picture = [{"type": "text", "text": "seen"}, {"type": "image", "source": source}]
    mended, report = _mend("anthropic-messages", _late(picture, "toolu_1"), scratch)
    assert _codes(report) == [("misplaced_result", "moved")]
    assert mended[2]["content"][0]["content"] == picture


def test_a_late_result_of_two_calls_with_one_id_is_left(scratch: Scratch) -> None:
    items = _late("out", "toolu_1", "toolu_1")
    mended, report = _mend("anthropic-messages", items, scratch)
    assert mended == items
    assert {left.code for left in report.left} == {"duplicate_call", "misplaced_result"}
    assert all("two calls share one id" in left.detail for left in report.left)


def test_a_late_result_goes_behind_the_first_of_two_equal_lines(scratch: Scratch) -> None:
    lines: list[Any] = []
    for name, message in zip("abcde", _late("out", "toolu_1", "toolu_1"), strict=True):
        parent = lines[-1]["uuid"] if lines else None
        lines.append({"type": message["role"], "uuid": name, "parentUuid": parent, "message": message})
    lines[3]["uuid"], lines[4]["parentUuid"] = "b", "b"
    mended, _ = _mend("claude-code", lines, scratch)
    assert _problems("claude-code", mended) == []
