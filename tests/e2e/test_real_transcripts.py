"""Real public runs, where they are at hand: every file comes back, valid and with its opaque fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.archive import Archived, Options, Source, archive
from archiver.model import Transcript
from archiver.restore import Restored, restore
from archiver.setup import Setup
from archiver.transcripts import get_dialect
from archiver.transcripts.reader import read

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"


def sources() -> list[Path]:
    """Every file of the collection, a session with sub-agents as one."""
    if not SHARED.is_dir():
        return []
    return [
        path
        for path in sorted(SHARED.rglob("*"))
        if path.is_file() and path.name != "manifest.json" and "subagents" not in path.parts
    ]


TRIMMED = "[trimmed for fixture]"
"""What somebody wrote over ids and tool names of one file; no provider would take it."""
FILES = sources()
pytestmark = pytest.mark.skipif(
    not FILES, reason="no collection of real transcripts: set ARCHIVER_SHARED to the folder that holds it"
)


def there_and_back(
    path: Path, setup: Setup, into: Path, keep_full: bool = False
) -> tuple[Archived, Restored]:
    done = archive(Source(paths=(path,)), setup, options=Options(keep_full=keep_full, salvage=True))
    accept = ("age", "git_commit")
    return done, restore(done.record.run, setup, into=into, accept=accept)


def opaque_strings(items: Iterator[Any]) -> Iterator[tuple[str, str]]:
    """Signatures, encrypted payloads and ids, by key."""
    keys = {
        "signature",
        "encrypted_content",
        "id",
        "tool_use_id",
        "tool_call_id",
        "uuid",
        "parentUuid",
        "sessionId",
        "requestId",
    }

    def walk(value: Any, container: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            kind = str(value.get("type", ""))
            for key, inner in value.items():
                sealed = key == "data" and kind == "redacted_thinking"
                if isinstance(inner, str) and (sealed or (key in keys and container != "input")):
                    yield key, inner
                elif key not in ("input", "toolUseResult"):
                    yield from walk(inner, key)
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner, container)

    for item in items:
        yield from walk(item, "")


def called(transcript: Transcript) -> list[list[str]]:
    """Ids of the calls of each part, in order: not one of them may get lost."""
    facts = get_dialect(transcript.dialect).facts
    return [
        [call.id for item in part.items for call in facts(item).calls]
        for part in transcript.parts
        if not part.items.raw
    ]


def _few(paths: list[Path]) -> set[Path]:
    """The three smallest files of each folder: those that every run of the tests takes there and back."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.stat().st_size):
        found.setdefault(path.parent, []).append(path)
    return {path for some in found.values() for path in some[:3]}


FEW = _few(FILES)


@pytest.mark.parametrize(
    "path",
    [path if path in FEW else pytest.param(path, marks=pytest.mark.soak) for path in FILES],
    ids=[str(path.relative_to(SHARED)) for path in FILES],
)
def test_it_comes_back(path: Path, setup: Setup, tmp_path: Path) -> None:
    done, restored = there_and_back(path, setup, tmp_path / "out")
    transcript = restored.checkpoint.transcript
    dialect = get_dialect(transcript.dialect)
    for part in transcript.parts:
        if part.media != "raw":
            problems = dialect.problems(iter(part.items))
            mendable = [one for one in problems if one.call_id != TRIMMED and one.code != "broken_seal"]
            assert mendable == [], part.name
    if transcript.dialect == "opaque" and not done.receipt.findings and not done.receipt.left_out:
        kept = [file for file in (tmp_path / "out" / "transcript").rglob("*") if file.is_file()]
        assert [file.read_bytes() for file in kept] == [path.read_bytes()]
    if transcript.dialect != "opaque":
        original = read((path,), salvage=True).transcript
        before = {pair for part in original.parts for pair in opaque_strings(iter(part.items))}
        before |= {  # answered by repair
            (answer, value)
            for key, value in before
            if key == "id"
            for answer in ("tool_use_id", "tool_call_id")
        }
        assert called(transcript) == called(original)
        for part in transcript.parts:
            for key, value in opaque_strings(iter(part.items)):
                mended = restored.report.repairs and key in ("uuid", "parentUuid")
                assert (key, value) in before or mended, (key, value)


def test_claude_code_and_anthropic_files_are_known() -> None:
    dialects = {
        path: read((path,), salvage=True).transcript.dialect
        for path in FILES
        if path.is_relative_to(SHARED / "claude_code")
    }
    assert dialects
    assert set(dialects.values()) == {"claude-code"}, dialects


CHAT = [path for path in FILES if path.is_relative_to(SHARED / "openai_chat") and path.suffix == ".json"]


@pytest.mark.parametrize("path", CHAT, ids=[path.name for path in CHAT])
def test_chat_comes_back_in_its_own_form(path: Path, setup: Setup, tmp_path: Path) -> None:
    _, restored = there_and_back(path, setup, tmp_path / "out")
    (part,) = restored.checkpoint.transcript.parts
    assert restored.checkpoint.transcript.dialect == "openai-chat"
    before = json.loads(path.read_bytes())
    after = json.loads((tmp_path / "out" / "transcript" / part.name).read_bytes())
    gone = len(restored.report.repairs)  # a line of the harness's own that no API would take
    assert gone == (1 if "hermes" in path.name else 0)
    messages = list(taken_out(before))
    kept = list(taken_out(after))
    assert before == after  # all that stands around the messages
    assert len(kept) == len(messages) - gone
    for old, new in zip(messages, kept, strict=False):
        assert list(new) == [key for key in old if key in new]
        for key in ("role", "name", "tool_calls", "tool_call_id"):
            assert new.get(key) == old.get(key)
        if old["role"] != "tool":
            assert new.get("content") == old.get("content")


def taken_out(value: Any) -> Iterator[Any]:
    """The messages of a file of Chat Completions, which are emptied."""
    lists = [run["traj"] for run in value] if isinstance(value, list) and "traj" in value[0] else []
    for messages in lists or [value if isinstance(value, list) else value["messages"]]:
        yield from messages
        messages.clear()


def test_the_whole_transcript_can_be_kept(setup: Setup, tmp_path: Path) -> None:
    path = next(path for path in FILES if path.is_relative_to(SHARED / "claude_code"))
    _, restored = there_and_back(path, setup, tmp_path / "out", keep_full=True)
    full = restored.checkpoint.full_transcript
    assert full is not None
    original = read((path,), salvage=True).transcript
    kept = (tmp_path / "out" / "full" / full.parts[0].name).read_bytes().splitlines()
    lines = list(original.parts[0].items.lines())
    assert len(kept) == len(lines)
    changed = sum(a != b for a, b in zip(kept, lines, strict=True))
    assert changed <= sum(restored.report.record.findings.values())
    assert all(json.loads(line) is not None for line in kept)
