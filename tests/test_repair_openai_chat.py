"""Repair and compaction of Chat Completions: results next to calls, and many conversations in one file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from compact.sessions import Turn, Use, call_id, checkpoint, items_of, redacted, sessions, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts.samples_openai_chat import accepted, chat_messages, chat_trajectories

from archiver.compact import CompactOptions, compact, read_stub
from archiver.repair import INTERRUPTED, RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect

CHAT = "openai-chat"
DIALECT = get_dialect(CHAT)
ONE = CompactOptions(keep_turns=1, small_result=20)
LONG = "a line of output\n" * 60


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


def mend(items: list[Any], scratch: Scratch) -> tuple[list[Any], RepairReport]:
    before = checkpoint(CHAT, [json.dumps(item).encode() for item in items])
    after, report = repair(before, scratch)
    assert repair(after, scratch)[0] is after
    return items_of(after), report


def conversations(items: list[Any]) -> list[list[Any]]:
    """The messages of each conversation of a file."""
    found: list[list[Any]] = []
    for item in items:
        if isinstance(item, list):
            found.append([])
        else:
            found[-1].append(item)
    return found


def stream(runs: list[list[Any]]) -> list[Any]:
    return [item for number, run in enumerate(runs) for item in ([{"run": number, "traj": []}], *run)]


def bash(*outputs: str) -> Turn:
    return Turn(uses=tuple(Use("bash", {"command": f"run {n}"}, out) for n, out in enumerate(outputs)))


def kinds(items: list[Any]) -> list[str]:
    return [item.get("tool_call_id") or item["role"] for item in items]


def test_missing_results_stand_behind_those_that_are_there(scratch: Scratch) -> None:
    items = write([bash("a", "b", "c"), Turn(ask="why?", say="hm")], CHAT).items
    del items[5], items[3]
    mended, report = mend(items, scratch)
    ids = [call_id(1, number) for number in range(3)]
    assert kinds(mended) == ["system", "user", "assistant", ids[1], ids[0], ids[2], "user", "assistant"]
    assert {action.call_id for action in report.actions} == {ids[0], ids[2]}
    assert [item["content"] for item in mended[4:6]] == [INTERRUPTED] * 2


def test_a_message_between_call_and_result_goes_behind_it(scratch: Scratch) -> None:
    between = {"role": "user", "content": "stop"}
    items = write([bash("a", "b"), Turn(say="hm")], CHAT).items
    items[3] |= {"name": "bash", "cache_control": {"type": "ephemeral"}}
    moved = [*items[:3], between, items[3], {"role": "assistant", "content": "wait"}, *items[4:]]
    mended, report = mend(moved, scratch)
    assert mended[:5] == items[:5]
    assert mended[5] == between
    assert {action.action for action in report.actions} == {"moved"}


def test_a_result_ahead_of_its_call_goes_behind_it(scratch: Scratch) -> None:
    items = write([bash("a"), Turn(say="hm")], CHAT).items
    mended, _ = mend([*items[:2], items[3], items[2], *items[4:]], scratch)
    assert mended == items


def test_two_responses_in_a_row_are_answered_each(scratch: Scratch) -> None:
    items = write([bash("a"), bash("b"), Turn(say="hm")], CHAT).items
    mended, _ = mend([item for item in items if item["role"] != "tool"], scratch)
    assert kinds(mended) == [
        *("system", "user", "assistant", call_id(1, 0), "assistant", call_id(2, 0), "assistant")
    ]


def test_a_line_of_the_harness_without_content_goes(scratch: Scratch) -> None:
    items = [*chat_messages(1), {"role": "session_meta"}]
    mended, report = mend(items, scratch)
    assert mended == items[:-1]
    assert [(action.code, action.action) for action in report.actions] == [("bad_role", "mended")]


def test_what_a_harness_said_in_a_role_of_its_own_goes_and_is_told(scratch: Scratch) -> None:
    items = [*chat_messages(1), {"role": "exit", "content": "Submitted"}]
    mended, report = mend(items, scratch)
    assert mended == items[:-1]
    assert [(action.code, action.item) for action in report.actions] == [("bad_role", len(items) - 1)]


@pytest.mark.parametrize("role", ["exit", "approval"])
def test_a_call_that_ends_a_run_by_design_stays_open(role: str, scratch: Scratch) -> None:
    items = write([bash("a"), bash("b")], CHAT).items[:-1]
    ended = [*items, {"role": role, "content": "Submitted"}]
    mended, report = mend(ended, scratch)
    assert mended == ended
    assert [(left.code, left.item) for left in report.left] == [("bad_role", len(items))]
    went_on = [*ended, {"role": "user", "content": "go on"}]
    mended, report = mend(went_on, scratch)
    assert {action.code for action in report.actions} == {"bad_role", "unanswered_call"}
    assert [item["role"] for item in mended[-3:]] == ["assistant", "tool", "user"]


def test_results_are_never_moved_to_another_conversation(scratch: Scratch) -> None:
    items = stream([run["traj"] for run in chat_trajectories(3)])
    places = [
        place for place, item in enumerate(items) if not isinstance(item, list) and item["role"] == "tool"
    ]
    same = [place for place in places if items[place]["tool_call_id"] == items[places[0]]["tool_call_id"]]
    assert len(same) == 3
    late = [*items[: same[1]], *items[same[1] + 1 : same[1] + 4], items[same[1]], *items[same[1] + 4 :]]
    mended, report = mend(late, scratch)
    assert [action.action for action in report.actions] == ["moved"]
    assert Counter(map(json.dumps, mended)) == Counter(map(json.dumps, items))
    assert all(map(accepted, conversations(mended)))
    lost, report = mend(items[: same[1]] + items[same[1] + 1 :], scratch)
    assert [action.action for action in report.actions] == ["answered"]
    assert [len(run) for run in conversations(lost)] == [len(run) for run in conversations(items)]


def test_turns_and_stubs_count_for_each_conversation(scratch: Scratch) -> None:
    read = Use("read", {"path": "/a"}, LONG)
    run = write([Turn(ask="go", uses=(read,)), Turn(say="done")], CHAT).items
    items = stream([run, run])
    lines = [json.dumps(item).encode() for item in items]
    made = items_of(compact(redacted(checkpoint(CHAT, lines)), None, ONE, scratch).checkpoint.value)
    results = [result for item in made for result in DIALECT.facts(item).results]
    stubs = [read_stub(result.text) for result in results]
    # The other conversation reads the same file; nobody knows that it is the same one.
    assert [stub and stub.reason for stub in stubs] == ["older", "older"]
    two = write([Turn(ask="go", uses=(read,)), Turn(uses=(read,)), Turn(say="done")], CHAT).items
    lines = [json.dumps(item).encode() for item in stream([two, run])]
    made = items_of(compact(redacted(checkpoint(CHAT, lines)), None, ONE, scratch).checkpoint.value)
    stubs = [read_stub(result.text) for item in made for result in DIALECT.facts(item).results]
    assert [stub and stub.reason for stub in stubs] == ["superseded", "older", "older"]


def test_the_last_turns_of_each_conversation_stay_whole(scratch: Scratch) -> None:
    run = write([Turn(ask="go", uses=(Use("read", {"path": "/a"}, LONG),))], CHAT).items
    lines = [json.dumps(item).encode() for item in stream([run, run, run])]
    made = compact(redacted(checkpoint(CHAT, lines)), None, ONE, scratch)
    assert not made.report.stubs
    assert items_of(made.checkpoint.value) == stream([run, run, run])


def test_an_open_call_is_answered_ahead_of_the_next_conversation(scratch: Scratch) -> None:
    run = write([bash("a"), Turn(say="x")], CHAT).items
    died, headless = run[:3], run[3:]
    mended, _ = mend(stream([died, headless]), scratch)
    first, second = conversations(mended)
    assert kinds(first) == ["system", "user", "assistant", call_id(1, 0)]
    assert kinds(second) == ["assistant"]


def test_reasoning_stays_with_calls_and_goes_elsewhere(scratch: Scratch) -> None:
    items = chat_messages(4)
    lines = [json.dumps(item).encode() for item in items]
    made = items_of(compact(redacted(checkpoint(CHAT, lines)), None, ONE, scratch).checkpoint.value)
    held = ["reasoning_content" in item for item in made if item["role"] == "assistant"]
    assert held == [True, False, True, False, True, False, True, True]
    called = [item for item in items if "tool_calls" in item]
    assert [item for item in made if "tool_calls" in item] == called


def test_a_synthetic_result_is_no_success_to_compaction(scratch: Scratch) -> None:
    use = Use("write", {"path": "/w/x.py", "content": "x"}, LONG, answered=False)
    mended, _ = mend(write([Turn(uses=(use,)), Turn(say="hm"), Turn(say="so")], CHAT).items, scratch)
    lines = [json.dumps(item).encode() for item in mended]
    compacted = compact(redacted(checkpoint(CHAT, lines)), None, ONE, scratch).checkpoint.value
    (result,) = [result for item in items_of(compacted) for result in DIALECT.facts(item).results]
    stub = read_stub(result.text)
    assert stub is None or stub.conclusion.status == "error"
    assert result.is_error
    assert "/w/x.py" not in compacted.summary


runs = st.lists(sessions.map(lambda session: write(session, CHAT).items), min_size=1, max_size=3)
quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(runs=runs, turns=st.integers(1, 3))
def test_any_file_of_conversations_is_valid_when_compacted(runs: list[list[Any]], turns: int) -> None:
    items = stream(runs)
    lines = [json.dumps(item).encode() for item in items]
    options = CompactOptions(keep_turns=turns, small_result=20, blob_limit=64)
    with Scratch() as scratch:
        made = items_of(compact(redacted(checkpoint(CHAT, lines)), None, options, scratch).checkpoint.value)
    assert [item for item in made if isinstance(item, list)] == [
        item for item in items if isinstance(item, list)
    ]
    assert DIALECT.problems(iter(made)) == []
    for before, after in zip(conversations(items), conversations(made), strict=True):
        assert accepted(after)
        assert kinds(after) == kinds(before)
        assert [item.get("tool_calls") for item in after] == [item.get("tool_calls") for item in before]
        assert [item["content"] for item in after if item["role"] in ("system", "user")] == [
            item["content"] for item in before if item["role"] in ("system", "user")
        ]


@quick
@given(runs=runs, data=st.data())
def test_any_damage_to_a_file_of_conversations_is_mended(runs: list[list[Any]], data: st.DataObject) -> None:
    whole = stream(runs)
    items = list(whole)
    for _ in range(data.draw(st.integers(1, 4), label="damages")):
        places = [place for place, item in enumerate(items) if not isinstance(item, list)]
        if not places:
            return
        item = items[data.draw(st.sampled_from(places), label="which")]
        kind = data.draw(st.sampled_from(("drop", "twice", "move", "empty")), label="kind")
        if kind == "empty":
            items[items.index(item)] = {"role": item["role"], "content": []}
            continue
        if kind != "twice":
            items.remove(item)
        if kind != "drop":
            items.insert(data.draw(st.integers(1, len(items)), label="where"), item)
    with Scratch() as scratch:
        mended, report = mend(items, scratch)
    assert report.left == ()
    assert DIALECT.problems(iter(mended)) == []
    assert all(map(accepted, conversations(mended)))
    known = Counter(json.dumps(item) for item in items)
    new = [item for item in mended if not known[json.dumps(item)]]
    assert all(item["content"] in (INTERRUPTED, "") and item["role"] == "tool" for item in new)
    for before, after in zip(conversations(items), conversations(mended), strict=True):
        if accepted(before) and all(item["content"] != [] for item in before):
            assert after == before
