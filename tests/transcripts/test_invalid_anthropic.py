"""Every way to be invalid, in Anthropic messages and sessions of Claude Code: found, mended, and gone."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.errors import UnsupportedSchemaError
from archiver.mending import Mended, check, mend
from archiver.repair import INTERRUPTED
from archiver.transcripts import get_dialect
from archiver.transcripts.reader import MAX_ITEM
from transcripts.samples import anthropic_messages, claude_session

Items = list[Any]
Damage = Callable[["Form", Items], None]
DIALECTS = ("anthropic-messages", "claude-code")


@dataclass(frozen=True)
class Form:
    """How one of the two formats is written and read."""

    name: str

    def items(self, seed: int = 1) -> Items:
        if self.name == "claude-code":
            return list(claude_session(4, seed=seed))
        return anthropic_messages(4, seed=seed)

    def write(self, path: Path, items: Items) -> Path:
        if self.name == "claude-code":
            path.write_bytes(b"".join(map(line_of, items)))
        else:
            path.write_bytes(b"[\n" + b",\n".join(line_of(item)[:-1] for item in items) + b"\n]\n")
        return path

    def read(self, path: Path) -> Items:
        text = path.read_bytes()
        if self.name == "claude-code":
            return [json.loads(line) for line in text.splitlines()]
        return list(json.loads(text))

    def message(self, item: Any) -> Any:
        return item.get("message", {}) if self.name == "claude-code" else item

    def blocks(self, item: Any) -> list[Any]:
        content = self.message(item).get("content")
        return content if isinstance(content, list) else []

    def at(self, items: Items, kind: str, number: int = 0) -> int:
        """The item that holds the `number`-th block of that kind."""
        return [index for index, item in enumerate(items) for b in self.blocks(item) if b["type"] == kind][
            number
        ]

    def block(self, items: Items, kind: str, number: int = 0) -> Any:
        return [block for item in items for block in self.blocks(item) if block["type"] == kind][number]


def line_of(item: Any) -> bytes:
    return jsonio.dumps(item) + b"\n"


@pytest.fixture(params=DIALECTS)
def form(request: pytest.FixtureRequest) -> Form:
    return Form(request.param)


def png(width: int, height: int, size: int = 100) -> str:
    """A picture's header, and bytes that nobody looks at."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + bytes(max(0, size - len(head)))).decode()


