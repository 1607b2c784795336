"""Real public runs of Codex and the Responses API, there and back: valid, with what only a provider reads."""

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
KEYS = ("encrypted_content", "id", "call_id", "session_id", "turn_id", "previous_response_id", "window_id")
LONE = {"codex/03-agentv-0.142.5-enc.jsonl": 1}
"""Files with reasoning that nothing of the model follows, which repair takes out."""
DESTROYED = {"codex/02-agentv-0.142.2-enc.jsonl", "codex/03-agentv-0.142.5-enc.jsonl"}
"""Files in which somebody wrote REDACTED over what the provider encrypted: reasoning, and a compaction."""
ANSWERED = {"codex/04-agentv-0.142.0-ends-open2.jsonl": 2, "codex/05-agentv-0.140-small-open.jsonl": 2}
"""Files that end in calls without a result."""


def sources() -> list[Path]:
    if not SHARED.is_dir():
        return []
    return sorted(path for name in ("codex", "openai_responses") for path in (SHARED / name).iterdir())


FILES = sources()
pytestmark = pytest.mark.skipif(not FILES, reason=f"no transcripts at {SHARED}: set ARCHIVER_SHARED")


def there_and_back(path: Path, setup: Setup, into: Path) -> tuple[Archived, Restored]:
    done = archive(Source(paths=(path,)), setup, options=Options())
    return done, restore(done.record.run, setup, into=into, accept=("age", "git_commit"))


def sealed(value: Any) -> Iterator[tuple[str, str]]:
    """Ids and encrypted texts, in order, wherever they stand."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in KEYS and isinstance(inner, str):
                yield key, inner
            yield from sealed(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sealed(inner)


def of_transcript(transcript: Transcript) -> list[tuple[str, str]]:
    (part,) = transcript.parts
    return [pair for value in (part.header, *part.items) for pair in sealed(value)]


def kinds(transcript: Transcript) -> list[str]:
    items = (item.get("payload", item) for item in transcript.parts[0].items)
    return [str(item.get("type")) for item in items if isinstance(item, dict)]


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SHARED)) for path in FILES])
def test_it_comes_back_valid_with_its_ids_and_seals(path: Path, setup: Setup, tmp_path: Path) -> None:
    name = str(path.relative_to(SHARED))
    before = read((path,)).transcript
    done, restored = there_and_back(path, setup, tmp_path / "out")
    after = restored.checkpoint.transcript
    assert done.record.dialect == after.dialect == path.parent.name.replace("_", "-")
    problems = get_dialect(after.dialect).problems(iter(after.parts[0].items))
    assert [problem.code for problem in problems] == ["broken_seal"] * (name in DESTROYED)
    assert any("broken_seal" in warning for warning in restored.report.warnings) == (name in DESTROYED)
    found, expected = of_transcript(after), of_transcript(before)
    gone = [one.code for one in restored.report.repairs if one.code in ("lone_reasoning", "broken_seal")]
    assert gone.count("lone_reasoning") == LONE.get(name, 0)
    assert bool(gone) == (name in DESTROYED)
    assert kinds(before).count("reasoning") - kinds(after).count("reasoning") == len(gone)
    if gone:
        rest = iter(expected)
        assert all(pair in rest for pair in found)
        assert ("encrypted_content", "REDACTED") in found  # what stands for all before it cannot go
    else:
        answered = ANSWERED.get(name, 0)
        assert found[: len(expected)] == expected
        assert [key for key, _ in found[len(expected) :]] == ["call_id"] * answered
        assert set(found[len(expected) :]) <= set(expected)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SHARED)) for path in FILES])
def test_the_native_file_is_read_again_as_what_it_was(path: Path, setup: Setup, tmp_path: Path) -> None:
    _, restored = there_and_back(path, setup, tmp_path / "out")
    (native,) = (file for file in (tmp_path / "out" / "transcript").rglob("*") if file.is_file())
    assert native.name == path.name
    again = read((native,)).transcript
    assert again.dialect == restored.checkpoint.transcript.dialect
    assert list(again.parts[0].items) == list(restored.checkpoint.transcript.parts[0].items)
    if path.suffix == ".jsonl":
        assert all(json.loads(line) is not None for line in native.read_bytes().splitlines())


@pytest.mark.parametrize("name", sorted(DESTROYED))
def test_a_session_of_codex_says_how_it_goes_on(name: str, setup: Setup, tmp_path: Path) -> None:
    _, restored = there_and_back(SHARED / name, setup, tmp_path / "out")
    _, copy, resume = restored.report.next_steps
    session = next(pair for pair in of_transcript(restored.checkpoint.transcript) if pair[0] == "session_id")[
        1
    ]
    assert resume.endswith(f"&& codex resume {session}")
    assert f"-{session}.jsonl" in copy
    assert '"${CODEX_HOME:-$HOME/.codex}"/sessions/2026/' in copy
