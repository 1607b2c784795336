"""What holds for any list of Responses items and any rollout: compaction keeps it valid, repair mends it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.compact import CompactOptions, compact
from archiver.model import Checkpoint, Items, Receipt, Transcript, TranscriptPart
from archiver.redacted import vouch
from archiver.repair import RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import SYNTHETIC

from .samples import START, line_of
from .samples_codex import Rollout
from .samples_responses import ItemWriter

FORMS = ("openai-responses", "codex", "flat")
BEYOND = {"duplicate_call"}
"""What no repair can mend: two calls with one id."""
short = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
long = settings(short, max_examples=1500)
SMALL = CompactOptions(keep_turns=2, small_result=40, blob_limit=64)

KINDS = ("function", "patch", "search", "shell", "edit", "web", "picture")
turns = st.fixed_dictionaries(
    {
        "asks": st.booleans(),
        "thinks": st.integers(0, 2),
        "says": st.booleans(),
        "calls": st.lists(st.sampled_from(KINDS), max_size=3),
        "sizes": st.lists(st.sampled_from((0, 10, 300, 3000)), min_size=3, max_size=3),
        "pictured": st.booleans(),
        "interleaved": st.booleans(),
        "compacts": st.sampled_from((False, False, False, True)),
    }
)
conversations = st.lists(turns, min_size=1, max_size=5)


def _call(write: ItemWriter, kind: str, number: int) -> dict[str, Any]:
    call_id = write.make.token("call_")
    made: dict[str, dict[str, Any]] = {
        "function": write.call("exec_command", {"cmd": f"make {number}"}),
        "patch": write.patch(f"/w/{number}.py"),
        "search": {"type": "tool_search_call", "call_id": call_id, "execution": "client", "arguments": {}},
        "shell": {"type": "shell_call", "call_id": call_id, "action": {"commands": ["ls"]}},
        "edit": {"type": "apply_patch_call", "call_id": call_id, "operation": {"path": "a", "diff": ""}},
        "web": {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
        "picture": {"type": "image_generation_call", "status": "completed", "result": write.make.blob(90)},
    }
    return {"id": write.id("it"), **made[kind]}


def _result(write: ItemWriter, call: dict[str, Any], size: int, *, pictured: bool) -> dict[str, Any]:
    text = write.make.output(size)
    made = {"call_id": call["call_id"]}
    if call["type"] == "tool_search_call":
        return {**made, "type": "tool_search_output", "execution": "client", "tools": [{"name": "x"}]}
    if call["type"] == "shell_call":
        output = [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
        return {**made, "type": "shell_call_output", "output": output}
    if call["type"] == "apply_patch_call":
        return {**made, "type": "apply_patch_call_output", "status": "completed", "output": text}
    parts = [{"type": "input_text", "text": text}, write.picture(100)]
    return {**made, "type": f"{call['type']}_output", "output": parts if pictured else text}


def _turn(write: ItemWriter, turn: dict[str, Any], number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn["asks"] or not number:
        items.append(write.user(f"Instruction {number}: {write.make.words(4)}", int(turn["pictured"])))
    items += [write.reasoning() for _ in range(turn["thinks"])]
    if turn["says"] or not turn["calls"]:
        items.append(write.say(write.make.words(5)))
    results = []
    for kind, size in zip(turn["calls"], turn["sizes"], strict=False):
        call = _call(write, kind, number)
        items.append(call)
        if "call_id" in call:
            result = _result(write, call, size, pictured=turn["pictured"])
            (items if turn["interleaved"] else results).append(result)
    return items + results[::-1]


def _written(form: str, conversation: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    rollout = Rollout(seed, ordinals=bool(seed % 2))
    write = rollout.items
    turns = [_turn(write, turn, number) for number, turn in enumerate(conversation)]
    if form == "openai-responses":
        return [item for items in turns for item in items]
    if form == "flat":
        head = {"id": rollout.session, "timestamp": rollout.now(), "instructions": None}
        return [
            head,
            *(line for items in turns for item in items for line in (item, {"record_type": "state"})),
        ]
    lines = [rollout.meta()]
    for turn, items in zip(conversation, turns, strict=True):
        lines += rollout.compacted([write.user("Kept")], call=False) if turn["compacts"] else []
        lines.append(rollout.context())
        for item in items:
            lines += [rollout.item(item), *rollout.shown(item)]
        lines.append(rollout.tokens())
    return lines


def _dialect(form: str) -> str:
    return "codex" if form == "flat" else form


def _checkpoint(form: str, items: list[Any]) -> Checkpoint:
    part = TranscriptPart(name="main", items=Items.of_lines(line_of(item) for item in items))
    transcript = Transcript(dialect=_dialect(form), parts=(part,))
    return Checkpoint(
        run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
    )


def _items(value: Checkpoint) -> list[Any]:
    return list(value.transcript.parts[0].items)


def _codes(form: str, items: list[Any]) -> list[str]:
    return [problem.code for problem in get_dialect(_dialect(form)).problems(iter(items))]


def _sealed(items: list[Any]) -> list[tuple[str, str]]:
    found = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("id", "call_id", "encrypted_content") and isinstance(inner, str):
                    found.append((key, inner))
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(items)
    return found


@pytest.mark.parametrize("form", FORMS)
@short
@given(conversation=conversations, seed=st.integers(0, 5))
def test_a_compacted_conversation_is_valid_and_whole(
    form: str, conversation: list[dict[str, Any]], seed: int
) -> None:
    _compacts(form, conversation, seed)


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
@long
@given(conversation=conversations, seed=st.integers(0, 5))
def test_many_compacted_conversations(form: str, conversation: list[dict[str, Any]], seed: int) -> None:
    _compacts(form, conversation, seed)


def _compacts(form: str, conversation: list[dict[str, Any]], seed: int) -> None:
    items = _written(form, conversation, seed)
    assert _codes(form, items) == []
    with Scratch() as scratch:
        first = compact(vouch(_checkpoint(form, items), Receipt()), None, SMALL, scratch)
        made = _items(first.checkpoint.value)
        assert _codes(form, made) == []
        assert _sealed(made) == _sealed(items)
        assert len(made) == len(items)
        assert _items(compact(first.checkpoint, None, SMALL, scratch).checkpoint.value) == made
        facts = get_dialect(_dialect(form)).facts
        said = [facts(item).instruction.split("\n[archived")[0] for item in made]
        assert said == [facts(item).instruction for item in items]


damages = st.lists(
    st.tuples(st.sampled_from(("lost", "twice", "moved", "cut")), st.integers(0, 200), st.integers(0, 200)),
    min_size=1,
    max_size=4,
)


def _damaged(items: list[Any], damage: list[tuple[str, int, int]]) -> list[Any]:
    """Items with lines lost, written twice, moved elsewhere, or cut off at the end; the head stays."""
    made = list(items)
    for kind, first, second in damage:
        if len(made) < 3:
            break
        place = 1 + first % (len(made) - 1)
        if kind == "cut":
            del made[max(place, 2) :]
        elif kind == "twice":
            made.insert(place, made[place])
        else:
            line = made.pop(place)
            if kind == "moved":
                made.insert(1 + second % len(made), line)
    return made


@pytest.mark.parametrize("form", FORMS)
@short
@given(conversation=conversations, seed=st.integers(0, 5), damage=damages)
def test_a_damaged_conversation_is_mended_and_loses_nothing_sound(
    form: str, conversation: list[dict[str, Any]], seed: int, damage: list[tuple[str, int, int]]
) -> None:
    _is_repaired(form, conversation, seed, damage)


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
@long
@given(conversation=conversations, seed=st.integers(0, 5), damage=damages)
def test_many_damaged_conversations(
    form: str, conversation: list[dict[str, Any]], seed: int, damage: list[tuple[str, int, int]]
) -> None:
    _is_repaired(form, conversation, seed, damage)


def _is_repaired(
    form: str, conversation: list[dict[str, Any]], seed: int, damage: list[tuple[str, int, int]]
) -> None:
    items = _damaged(_written(form, conversation, seed), damage)
    problems = get_dialect(_dialect(form)).problems(iter(items))
    with Scratch() as scratch:
        value = _checkpoint(form, items)
        after, report = repair(value, scratch)
        mended = _items(after)
        _is_mended(form, mended, report)
        assert (after is value) == (not report.actions)
        assert repair(after, scratch)[0] is after
    suspect = {problem.item for problem in problems if problem.code != "unanswered_call"}
    suspect |= {action.item for action in report.actions if action.code != "unanswered_call"}
    _subsequence([line for index, line in enumerate(items) if index not in suspect], mended)
    _nothing_invented(form, items, mended)


def _is_mended(form: str, mended: list[Any], report: RepairReport) -> None:
    left = {action.code for action in report.left}
    assert left <= BEYOND | ({"misplaced_result"} if "duplicate_call" in left else set())
    assert set(_codes(form, mended)) == left


def _subsequence(kept: list[Any], mended: list[Any]) -> None:
    """Every sound line is there, in its order; those behind a new line may have other numbers."""
    rest = iter(map(_told, mended))
    assert all(_told(line) in rest for line in kept)


def _told(line: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in line.items() if key != "ordinal"})


def _nothing_invented(form: str, items: list[Any], mended: list[Any]) -> None:
    """A result that was not there says that its outcome is unknown; what persons said is what they said."""
    facts = get_dialect(_dialect(form)).facts
    count: Callable[[list[Any]], Counter[tuple[str, str]]] = lambda lines: Counter(  # noqa: E731
        (result.call_id, result.text) for line in lines for result in facts(line).results
    )
    for call_id, text in count(mended) - count(items):
        made = [result for line in mended for result in facts(line).results if result.call_id == call_id]
        assert text.startswith(SYNTHETIC) or text == "", text
        assert any(result.is_error for result in made)
    asked = [facts(line).instruction for line in items if facts(line).instruction]
    assert [facts(line).instruction for line in mended if facts(line).instruction] == asked