def picture(data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


# --- the damages, by their number in the checklist --------------------------------------------------------


def unanswered(form: Form, items: Items) -> None:
    at = form.at(items, "tool_result", 1)
    form.blocks(items[at]).remove(form.block(items, "tool_result", 1))
    if not form.blocks(items[at]):
        _unlink(items, at)


def orphan(form: Form, items: Items) -> None:
    """A call is taken away, and its result stays."""
    at = form.at(items, "tool_use", 1)
    form.blocks(items[at]).remove(form.block(items, "tool_use", 1))
    if not form.blocks(items[at]):
        _unlink(items, at)


def answered_twice(form: Form, items: Items) -> None:
    at = form.at(items, "tool_result", 0)
    form.blocks(items[at]).append({**form.block(items, "tool_result", 0), "content": "another"})


def called_twice(form: Form, items: Items) -> None:
    """A later call, with its result, has the id of an earlier one."""
    first, later = form.block(items, "tool_use", 0), form.block(items, "tool_use", 5)
    form_results = [b for item in items for b in form.blocks(item) if b["type"] == "tool_result"]
    for result in form_results:
        if result["tool_use_id"] == later["id"]:
            result["tool_use_id"] = first["id"]
    later["id"] = first["id"]


def written_twice(form: Form, items: Items) -> None:
    """The same call twice in one response, with one result."""
    at = form.at(items, "tool_use", 0)
    form.blocks(items[at]).append(dict(form.block(items, "tool_use", 0)))


def misplaced(form: Form, items: Items) -> None:
    """A result stands behind the next response."""
    at = form.at(items, "tool_result", 0)
    result = form.block(items, "tool_result", 0)
    form.blocks(items[at]).remove(result)
    if not form.blocks(items[at]):
        _unlink(items, at)
    form.blocks(items[form.at(items, "tool_result", 4)]).append(result)


def strayed(form: Form, items: Items) -> None:
    """A result stands in the response, behind its call."""
    at = form.at(items, "tool_result", 0)
    result = form.block(items, "tool_result", 0)
    form.blocks(items[at]).remove(result)
    if not form.blocks(items[at]):
        _unlink(items, at)
    form.blocks(items[form.at(items, "tool_use", 0)]).append(result)


def empty(form: Form, items: Items) -> None:
    form.blocks(items[form.at(items, "tool_use")]).append({"type": "text", "text": " \n"})


def moved_thought(form: Form, items: Items) -> None:
    """In the last response the reasoning stands behind what was said."""
    last = max(form.at(items, "thinking", n) for n in range(_count(form, items, "thinking")))
    if form.name == "claude-code":
        thought, said = items[last], items[last + 1]
        thought["message"], said["message"] = said["message"], thought["message"]
    else:
        form.blocks(items[last]).reverse()


def changed_thought(form: Form, items: Items) -> None:
    del form.block(items, "thinking", 0)["thinking"]


def unsigned(form: Form, items: Items) -> None:
    del form.block(items, "thinking", 1)["signature"]


def redacted_seal(form: Form, items: Items) -> None:
    form.block(items, "thinking", 0)["signature"] = "[REDACTED_SIGNATURE]"


def bare_word(form: Form, items: Items) -> None:
    """What an archiver wrote over the signature could be base64."""
    form.block(items, "thinking", 0)["signature"] = "REDACTED"


def cut_seal(form: Form, items: Items) -> None:
    block = form.block(items, "thinking", 2)
    block["signature"] = block["signature"][:-3]


def foreign_seal(form: Form, items: Items) -> None:
    form.block(items, "thinking", 0)["signature"] = "gAAAAABowf2" + "A" * 85


def surrogate(form: Form, items: Items) -> None:
    form.block(items, "text", 0)["text"] = "half a smile \ud83d"


def large_picture(form: Form, items: Items) -> None:
    result = form.block(items, "tool_result", 0)
    result["content"] = [picture(png(64, 64, 5 << 20))]


def wide_picture(form: Form, items: Items) -> None:
    form.block(items, "tool_result", 1)["content"] = [picture(png(8001, 10))]


def many_pictures(form: Form, items: Items) -> None:
    form.block(items, "tool_result", 1)["content"] = [picture(png(10, 10)) for _ in range(101)]


def many_wide_pictures(form: Form, items: Items) -> None:
    form.block(items, "tool_result", 1)["content"] = [picture(png(2001, 10)) for _ in range(21)]


def unknown_role(form: Form, items: Items) -> None:
    index = form.at(items, "text", 2)
    if form.name == "claude-code":
        items[index]["message"]["role"] = "exit"
    else:
        items.append({"role": "exit", "content": "Submitted"})


def bad_name(form: Form, items: Items) -> None:
    form.block(items, "tool_use", 0)["name"] = "mcp.server/read file"


def nul_name(form: Form, items: Items) -> None:
    form.block(items, "tool_use", 0)["name"] += "\0\0"


def no_name(form: Form, items: Items) -> None:
    del form.block(items, "tool_use", 0)["name"]


def headless(form: Form, items: Items) -> None:
    """What a person said first is gone."""
    first = next(i for i, item in enumerate(items) if form.message(item).get("role") == "assistant")
    del items[:first]
    if form.name == "claude-code":
        items[0]["parentUuid"] = None


def dangling(form: Form, items: Items) -> None:
    items[form.at(items, "tool_use", 4)]["parentUuid"] = "11111111-1111-4111-8111-111111111111"


def logical(form: Form, items: Items) -> None:
    items[form.at(items, "text", 3)]["logicalParentUuid"] = "22222222-2222-4222-8222-222222222222"


def circle(form: Form, items: Items) -> None:
    links = [index for index, item in enumerate(items) if "uuid" in item]
    items[links[2]]["parentUuid"] = items[links[6]]["uuid"]


def own_parent(form: Form, items: Items) -> None:
    line = items[form.at(items, "tool_use", 2)]
    line["parentUuid"] = line["uuid"]


def shared_id(form: Form, items: Items) -> None:
    texts = [form.at(items, "text", number) for number in (0, 4)]
    old = items[texts[1]]["uuid"]
    new = items[texts[0]]["uuid"]
    items[texts[1]]["uuid"] = new
    for item in items[texts[1] :]:
        if item.get("parentUuid") == old:
            item["parentUuid"] = new


def _unlink(items: Items, at: int) -> None:
    gone = items.pop(at)
    for item in items:
        if isinstance(item, dict) and "uuid" in gone and item.get("parentUuid") == gone["uuid"]:
            item["parentUuid"] = gone["parentUuid"]


def _count(form: Form, items: Items, kind: str) -> int:
    return sum(block["type"] == kind for item in items for block in form.blocks(item))


BOTH: dict[str, tuple[int, Damage, str]] = {
    "unanswered": (1, unanswered, "unanswered_call"),
    "orphan": (2, orphan, "orphan_result"),
    "answered twice": (3, answered_twice, "duplicate_result"),
    "called twice": (4, called_twice, "duplicate_call"),
    "written twice": (4, written_twice, "duplicate_call"),
    "misplaced": (6, misplaced, "misplaced_result"),
    "strayed": (6, strayed, "misplaced_result"),
    "empty": (7, empty, "empty_text"),
    "moved thought": (8, moved_thought, "changed_reasoning"),
    "changed thought": (8, changed_thought, "changed_reasoning"),
    "unsigned": (9, unsigned, "broken_seal"),
    "redacted seal": (9, redacted_seal, "broken_seal"),
    "bare word": (9, bare_word, "broken_seal"),
    "cut seal": (9, cut_seal, "broken_seal"),
    "foreign seal": (9, foreign_seal, "foreign_reasoning"),
    "surrogate": (11, surrogate, "bad_text"),
    "large picture": (12, large_picture, "too_large"),
    "wide picture": (12, wide_picture, "too_large"),
    "many pictures": (12, many_pictures, "too_large"),
    "many wide pictures": (12, many_wide_pictures, "too_large"),
    "unknown role": (15, unknown_role, "bad_role"),
    "bad name": (16, bad_name, "bad_name"),
    "nul name": (16, nul_name, "bad_name"),
    "no name": (16, no_name, "bad_name"),
    "headless": (17, headless, "bad_order"),
}
SESSIONS: dict[str, tuple[int, Damage, str]] = {
    "dangling": (14, dangling, "dangling_parent"),
    "logical": (14, logical, "dangling_parent"),
    "circle": (14, circle, "parent_cycle"),
    "own parent": (14, own_parent, "parent_cycle"),
    "shared id": (14, shared_id, "duplicate_id"),
}
CASES = [(name, *case) for name in DIALECTS for case in BOTH.values()] + [
    ("claude-code", *case) for case in SESSIONS.values()
]


def codes(path: Path) -> list[str]:
    return [finding.code for finding in check(path).findings]


def repaired(path: Path, folder: Path) -> tuple[Path, Mended]:
    before = path.read_bytes()
    result = mend(path, into=folder)
    assert path.read_bytes() == before
    assert result.actions
    assert result.folder == folder
    made = folder / path.name
    assert mend(made, into=folder / "again").actions == ()
    assert not (folder / "again").exists()
    return made, result


@pytest.mark.parametrize("seed", range(3))
def test_a_valid_one_is_not_touched(form: Form, seed: int, tmp_path: Path) -> None:
    path = form.write(tmp_path / "t.jsonl", form.items(seed))
    found = check(path)
    assert (found.dialect, found.findings) == (form.name, ())
    result = mend(path, into=tmp_path / "out")
    assert (result.actions, result.left, result.written) == ((), (), ())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "number", "damage", "code"), CASES, ids=[f"{c[0]}-{c[1]}-{c[2].__name__}" for c in CASES]
)
def test_each_is_found_mended_and_gone(
    name: str, number: int, damage: Damage, code: str, tmp_path: Path
) -> None:
    form = Form(name)
    items = form.items()
    damage(form, items)
    path = form.write(tmp_path / "t.jsonl", items)
    found = check(path).findings
    assert code in [finding.code for finding in found]
    assert all(finding.reason is None for finding in found)
    made, result = repaired(path, tmp_path / "out")
    assert result.left == ()
    assert code in [action.code for action in result.actions]
    assert codes(made) == []
    _the_rest_is_as_it_was(form, path, made, len(found))


