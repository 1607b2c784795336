"""Every public transcript at hand is read as something, and what its collection says of it is found."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from archiver.transcripts import get_dialect, shapes
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import Reading, pairs, read
from archiver.transcripts.responses_items import kind_of
from archiver.transcripts.survey import survey

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"
MANIFEST = SHARED / "manifest.json"

pytestmark = pytest.mark.skipif(not MANIFEST.exists(), reason=f"no public transcripts at {SHARED}")

KNOWN = {
    "claude_code": "claude-code",
    "anthropic_messages": "anthropic-messages",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "codex": "codex",
}
"""Dialects by folder; what lies in other folders is opaque."""
OTHERS = {
    # Output of Claude Code: its lines, though they lie with the messages.
    "anthropic_messages/06-stream-json-multi-turn.jsonl": "claude-code",
    "anthropic_messages/07-stream-json-max-turns.jsonl": "claude-code",
    # An app's own records around messages: no dialect of ours.
    "anthropic_messages/01-happy-log4-935KB.json": "opaque",
    # Conversations retold in one text each.
    "openai_chat/02-taubench-retail-fewshot.jsonl": "opaque",
    # What other harnesses send to the API, word for word.
    "mini_swe_agent/02-tests-github-issue.traj.json": "openai-chat",
    "mini_swe_agent/03-tests-local.traj.json": "openai-chat",
    "openhands_v1/04-sdk-pr-20260121-205605/telemetry_phase_a": "openai-chat",
    "openhands_v1/04-sdk-pr-20260121-205605/telemetry_phase_b": "openai-chat",
    "openhands_v1/04-sdk-pr-20260121-205605/telemetry_phase_c": "openai-chat",
}
"""Files, and folders of files, that are not what their folder says."""

CORRECTED = {
    # The collection counts the longest request; the last one begins with a compaction.
    "openai_responses/03-compact-messages.json": {"messages": -3},
    # Both pictures are in responses; the last request has the calls without what they gave.
    "openai_responses/07-code-exec-image.json": {"images": -2},
    # Pictures in results of tools.
    "codex/03-agentv-0.142.5-enc.jsonl": {"images": 4},
}
COUNTED = {"openai-chat": {"system", "user", "assistant", "tool"}}
"""What the collection counts as messages, where that is not what a person and the model said."""


def files() -> list[Path]:
    return sorted(path for path in SHARED.rglob("*") if path.is_file()) if SHARED.exists() else []


def entries() -> list[dict[str, Any]]:
    manifest = json.loads(MANIFEST.read_bytes()) if MANIFEST.exists() else []
    return [entry for entry in manifest if entry["format"] in KNOWN]


def name_of(value: Any) -> str:
    return value["file"] if isinstance(value, dict) else str(value.relative_to(SHARED))


def dialect_of(path: Path) -> str:
    own = path.relative_to(SHARED)
    for place in (own, own.parent):
        if str(place) in OTHERS:
            return OTHERS[str(place)]
    return KNOWN.get(own.parts[0], "opaque")


def is_message(item: Any) -> bool:
    """True for a message among Responses items, of which other kinds have roles of their own."""
    return kind_of(item.get("payload", item)) == "message"


def native(reading: Reading) -> bytes:
    pieces: list[bytes] = []
    write_native(reading.transcript.parts[0], pieces.append)
    return b"".join(pieces)


def test_the_collection_is_there() -> None:
    assert len(files()) > 100
    assert len(entries()) > 20


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_every_file_is_read_and_comes_back(path: Path) -> None:
    reading = read([path])
    assert reading.transcript.dialect == dialect_of(path)
    assert reading.total_bytes >= path.stat().st_size
    part = reading.transcript.parts[0]
    original = path.read_bytes()
    if part.media == "json":
        assert json.loads(native(reading)) == json.loads(original)
    elif part.media == "raw":
        assert native(reading) == original
    else:
        lines = native(reading).splitlines()
        if b"}{" in original and len(lines) != original.count(b"\n") + (not original.endswith(b"\n")):
            assert b"".join(lines) == original.replace(b"\n", b"")  # two objects on one line
        else:
            # A last line that had no end has one now, or the next append would be glued to it.
            assert b"\n".join(lines) == original.rstrip(b"\n")
    assert reading.dropped == []


@pytest.mark.parametrize("entry", entries(), ids=name_of)
def test_counts_are_those_of_the_collection(entry: dict[str, Any]) -> None:
    reading = read([SHARED / entry["file"]])
    dialect = get_dialect(reading.transcript.dialect)
    if dialect.name == "opaque":
        assert OTHERS[entry["file"]] == "opaque"
        return
    # The collection counts the main file of a folder; its sub-agents are parts of their own here.
    items = reading.transcript.parts[0].items
    facts = [dialect.facts(item) for item in items.values()]
    problems = Counter(problem.code for problem in dialect.problems(items.values()))
    counted = COUNTED.get(dialect.name, {"user", "assistant"})
    hosted = dialect.name in (
        "openai-responses",
        "codex",
    )  # calls of the provider's own tools are not counted
    found = {
        "messages": sum(map(is_message, items.values()))
        if hosted
        else sum(one.role in counted for one in facts),
        "tool_calls": sum(not (hosted and call.answered_elsewhere) for one in facts for call in one.calls),
        "unanswered_tool_calls": problems["unanswered_call"],
        "orphan_results": problems["orphan_result"],
        "images": sum(len(list(dialect.blobs(item))) for item in items.values()),
    }
    said = {key: entry[key] for key in found}
    if "two JSON objects on one line" in (entry["note"] or "") or "chainA" in entry["file"]:
        said["messages"] += 1  # the collection could not read that line
    if entry["file"].endswith("38-jazzy-49KB.jsonl"):
        said["tool_calls"] -= 1  # a made-up call without an id, which nothing can answer
        said["orphan_results"] += 2  # results without an id
    if entry["file"].startswith("openai_chat/0") and "response" in (reading.transcript.parts[0].header or ()):
        for key in ("messages", "tool_calls", "unanswered_tool_calls"):
            said[key] -= 1  # the response that a log holds beside the messages: nobody has answered it yet
    for key, difference in CORRECTED.get(entry["file"], {}).items():
        said[key] += difference
    if "taubench-gpt4o" in entry["file"]:
        found["tool_calls"] = len({call.id for one in facts for call in one.calls})  # ids are used again
    assert found == said


@pytest.mark.parametrize("entry", entries(), ids=name_of)
def test_surveys_and_opaque_leaves(entry: dict[str, Any]) -> None:
    reading = read([SHARED / entry["file"]])
    dialect = get_dialect(reading.transcript.dialect)
    for part in reading.transcript.parts:
        if part.items.raw:
            continue
        found = survey(part.items, dialect, header=part.header)
        assert found.items == sum(1 for _ in pairs(part.items))
        for item in part.items.values():
            for path, leaf in leaves(item):
                if path[-1] == "signature" and shapes.is_blob(leaf) and dialect.name != "opaque":
                    assert dialect.opaque(path, item)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [found for index, inner in enumerate(value) for found in leaves(inner, (*path, index))]
    return [(path, value)] if isinstance(value, str) else []
