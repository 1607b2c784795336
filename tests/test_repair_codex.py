"""Repair of rollouts of Codex: what a compaction kept, and the file itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transcripts.repairing import checkpoint, codes, mend, mend_items
from transcripts.samples_codex import Rollout
from transcripts.samples_invalid_openai import (
    BASE,
    CODEX,
    PATCH,
    RESPONSES_WAYS,
    enveloped,
    kept_by_compaction,
    responses,
)

from archiver.repair import INTERRUPTED
from archiver.transcripts import get_dialect


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


def rollout(**options: Any) -> list[Any]:
    return [json.loads(line) for line in enveloped(responses(), **options).splitlines()]


def test_a_rollout_without_its_head_gets_one() -> None:
    lines = rollout(ordinals=True)[1:]
    assert codes(CODEX, lines) == ["bad_order"]
    mended, report = mend_items(CODEX, lines)
    assert mended[1:] == lines
    head = mended[0]
    assert (head["type"], head["ordinal"], head["timestamp"]) == ("session_meta", 0, lines[0]["timestamp"])
    assert head["payload"]["cwd"] == lines[0]["payload"]["cwd"]
    assert "was not recorded" in head["payload"]["originator"]
    assert [(action.code, action.action) for action in report.actions] == [("bad_order", "added")]
    assert mend_items(CODEX, lines)[0] == mended


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
    mended, report = mend_items(CODEX, repeated)
    assert mended == lines
    assert [action.action for action in report.actions] == ["relinked"]
    bare = [{key: value for key, value in line.items() if key != "ordinal"} for line in lines]
    lost = [*lines[:10], *bare[10:]]
    assert codes(CODEX, lost) == ["dangling_parent"]
    assert mend_items(CODEX, lost)[0] == lines
    assert codes(CODEX, bare) == []


def test_a_line_put_in_moves_the_numbers_of_those_behind_as_far_as_it_must() -> None:
    lines = rollout(ordinals=True)
    place = next(at for at, line in enumerate(lines) if line["payload"].get("call_id") == PATCH) + 4
    assert lines[place]["payload"]["type"] == "custom_tool_call_output"
    left = [*lines[:place], *lines[place + 1 :]]
    mended, _ = mend_items(CODEX, left)
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
        mended, report = mend_items(CODEX, lines)
        assert mended == lines
        assert [left.code for left in report.left] == ["unsupported_version"]