def _the_rest_is_as_it_was(form: Form, path: Path, made: Path, most: int) -> None:
    """Nearly all lines keep their bytes, and nothing that was sealed has become something else."""
    before, after = (set(one.read_bytes().splitlines()) for one in (path, made))
    assert len(before - after) <= max(6, 2 * most)
    seals = [
        {b["signature"] for item in form.read(one) for b in form.blocks(item) if "signature" in b}
        for one in (path, made)
    ]
    assert seals[1] <= seals[0]


def test_parallel_calls_that_are_partly_answered_keep_what_they_have(form: Form, tmp_path: Path) -> None:
    items = form.items()
    kept = form.block(items, "tool_result", 0)
    unanswered(form, items)
    made, _ = repaired(form.write(tmp_path / "t.jsonl", items), tmp_path / "out")
    results = [b for item in form.read(made) for b in form.blocks(item) if b["type"] == "tool_result"]
    assert kept in results
    assert [r["content"] for r in results if r["content"] == INTERRUPTED] == [INTERRUPTED]


@pytest.mark.parametrize("damage", [misplaced, strayed])
def test_no_result_is_made_up_where_one_is_somewhere_else(form: Form, damage: Damage, tmp_path: Path) -> None:
    items = form.items()
    moved = form.block(items, "tool_result", 0)
    damage(form, items)
    made, _ = repaired(form.write(tmp_path / "t.jsonl", items), tmp_path / "out")
    assert INTERRUPTED not in made.read_text()
    found = [b for item in form.read(made) for b in form.blocks(item) if b["type"] == "tool_result"]
    same = next(result for result in found if result["tool_use_id"] == moved["tool_use_id"])
    assert same["content"] == moved["content"]


