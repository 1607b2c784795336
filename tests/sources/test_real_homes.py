"""The transcripts handed to this project, laid out as the homes of their harnesses."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from archiver.sources import Found, OpenFiles, Unusable
from archiver.sources.claude_code import ClaudeCode
from archiver.sources.codex import Codex
from archiver.sources.messages import Messages
from archiver.sources.place import Place
from archiver.transcripts.reader import read
from sources.samples import LONG_AGO, NOW, touch

HANDED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"
pytestmark = pytest.mark.skipif(not HANDED.is_dir(), reason="the transcripts are not on this machine")

CLAUDE_CRASHED = {"08-entire-ends-open-small", "14-packmind-ends-open2", "31-happy-task-sdk-unanswered"}
CLAUDE_CRASHED |= {"38-jazzy-49KB"}  # ends with a question
CODEX_CRASHED = {"04-agentv-0.142.0-ends-open2", "05-agentv-0.140-small-open", "13-simonw-sample"}
MESSAGES = {
    "06-stream-json-multi-turn.jsonl": "succeeded",
    "07-stream-json-max-turns.jsonl": "failed",
    "09-cassette-compaction.json": "succeeded",
    "10-cassette-web-search.json": "crashed",  # its response is an event stream, kept as text
    "11-cassette-mcp.json": "succeeded",
    "12-cassette-thinking-other-model.json": "succeeded",
    "13-cassette-unpaired-native.json": "succeeded",
    "01-taubench-gpt4o-airline-4.1MB.json": "crashed",  # its last conversation ends with a result
    "04-openhands-llm-completion-276KB.json": "crashed",  # the log of one request: its response is a call
    "05-sdk-litellm-claude.json": "succeeded",
    "07-sdk-fncall-message.json": "succeeded",
    "10-hermes-large.json": "succeeded",
    "03-compact-messages.json": "succeeded",
    "04-thinking-tool-calls.json": "succeeded",
    "07-code-exec-image.json": "succeeded",
    "08-mcp-server-tool.json": "succeeded",
    "09-prev-response-chain.json": "succeeded",
}
OPAQUE = {"01-happy-log4-935KB.json", "02-taubench-retail-fewshot.jsonl"}


def copied(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder, _, names in os.walk(target):
        Path(folder).chmod(0o700)
        for name in names:
            touch(Path(folder, name), LONG_AGO)


def outcomes(place: Place) -> dict[str, str]:
    """How each run ended, by the name of its main file; each is found once."""
    found = [one for one in place.find() if isinstance(one, Found)]
    assert max(Counter(path for one in found for path in one.paths).values()) == 1
    ended = {}
    for one in found:
        ending = place.ending(one, NOW, OpenFiles())
        assert ending.complete
        assert ending.outcome is not None
        ended[one.paths[0].name] = str(ending.outcome)
    return ended


def test_every_session_of_claude_code_is_found_once(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    copied(HANDED / "claude_code", projects / "-flat")
    for path in [path for path in (projects / "-flat").iterdir() if path.is_dir()]:
        path.rename(projects / path.name)
    place = ClaudeCode("claude-code", tmp_path / ".claude")
    ended = outcomes(place)
    sessions = [path for path in HANDED.glob("claude_code/**/*.jsonl") if not path.name.startswith("agent-")]
    assert set(ended) == {path.name for path in sessions}
    assert len(ended) == len(sessions)
    assert {name.removesuffix(".jsonl") for name, how in ended.items() if how == "crashed"} == CLAUDE_CRASHED
    assert [name for name, how in ended.items() if how == "cancelled"] == [
        "24-obra-summary-snapshots-only.jsonl"
    ]
    assert set(ended.values()) == {"succeeded", "crashed", "cancelled"}
    for one in place.find():
        assert isinstance(one, Found)
        gathered = [part.source.path for part in read(one.paths).files]
        assert {stamp.path for stamp in one.files} == set(gathered)
        assert one.files[0].path == gathered[0]
    of_agents = [len(one.files) for one in place.find() if isinstance(one, Found) and len(one.files) > 1]
    assert sorted(of_agents) == [4, 5]


def test_every_session_of_codex_is_found_once(tmp_path: Path) -> None:
    handed = sorted((HANDED / "codex").glob("*.jsonl"))
    for number, path in enumerate(handed):
        day = tmp_path / "sessions" / "2026" / "02" / f"{number + 1:02}"
        day.mkdir(parents=True)
        shutil.copyfile(path, day / f"rollout-{path.name}")
        touch(day / f"rollout-{path.name}", LONG_AGO)
    ended = outcomes(Codex("codex", tmp_path))
    assert set(ended) == {f"rollout-{path.name}" for path in handed}
    crashed = {name for name, how in ended.items() if how == "crashed"}
    assert {name.removeprefix("rollout-").removesuffix(".jsonl") for name in crashed} == CODEX_CRASHED
    assert set(ended.values()) == {"succeeded", "crashed"}


def test_messages_are_told_from_what_is_none(tmp_path: Path) -> None:
    for name in ("anthropic_messages", "openai_chat", "openai_responses"):
        copied(HANDED / name, tmp_path / "logs" / name)
    place = Messages("messages", tmp_path / "logs")
    assert outcomes(place) == MESSAGES
    said = [one for one in place.find() if isinstance(one, Unusable)]
    assert {Path(one.key).name for one in said} == OPAQUE
    assert {one.why for one in said} == {"it is no transcript of a known format"}
