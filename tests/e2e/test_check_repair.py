"""Public transcripts through `archiver check` and `archiver repair`: the valid ones are left alone."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from inside import command

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"
FOLDERS = ("claude_code", "anthropic_messages")

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason=f"no public transcripts at {SHARED}")

INVALID = {
    # Begins in the middle of a conversation.
    "06-entire-orphan-result.jsonl": {"orphan_result", "dangling_parent"},
    "08-entire-ends-open-small.jsonl": {"unanswered_call"},
    # After a compaction; the file of before is not there.
    "10-entire-microcompact.jsonl": {"dangling_parent"},
    "14-packmind-ends-open2.jsonl": {"unanswered_call"},
    # Its signatures are placeholders since it was published.
    "20-spotter-2.1.39-with-subagents": {"empty_text", "broken_seal"},
    "31-happy-task-sdk-unanswered.jsonl": {"unanswered_call"},
    # Put together from pieces, in which ids, names and signatures were cut away.
    "38-jazzy-49KB.jsonl": {
        *("broken_seal", "orphan_result", "bad_order", "duplicate_id", "bad_name", "unanswered_call"),
    },
}
"""What each transcript that is not valid has wrong with it; all others are valid."""


UNKNOWN = {"01-happy-log4-935KB.json"}
"""Files of no known format: an app's own records around messages."""


def transcripts() -> list[Path]:
    return sorted(path for name in FOLDERS for path in (SHARED / name).glob("*")) if SHARED.exists() else []


def program(*arguments: object) -> tuple[int, Any]:
    done = command(*arguments, "--json")
    return done.code, done.json


def digests(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_some_are_valid_and_some_are_not() -> None:
    names = {path.name for path in transcripts()}
    assert set(INVALID) <= names
    assert len(names - set(INVALID)) > 15


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: str(path.name))
def test_what_is_valid_is_left_and_what_is_not_is_mended(path: Path, tmp_path: Path) -> None:
    before = digests(path)
    code, found = program("check", path)
    problems = found["transcripts"][0]["problems"]
    expected = INVALID.get(path.name, set())
    # Where an object follows another on one line, its harness reads neither.
    glued = [one for one in problems if one["what"] == "several objects on one line"]
    assert {one["code"] for one in problems if one not in glued} == expected
    unknown = path.name in UNKNOWN
    assert code == (2 if unknown else 4 if problems else 0)
    assert found["transcripts"][0]["valid"] is (None if unknown else not problems)
    code, mended = program("repair", path, "--into", tmp_path / "out")
    assert (code, mended["left"]) == (2 if unknown else 0, [])
    assert digests(path) == before
    if not problems:
        assert mended["actions"] == []
        assert not (tmp_path / "out").exists()
        return
    written = Path(mended["written"][0])
    assert program("check", written)[0] == 0
    assert program("repair", written, "--dry-run")[1]["actions"] == []
    _most_lines_are_the_same(path, written, len(mended["actions"]))


def _most_lines_are_the_same(path: Path, written: Path, actions: int) -> None:
    original = path if path.is_file() else next(path.glob("*.jsonl"))
    before, after = (set(one.read_bytes().splitlines()) for one in (original, written))
    assert len(before - after) <= 3 * actions