def test_a_role_of_nobody_does_not_cost_the_results_in_it(tmp_path: Path) -> None:
    form = Form("anthropic-messages")
    items = form.items()
    items[form.at(items, "tool_result")]["role"] = "ipython"
    kept = form.block(items, "tool_result")
    made, _ = repaired(form.write(tmp_path / "t.jsonl", items), tmp_path / "out")
    assert INTERRUPTED not in made.read_text()
    assert form.block(form.read(made), "tool_result") == kept


def test_a_picture_is_spoken_for(form: Form, tmp_path: Path) -> None:
    items = form.items()
    wide_picture(form, items)
    made, _ = repaired(form.write(tmp_path / "t.jsonl", items), tmp_path / "out")
    said = form.block(form.read(made), "tool_result", 1)["content"]
    assert [block["type"] for block in said] == ["text"]
    assert "image/png of 100 bytes" in said[0]["text"]
    assert "SHA-256" in said[0]["text"]


def test_a_picture_larger_than_an_archive_takes_is_spoken_for(form: Form, tmp_path: Path) -> None:
    items = form.items()
    form.block(items, "tool_result", 0)["content"] = [picture(png(64, 64, 14 << 20))]
    path = form.write(tmp_path / "t.jsonl", items)
    assert path.stat().st_size > MAX_ITEM
    made, _ = repaired(path, tmp_path / "out")
    assert (
        "image/png of 14,680,064 bytes" in form.block(form.read(made), "tool_result", 0)["content"][0]["text"]
    )


