"""Every way to be invalid that conversations with OpenAI can have: found, mended, and nothing else touched.

Numbers are those of the list of ways in which a restored session is invalid. Each is made in every form in
which a file may hold such a conversation, read from that file, mended twice, and written again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.repair import INTERRUPTED, RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.native import write_native
from archiver.transcripts.openai_limits import MOST_BYTES, MOST_PICTURES
from archiver.transcripts.reader import read

from .samples import START
from .samples_codex import Rollout
from .samples_responses import ItemWriter

CHAT, RESPONSES, CODEX = "openai-chat", "openai-responses", "codex"
DOT = "data:image/png;base64,iVBORw0KGgo="
HALF = "half \ud83d a pair"
Items_ = list[dict[str, Any]]
Damage = Callable[[Items_], Items_]


class Way(NamedTuple):
    """One way to be invalid: its number, a name, what does it, and the codes that it has to be found by."""

    number: int
    name: str
    damage: Damage
    codes: tuple[str, ...]
    left: tuple[str, ...] = ()
    """Codes of what nothing can mend."""


# Chat Completions: [prompt, question, calls a and b, result of a, result of b, answer, question, answer]


def chat() -> Items_:
    return [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "content": None, "tool_calls": [chat_call("a", "ls"), chat_call("b", "pwd")]},
        {"role": "tool", "tool_call_id": "a", "content": "x.py"},
        {"role": "tool", "tool_call_id": "b", "content": "/w"},
        {"role": "assistant", "content": "One file.", "reasoning_content": "hm"},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
        {"role": "assistant", "content": "Welcome."},
    ]


def chat_call(own: str, command: str) -> dict[str, Any]:
    called = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": own, "type": "function", "function": called}


def without(*places: int) -> Damage:
    return lambda items: [item for place, item in enumerate(items) if place not in places]


def with_item(place: int, item: Any) -> Damage:
    return lambda items: [*items[:place], item, *items[place:]]


def twice(place: int) -> Damage:
    return lambda items: [*items[: place + 1], *items[place:]]


def moved(place: int, to: int) -> Damage:
    def damage(items: Items_) -> Items_:
        rest = [*items[:place], *items[place + 1 :]]
        return [*rest[:to], *items[place : place + 1], *rest[to:]]

    return damage


def changed(place: int, **fields: Any) -> Damage:
    return lambda items: [{**item, **fields} if here == place else item for here, item in enumerate(items)]


def both(*damages: Damage) -> Damage:
    def damage(items: Items_) -> Items_:
        for one in damages:
            items = one(items)
        return items

    return damage


def chat_pictures(items: Items_) -> Items_:
    shown = [{"type": "image_url", "image_url": {"url": DOT}}] * (MOST_PICTURES + 2)
    return changed(6, content=[{"type": "text", "text": "See."}, *shown])(items)


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "REDACTED"}
TOOL = {"role": "tool", "tool_call_id": "a", "content": "x.py"}
NO_CALL = {"role": "tool", "tool_call_id": "zz", "content": "?"}

CHAT_WAYS = (
    Way(1, "no result", without(3, 4, 5, 6, 7), ("unanswered_call", "unanswered_call")),
    Way(2, "result of no call", with_item(5, NO_CALL), ("orphan_result",)),
    Way(3, "second result", with_item(5, TOOL | {"content": "y"}), ("duplicate_result",)),
    Way(
        4,
        "two calls, one id",
        both(
            changed(2, tool_calls=[chat_call("a", "ls"), chat_call("a", "pwd")]), changed(4, tool_call_id="a")
        ),
        ("duplicate_call",),
    ),
    Way(
        4,
        "one call twice",
        changed(2, tool_calls=[chat_call(own, own) for own in "aab"]),
        ("duplicate_call",),
    ),
    Way(4, "one message twice", twice(2), ("duplicate_call", "duplicate_call")),
    Way(
        4,
        "whose result",
        both(changed(2, tool_calls=[chat_call("a", "ls"), chat_call("a", "pwd")]), without(4)),
        ("duplicate_call",),
        ("duplicate_call",),
    ),
    Way(5, "partly answered", without(4), ("unanswered_call",)),
    Way(6, "late result", moved(4, 6), ("misplaced_result",)),
    Way(6, "early result", moved(3, 2), ("misplaced_result",)),
    Way(7, "empty", changed(7, content=""), ("empty_text",)),
    Way(7, "white space", changed(7, content=" \n"), ("empty_text",)),
    Way(7, "no parts", changed(6, content=[]), ("empty_text",)),
    Way(
        7,
        "empty part",
        changed(6, content=[{"type": "text", "text": "x"}, {"type": "text", "text": " "}]),
        ("empty_text",),
    ),
    Way(7, "null", changed(7, content=None), ("empty_text",)),
    Way(7, "empty result", changed(3, content=[]), ("empty_text",)),
    Way(9, "destroyed signature", changed(5, thinking_blocks=[SIGNED]), ("broken_seal",)),
    Way(
        9,
        "destroyed signature of a call",
        changed(5, provider_specific_fields={"thought_signatures": ["REDACTED"]}),
        ("broken_seal",),
        ("broken_seal",),
    ),
    Way(10, "nothing but reasoning", changed(7, content=None, reasoning_content="hm"), ("empty_text",)),
    Way(11, "half a character", changed(7, content=HALF), ("bad_text",)),
    Way(12, "too many pictures", chat_pictures, ("too_large", "too_large")),
    Way(15, "exit", with_item(8, {"role": "exit", "content": "Submitted"}), ("bad_role",)),
    Way(15, "info", with_item(6, {"role": "info", "content": "saved"}), ("bad_role",)),
    Way(15, "model", changed(7, role="model"), ("bad_role",)),
    Way(
        16,
        "name",
        changed(2, tool_calls=[chat_call("a", "ls"), chat_call("b", "ls") | {"function": {"name": "a.b"}}]),
        ("bad_name",),
    ),
    Way(
        16,
        "NUL in a name",
        changed(
            2, tool_calls=[chat_call("a", "ls"), chat_call("b", "ls") | {"function": {"name": "ba\0sh"}}]
        ),
        ("bad_name",),
    ),
)

# Responses: [prompt, question, reasoning, call, patch, result, result of the patch, reasoning, answer,
# question, answer]

ONE, PATCH = "call_1", "call_2"
WRITE = ItemWriter(7)
BASE = [
    WRITE.developer("You are careful."),
    WRITE.user("What is here?"),
    WRITE.reasoning("hm"),
    WRITE.call("exec_command", {"cmd": "ls"}) | {"call_id": ONE},
    WRITE.patch("/w/x.py") | {"call_id": PATCH},
    {"type": "function_call_output", "call_id": ONE, "output": "x.py"},
    {"type": "custom_tool_call_output", "call_id": PATCH, "output": "ok"},
    WRITE.reasoning(),
    WRITE.say("One file."),
    WRITE.user("Thanks."),
    WRITE.say("Welcome."),
]
RESULT = BASE[5]
OTHER = WRITE.call("exec_command", {"cmd": "pwd"}) | {"call_id": ONE}


def responses() -> Items_:
    return json.loads(json.dumps(BASE))  # type: ignore[no-any-return]  # what was a list is one again


def responses_pictures(items: Items_) -> Items_:
    shown = [{"type": "input_image", "image_url": DOT}] * (MOST_PICTURES + 2)
    return changed(9, content=[{"type": "input_text", "text": "See."}, *shown])(items)


def said(text: Any) -> dict[str, Any]:
    return {"content": [{"type": "output_text", "text": text, "annotations": []}]}


RESPONSES_WAYS = (
    Way(1, "no result", without(5, 6, 7, 8, 9, 10), ("unanswered_call", "unanswered_call")),
    Way(2, "result of no call", without(3), ("orphan_result",)),
    Way(3, "second result", with_item(7, RESULT | {"output": "y"}), ("duplicate_result",)),
    Way(
        4,
        "two calls, one id",
        both(with_item(6, OTHER), with_item(7, RESULT | {"output": "/w"})),
        ("duplicate_call",),
    ),
    Way(
        4,
        "two calls at once, one id",
        both(with_item(4, OTHER), with_item(7, RESULT | {"output": "/w"})),
        ("duplicate_call",),
    ),
    Way(4, "second call without a result", with_item(7, OTHER), ("duplicate_call",)),
    Way(4, "one call twice", twice(3), ("duplicate_call",)),
    Way(4, "whose result", with_item(4, OTHER), ("duplicate_call",), ("duplicate_call",)),
    Way(4, "one answer twice", twice(8), ("duplicate_id",)),
    Way(4, "two answers, one id", with_item(9, BASE[8] | said("Two files.")), ("duplicate_id",)),
    Way(5, "partly answered", without(6), ("unanswered_call",)),
    Way(6, "early result", moved(5, 3), ("misplaced_result",)),
    Way(6, "result of another kind", changed(5, type="custom_tool_call_output"), ("misplaced_result",)),
    Way(7, "empty", changed(10, **said("")), ("empty_text",)),
    Way(7, "white space", changed(9, content=" \n"), ("empty_text",)),
    Way(7, "no parts", changed(9, content=[]), ("empty_text",)),
    Way(
        7,
        "empty part",
        changed(9, content=[{"type": "input_text", "text": "x"}, {"type": "input_text", "text": ""}]),
        ("empty_text",),
    ),
    Way(8, "reasoning twice", twice(7), ("duplicate_id",)),
    Way(9, "destroyed seal", changed(7, encrypted_content="REDACTED"), ("broken_seal",)),
    Way(10, "reasoning alone", without(8), ("lone_reasoning",)),
    Way(11, "half a character", changed(10, **said(HALF)), ("bad_text",)),
    Way(12, "too many pictures", responses_pictures, ("too_large", "too_large")),
    Way(
        15,
        "exit",
        with_item(11, {"type": "message", "role": "exit", "content": "Submitted"}),
        ("bad_role",),
    ),
    Way(15, "human", changed(9, role="human"), ("bad_role",)),
    Way(16, "name", changed(3, name="a.b"), ("bad_name",)),
    Way(16, "NUL in a name", changed(3, name="exec\0_command"), ("bad_name",)),
)


def without_id(items: Items_) -> Items_:
    kept = {"id": None, "status": None}
    return [
        {key: value for key, value in item.items() if key not in kept} if place == 8 else item
        for place, item in enumerate(items)
    ]


BY_ID = Way(
    10, "answer without its id", both(changed(7, encrypted_content=None), without_id), ("lone_reasoning",)
)
FOREIGN = Way(
    9,
    "reasoning of another provider",
    changed(7, content=[{"type": "reasoning_text", "text": "hm"}]),
    ("foreign_reasoning",),
)

# Forms: how a file holds the items, and its name.


def as_list(items: Items_) -> bytes:
    return json.dumps(items, indent=1).encode()


def as_lines(items: Items_, end: str = "\n") -> bytes:
    return "".join(json.dumps(item) + end for item in items).encode()


def chat_body(items: Items_) -> bytes:
    return json.dumps({"model": "gpt-sample-1", "messages": items, "temperature": 0.0}).encode()


def chat_log(items: Items_) -> bytes:
    called = {"role": "assistant", "content": None, "tool_calls": [chat_call("z", "date")]}
    response = {"object": "chat.completion", "choices": [{"index": 0, "message": called}]}
    return json.dumps({"messages": items, "response": response}, indent=2).encode()


def chat_nested(items: Items_) -> bytes:
    runs = [{"task": 1, "traj": chat()}, {"task": 2, "traj": items}, {"task": 3, "traj": chat()}]
    return as_lines(runs)


def responses_body(items: Items_) -> bytes:
    return json.dumps({"model": "gpt-sample-5", "input": items, "store": False}).encode()


def responses_nested(items: Items_) -> bytes:
    return as_lines([{"request": {"model": "m", "input": one}} for one in (responses(), items, responses())])


def enveloped(items: Items_, *, ordinals: bool = False, end: str = "\n") -> bytes:
    write = Rollout(3, ordinals=ordinals)
    lines = [write.meta(), write.context()]
    for item in items:
        lines += [write.item(item), write.tokens()]
    return as_lines(lines, end)


def flat(items: Items_) -> bytes:
    write = Rollout(3)
    head = {"id": write.session, "timestamp": write.now(), "instructions": None, "git": None}
    return as_lines([head, *(line for item in items for line in (item, {"record_type": "state"}))], "\r\n")


def kept_by_compaction(items: Items_) -> bytes:
    write = Rollout(3)
    payload = {"message": "", "replacement_history": items}
    return as_lines([write.meta(), write.line("compacted", payload), write.event("context_compacted")])


FORMS: dict[str, tuple[str, str, Callable[[Items_], bytes]]] = {
    "chat list": (CHAT, "a.json", as_list),
    "chat body": (CHAT, "a.json", chat_body),
    "chat lines": (CHAT, "a.jsonl", as_lines),
    "chat log": (CHAT, "a.json", chat_log),
    "chat nested": (CHAT, "a.jsonl", chat_nested),
    "responses list": (RESPONSES, "a.json", as_list),
    "responses body": (RESPONSES, "a.json", responses_body),
    "responses lines": (RESPONSES, "a.jsonl", as_lines),
    "responses nested": (RESPONSES, "a.jsonl", responses_nested),
    "codex": (CODEX, "rollout.jsonl", enveloped),
    "codex numbered": (CODEX, "rollout.jsonl", lambda items: enveloped(items, ordinals=True)),
    "codex CRLF": (CODEX, "rollout.jsonl", lambda items: enveloped(items, end="\r\n")),
    "codex flat": (CODEX, "rollout.jsonl", flat),
}
WAYS = {
    CHAT: CHAT_WAYS,
    RESPONSES: (*RESPONSES_WAYS, BY_ID),
    CODEX: (*RESPONSES_WAYS, FOREIGN),
}
CASES = [
    pytest.param(form, way, id=f"{form}: {way.number} {way.name}")
    for form, (dialect, _, _) in FORMS.items()
    for way in WAYS[dialect]
    if (form, way) != ("codex flat", FOREIGN)  # a flat file does not say whose its reasoning is
]


def made(form: str, items: Items_) -> bytes:
    return FORMS[form][2](items)


def base_of(form: str) -> Items_:
    return chat() if FORMS[form][0] == CHAT else responses()


def checkpoint(path: Path, dialect: str) -> Checkpoint:
    transcript = read([path]).transcript
    assert transcript.dialect == dialect
    return Checkpoint(
        run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
    )


def mend(value: Checkpoint) -> tuple[list[Any], list[bytes], RepairReport, bytes]:
    """What a repair makes of it: values, lines, report and file; a second one changes nothing."""
    with Scratch() as scratch:
        after, report = repair(value, scratch)
        again, second = repair(after, scratch)
        assert again is after
        assert second.actions == ()
        assert (after is value) == (report.actions == ())
        part = after.transcript.parts[0]
        pieces: list[bytes] = []
        write_native(part, pieces.append)
        return list(part.items.values()), list(part.items.lines()), report, b"".join(pieces)


def codes(dialect: str, items: list[Any]) -> list[str]:
    return [problem.code for problem in get_dialect(dialect).problems(iter(items))]


@pytest.mark.parametrize("form", FORMS)
def test_a_sound_conversation_is_not_touched(form: str, tmp_path: Path) -> None:
    dialect, name, _ = FORMS[form]
    path = tmp_path / name
    path.write_bytes(made(form, base_of(form)))
    value = checkpoint(path, dialect)
    assert codes(dialect, list(value.transcript.parts[0].items.values())) == []
    assert mend(value)[2] == RepairReport()


@pytest.mark.parametrize(("form", "way"), CASES)
def test_each_way_is_found_and_mended(form: str, way: Way, tmp_path: Path) -> None:
    dialect, name, _ = FORMS[form]
    path = tmp_path / name
    original = made(form, way.damage(base_of(form)))
    path.write_bytes(original)
    value = checkpoint(path, dialect)
    before = list(value.transcript.parts[0].items.lines())
    found = get_dialect(dialect).problems(value.transcript.parts[0].items.values())
    assert sorted(problem.code for problem in found) == sorted(way.codes)
    mended, lines, report, file = mend(value)
    assert path.read_bytes() == original
    assert sorted(codes(dialect, mended)) == sorted(way.left)
    assert sorted(action.code for action in report.left) == sorted(way.left)
    assert set(way.codes) <= {action.code for action in (*report.actions, *report.left)}
    touched = {problem.item for problem in found} | {action.item for action in report.actions}
    touched |= {item for problem in found for item, _ in problem.answers}
    _keeps([line for index, line in enumerate(before) if index not in touched], lines, "numbered" in form)
    again = tmp_path / f"again-{name}"
    again.write_bytes(file)
    assert list(checkpoint(again, dialect).transcript.parts[0].items.values()) == mended


def _keeps(kept: list[bytes], lines: list[bytes], numbered: bool) -> None:
    """The lines that nothing was wrong with are there, byte for byte and in their order."""
    if numbered:  # those behind a new line have other numbers
        kept, lines = list(map(_unnumbered, kept)), list(map(_unnumbered, lines))
    rest = iter(lines)
    missing = [line for line in kept if line not in rest]
    assert missing == []


def _unnumbered(line: bytes) -> bytes:
    value = json.loads(line)
    value.pop("ordinal", None)
    return json.dumps(value).encode()


def test_every_way_that_can_occur_is_made() -> None:
    cannot = {
        CHAT: {8, 13, 14, 17, 18},  # 13 is a matter of files, see below; the others cannot occur
        RESPONSES: {13, 14, 17, 18},
        CODEX: {13, 14, 17, 18},  # 14, 17 and 18 are those of the file, see below
    }
    for dialect, ways in WAYS.items():
        assert {way.number for way in ways} == set(range(1, 19)) - cannot[dialect]


def test_any_order_of_roles_is_taken() -> None:
    assert codes(CHAT, chat()[5:]) == []
    assert codes(CHAT, [chat()[7], chat()[0], chat()[7], chat()[1], chat()[1]]) == []
    assert codes(RESPONSES, BASE[8:]) == []
    assert codes(RESPONSES, [BASE[10], BASE[8], BASE[0]]) == []


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    for form in ("chat lines", "responses lines", "codex", "codex flat"):
        dialect, name, _ = FORMS[form]
        path = tmp_path / name
        whole = made(form, base_of(form))
        path.write_bytes(whole + b'{"timestamp":"2026-01-31T14:00:00Z","type":"respo')
        reading = read([path])
        assert codes(dialect, list(reading.transcript.parts[0].items.values())) == []
        assert [dropped.place for dropped in reading.dropped] == ["tail"]


def test_two_calls_with_one_id_keep_their_results() -> None:
    items = both(with_item(6, OTHER), with_item(7, RESULT | {"output": "/w"}))(responses())
    mended, report = _mend_items(RESPONSES, items)
    assert mended[:6] == items[:6]
    assert mended[8:] == items[8:]
    assert [item["call_id"] for item in mended[5:8]] == [ONE, f"{ONE}_2", f"{ONE}_2"]
    assert mended[6] == OTHER | {"call_id": f"{ONE}_2"}
    assert [action.action for action in report.actions] == ["renamed"]
    doubled = chat()
    doubled[2]["tool_calls"][1]["id"] = doubled[4]["tool_call_id"] = "a"
    mended, _ = _mend_items(CHAT, doubled)
    assert [call["id"] for call in mended[2]["tool_calls"]] == ["a", "a_2"]
    assert [item["tool_call_id"] for item in mended[3:5]] == ["a", "a_2"]
    assert [item["content"] for item in mended[3:5]] == ["x.py", "/w"]


def test_what_was_written_twice_is_there_once() -> None:
    for place in (2, 3, 4, 7, 8):
        assert _mend_items(RESPONSES, twice(place)(responses()))[0] == responses()
    whole = responses()
    assert _mend_items(RESPONSES, [*whole[:9], *whole[2:]])[0] == whole
    assert _mend_items(CHAT, twice(2)(chat()))[0] == chat()
    two = changed(2, tool_calls=[chat_call(own, own) for own in "aab"])(chat())
    mended, _ = _mend_items(CHAT, two)
    assert [call["id"] for call in mended[2]["tool_calls"]] == ["a", "b"]


def test_nothing_is_answered_whose_result_is_of_unknown_owner() -> None:
    mended, report = _mend_items(RESPONSES, with_item(4, OTHER)(responses()))
    assert mended == with_item(4, OTHER)(responses())
    assert "nothing says" in report.left[0].detail


def test_a_result_of_another_kind_is_kept_and_none_is_invented() -> None:
    shell = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    wrong = {"type": "function_call_output", "call_id": "c", "output": "x.py"}
    mended, _ = _mend_items(RESPONSES, [shell, wrong])
    assert mended[1]["type"] == "shell_call_output"
    assert mended[1]["output"][0]["stdout"] == "x.py"
    click = {"type": "computer_call", "call_id": "c", "action": {"type": "click"}}
    mended, report = _mend_items(RESPONSES, [click, wrong])
    assert mended == [click]
    assert [left.code for left in report.left] == ["unanswerable_call"]


def test_too_large_payloads_become_texts_the_oldest_first() -> None:
    mended, report = _mend_items(CHAT, chat_pictures(chat()))
    parts = mended[6]["content"]
    assert [part["type"] for part in parts] == ["text"] * 3 + ["image_url"] * MOST_PICTURES
    assert "image/png of 8 bytes" in parts[1]["text"]
    assert [action.action for action in report.actions] == ["replaced"] * 2
    large = f"data:image/png;base64,{'A' * (MOST_BYTES // 2)}"
    items = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": large}}]}] * 3
    mended, _ = _mend_items(CHAT, [*items, chat()[7]])
    assert [item["content"][0]["type"] for item in mended[:3]] == ["text", "text", "image_url"]
    # What is in another conversation of the file, or ahead of a compaction, is not sent with it.
    assert codes(CHAT, [[{"messages": []}], *items[:1], [{"messages": []}], *items[:1]]) == []
    seen = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": large}]}
    write = Rollout(3)
    lines = [write.meta(), write.item(seen), *write.compacted([]), write.item(seen)]
    assert codes(CODEX, lines) == []


def test_a_kept_history_is_judged_and_mended_inside(tmp_path: Path) -> None:
    for way in RESPONSES_WAYS:
        if (
            way.number in (8, 10) or "duplicate_id" in way.codes
        ):  # what was kept may be without its neighbours
            continue
        path = tmp_path / "rollout.jsonl"
        path.write_bytes(kept_by_compaction(way.damage(responses())))
        value = checkpoint(path, CODEX)
        items = list(value.transcript.parts[0].items.values())
        assert sorted(codes(CODEX, items)) == sorted(way.codes), way.name
        mended, lines, report, _ = mend(value)
        assert sorted(codes(CODEX, mended)) == sorted(way.left), way.name
        assert {lines[0], lines[-1]} == {*list(value.transcript.parts[0].items.lines())[::2]}
        assert len(report.actions) >= len(way.codes) - len(way.left)


# Codex: the file itself.


def rollout(**options: Any) -> list[Any]:
    return [json.loads(line) for line in enveloped(responses(), **options).splitlines()]


def test_a_rollout_without_its_head_gets_one() -> None:
    lines = rollout(ordinals=True)[1:]
    assert codes(CODEX, lines) == ["bad_order"]
    mended, report = _mend_items(CODEX, lines)
    assert mended[1:] == lines
    head = mended[0]
    assert (head["type"], head["ordinal"], head["timestamp"]) == ("session_meta", 0, lines[0]["timestamp"])
    assert head["payload"]["cwd"] == lines[0]["payload"]["cwd"]
    assert "was not recorded" in head["payload"]["originator"]
    assert [(action.code, action.action) for action in report.actions] == [("bad_order", "added")]
    assert _mend_items(CODEX, lines)[0] == mended


def test_a_head_that_stands_further_down_is_taken() -> None:
    lines = rollout()
    assert codes(CODEX, [*lines[1:4], lines[0], *lines[4:], lines[0]]) == []


def test_numbers_of_lines_grow_and_gaps_are_fine() -> None:
    lines = rollout(ordinals=True)
    gaps = [{**line, "ordinal": line["ordinal"] * 3} for line in lines]
    assert codes(CODEX, gaps) == []
    repeated = [*lines[:10], *({**line, "ordinal": line["ordinal"] - 2} for line in lines[10:])]
    (problem,) = get_dialect(CODEX).problems(iter(repeated))
    assert (problem.code, problem.item) == ("dangling_parent", 10)
    mended, report = _mend_items(CODEX, repeated)
    assert mended == lines
    assert [action.action for action in report.actions] == ["relinked"]
    bare = [{key: value for key, value in line.items() if key != "ordinal"} for line in lines]
    lost = [*lines[:10], *bare[10:]]
    assert codes(CODEX, lost) == ["dangling_parent"]
    assert _mend_items(CODEX, lost)[0] == lines
    assert codes(CODEX, bare) == []


def test_a_line_put_in_moves_the_numbers_of_those_behind_as_far_as_it_must() -> None:
    lines = rollout(ordinals=True)
    place = next(at for at, line in enumerate(lines) if line["payload"].get("call_id") == PATCH) + 4
    assert lines[place]["payload"]["type"] == "custom_tool_call_output"
    left = [*lines[:place], *lines[place + 1 :]]
    mended, _ = _mend_items(CODEX, left)
    numbers = [line["ordinal"] for line in mended]
    assert numbers == sorted(set(numbers))
    new = next(line for line in mended if line["payload"].get("output") == f"{INTERRUPTED}")
    assert new["payload"]["call_id"] == PATCH
    # The number of the lost line is free, so that of the lines behind it is what it was.
    assert mended[place + 1 :] == left[place:]


def test_a_form_of_history_that_is_not_known_is_said() -> None:
    write = Rollout(3)
    assert codes(CODEX, [write.meta(history_mode="paginated"), write.meta(history_mode="new")]) == []
    for mode in ("sharded", 3, ["legacy"]):
        lines = [write.meta(history_mode=mode), write.item(BASE[1])]
        assert codes(CODEX, lines) == ["unsupported_version"]
        mended, report = _mend_items(CODEX, lines)
        assert mended == lines
        assert [left.code for left in report.left] == ["unsupported_version"]


def _mend_items(dialect: str, items: list[Any]) -> tuple[list[Any], RepairReport]:
    part = TranscriptPart(name="main", items=Items.of_lines(json.dumps(item).encode() for item in items))
    value = Checkpoint(
        run_id="run",
        task_id="task",
        created_at=START,
        checkpoint_at=START,
        transcript=Transcript(dialect=dialect, parts=(part,)),
    )
    mended, _, report, _ = mend(value)
    return mended, report


# Any of them together.

few = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("form", FORMS)
@few
@given(data=st.data())
def test_any_ways_together_are_mended(form: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    dialect, name, _ = FORMS[form]
    ways = data.draw(st.lists(st.sampled_from(_SAFE[dialect]), min_size=1, max_size=4), label="ways")
    items = base_of(form)
    for way in ways:
        items = way.damage(items)
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(made(form, items))
    assume(read([path]).transcript.dialect == dialect)
    mended, _, report, _ = mend(checkpoint(path, dialect))
    assert Counter(codes(dialect, mended)) == Counter(left.code for left in report.left)
    unclear = {"duplicate_call", "misplaced_result", "duplicate_result", "broken_seal"}
    ended = {"bad_role"} if items[-1].get("role") == "exit" else set()  # its call may be open by design
    assert {left.code for left in report.left} <= unclear | ended


_SAFE = {
    dialect: [way for way in ways if way.number != 12 and way is not FOREIGN]
    for dialect, ways in WAYS.items()
}