def test_two_tools_stay_two(form: Form, tmp_path: Path) -> None:
    items = form.items()
    for number, tool in enumerate(("a.b", "a/b", "a_b", "a.b")):
        form.block(items, "tool_use", number)["name"] = tool
    made, _ = repaired(form.write(tmp_path / "t.jsonl", items), tmp_path / "out")
    names = [form.block(form.read(made), "tool_use", number)["name"] for number in range(4)]
    assert names == ["a_b_2", "a_b_3", "a_b", "a_b_2"]


def test_two_calls_that_nobody_can_tell_apart_are_left(form: Form, tmp_path: Path) -> None:
    items = form.items()
    call = form.block(items, "tool_use", 0)
    form.blocks(items[form.at(items, "tool_use", 0)]).append({**call, "input": {"other": True}})
    path = form.write(tmp_path / "t.jsonl", items)
    assert [(one.code, one.reason is None) for one in check(path).findings] == [("duplicate_call", False)]
    result = mend(path, into=tmp_path / "out")
    assert [action.code for action in result.left] == ["duplicate_call"]
    assert not (tmp_path / "out").exists()


def test_calls_with_one_id_have_their_results_in_order(tmp_path: Path) -> None:
    calls = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"n": n}} for n in range(3)]
    results = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": f"out {n}"} for n in range(3)]
    items: Items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    form = Form("anthropic-messages")
    made, _ = repaired(form.write(tmp_path / "t.json", items), tmp_path / "out")
    _, called, answered = form.read(made)
    ids = [block["id"] for block in called["content"]]
    assert len(set(ids)) == 3
    assert [(block["tool_use_id"], block["content"]) for block in answered["content"]] == [
        (one, f"out {n}") for n, one in enumerate(ids)
    ]
    assert [block["input"]["n"] for block in called["content"]] == [0, 1, 2]


def test_the_prompt_among_messages_is_left(tmp_path: Path) -> None:
    items = Form("anthropic-messages").items()
    problems = get_dialect("anthropic-messages").problems(
        iter([*items, {"role": "system", "content": "Be brief."}])
    )
    assert [(one.code, one.item, one.beyond is None) for one in problems] == [("bad_role", len(items), False)]


@pytest.mark.parametrize(
    "damages", [("unsigned", "large picture"), ("surrogate", "bad name", "empty"), ("redacted seal", "empty")]
)
def test_what_a_compaction_left_behind_is_history(damages: tuple[str, ...], tmp_path: Path) -> None:
    form = Form("claude-code")
    items = list(claude_session(6, compaction=True))
    for name in damages:
        BOTH[name][1](form, items)
    assert codes(form.write(tmp_path / "t.jsonl", items)) == []


# --- lines, which only a session has ----------------------------------------------------------------------


def session(seed: int = 1) -> list[bytes]:
    return [line_of(item) for item in claude_session(3, seed=seed)]


LINES: dict[str, tuple[Callable[[list[bytes]], bytes], int]] = {
    "torn in the middle": (lambda lines: b"".join([*lines[:5], lines[5][:40] + b"\n", *lines[6:]]), 6),
    "torn at the end": (lambda lines: b"".join(lines)[:-30], len(session())),
    "padded at the end": (lambda lines: b"".join(lines) + bytes(512), len(session()) + 1),
    "padded inside": (lambda lines: b"".join([*lines[:4], bytes(90) + lines[4], *lines[5:]]), 5),
    "not UTF-8": (
        lambda lines: b"".join([lines[0], lines[1].replace(b"Inst", b"In\xff\xfest"), *lines[2:]]),
        2,
    ),
    "garbage": (lambda lines: b"".join([*lines[:7], b"<<<<<<< HEAD\n", *lines[7:]]), 8),
    "glued": (lambda lines: b"".join([*lines[:2], lines[2][:-1], *lines[3:]]), 3),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_that_cannot_be_read_are_named_and_go(name: str, tmp_path: Path) -> None:
    broken, line = LINES[name]
    lines = session()
    data = broken(lines)
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    assert data != b"".join(lines)
    found = [finding for finding in check(path).findings if finding.code == "broken_line"]
    assert len(found) == 1
    assert found[0].line == line
    assert found[0].column is not None
    made, result = repaired(path, tmp_path / "out")
    assert "broken_line" in [action.code for action in result.actions]
    assert codes(made) == []
    whole = set(lines)
    assert len([one for one in made.read_bytes().splitlines(keepends=True) if one in whole]) >= len(lines) - 4


def test_a_file_without_a_last_line_end_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(session())[:-1])
    assert codes(path) == []
    assert mend(path, into=tmp_path / "out").written == ()


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_torn_document_is_found_and_left(cut: float, tmp_path: Path) -> None:
    form = Form("anthropic-messages")
    path = tmp_path / "t.json"
    text = json.dumps(form.items(), indent=1).encode()
    path.write_bytes(text[: int(len(text) * cut)])
    found = check(path).findings
    assert [finding.code for finding in found] == ["broken_line"]
    assert found[0].reason is not None
    result = mend(path, into=tmp_path / "out")
    assert [action.code for action in result.left] == ["broken_line"]
    assert result.written == ()


def test_a_document_that_is_no_transcript_is_nobodys_damage(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for text in (b"[not json", b'{"a": ', b"", b"\xfe", b'{"role":"x"} {"content":1}'):
        path.write_bytes(text)
        assert (check(path).dialect, check(path).findings) == ("opaque", ())


@pytest.mark.parametrize("lines", [True, False])
def test_a_checkpoint_of_a_newer_version_is_refused(lines: bool, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    value = {"schema_version": 99, "run_id": "r", "task_id": "t"}
    path.write_text(json.dumps(value, indent=None if lines else 2))
    for work in (check, mend):
        with pytest.raises(UnsupportedSchemaError, match="99"):
            work(path)


# --- several at once --------------------------------------------------------------------------------------


def all_damages(form: Form) -> dict[str, tuple[int, Damage, str]]:
    return {**BOTH, **(SESSIONS if form.name == "claude-code" else {})}


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_damages_together_are_mended_once_and_for_all(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    form = Form(name)
    large = {"large picture"}  # minutes of base64
    names = sorted(set(all_damages(form)) - large)
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=5))
    items = form.items(data.draw(st.integers(0, 5)))
    for damage in chosen:
        try:
            all_damages(form)[damage][1](form, items)
        except (IndexError, ValueError, KeyError, StopIteration):
            continue  # an earlier damage took away what this one needs
    _settles(form, items, tmp_path_factory.mktemp("t"), data)


def _settles(form: Form, items: Items, folder: Path, data: st.DataObject) -> None:
    path = form.write(folder / "t.jsonl", items)
    if form.name == "claude-code" and data.draw(st.booleans()):
        path.write_bytes(bytes(_torn(path.read_bytes(), data.draw(st.integers(0, 999)))))
    if not codes(path):
        return
    result = mend(path, into=folder / "out")
    made = folder / "out" / path.name if result.written else path
    again = mend(made, into=folder / "again")
    assert again.actions == ()
    assert len(codes(made)) == len(result.left) == len(again.left)


def _torn(text: bytes, seed: int) -> Iterator[int]:
    """The text without a few bytes somewhere."""
    chosen = random.Random(seed)
    start = chosen.randrange(len(text))
    yield from text[:start] + text[start + chosen.randrange(60) :]
