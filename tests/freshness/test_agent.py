"""The probes `harness`, `model`, `prompt` and `tools`, and what transcripts show of the last two."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.freshness import Context, Current, Probe, Verdict, judge_all
from archiver.freshness.agent import HarnessProbe, ModelProbe, PromptProbe, ToolsProbe
from archiver.freshness.shown import shown
from archiver.model import Environment, Items, JsonValue, Transcript, TranscriptPart

from .repos import context

PROMPT, TOOLS = PromptProbe(), ToolsProbe()
READ = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
WRITE = {"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}}


def judge(probe: Probe, captured: JsonValue, world: Context) -> Verdict:
    return judge_all({probe.name: captured}, world, probes=[probe]).verdicts[0]


@pytest.mark.parametrize("probe", [HarnessProbe(), ModelProbe()])
def test_names(probe: Probe) -> None:
    run = Environment(**{probe.name: "one 1.0"})
    captured = probe.capture(context(environment=run))
    assert captured == {"name": "one 1.0"}
    assert probe.capture(context()) is None
    same = judge(probe, captured, context(current=Current(**{probe.name: "one 1.0"})))
    assert (same.state, same.evidence) == ("FRESH", "one 1.0, then and now")
    other = judge(probe, captured, context(current=Current(**{probe.name: "one 1.1"})))
    assert (other.state, other.evidence) == ("STALE", "one 1.0 then, one 1.1 now")
    assert f"--accept {probe.name}" in str(other.remedy)
    unsaid = judge(probe, captured, context())
    assert (unsaid.state, f"freshness.{probe.name}" in str(unsaid.remedy)) == ("UNKNOWN", True)
    assert judge(probe, {"name": 1}, context()).state == "UNKNOWN"


def test_prompt() -> None:
    captured = PROMPT.capture(context(shown=Current(prompt="You are careful.\n")))
    assert isinstance(captured, dict)
    assert captured["size"] == len("You are careful.")
    assert "careful" not in str(captured)
    now = context(current=Current(prompt="You are careful."))
    assert judge(PROMPT, captured, now).state == "FRESH"
    other = judge(PROMPT, captured, context(current=Current(prompt="You are quick.")))
    assert (other.state, "16 characters then, 14 now" in other.evidence) == ("STALE", True)
    assert "freshness.prompt_file" in str(judge(PROMPT, captured, context()).remedy)
    for nothing in (None, "", " \n"):
        assert PROMPT.capture(context(shown=Current(prompt=nothing))) is None


def test_a_prompt_that_was_redacted_can_be_made_again() -> None:
    """Each save draws a key of its own for the fingerprints in placeholders."""

    def redact(mark: str) -> Callable[[str], str]:
        return lambda text: text.replace("s3cret", f"[REDACTED:api-key:{mark * 12}]")

    captured = PROMPT.capture(context(shown=Current(prompt=redact("a")("use s3cret"))))
    now = context(current=Current(prompt="use s3cret"), redact=redact("b"))
    assert judge(PROMPT, captured, now).state == "FRESH"
    assert judge(PROMPT, captured, replace(now, current=Current(prompt="use an0ther"))).state == "STALE"


def test_a_prompt_in_a_file(tmp_path: Path) -> None:
    captured = PROMPT.capture(context(shown=Current(prompt="You are careful.")))
    path = tmp_path / "prompt.md"
    now = context(current=Current(prompt=path))
    missing = judge(PROMPT, captured, now)
    assert (missing.state, "it is not there" in missing.evidence) == ("UNKNOWN", True)
    path.write_bytes(b"You are careful.\r\n")
    assert judge(PROMPT, captured, now).state == "FRESH"
    path.write_text("You are quick.")
    assert judge(PROMPT, captured, now).state == "STALE"
    path.unlink()
    os.mkfifo(path)
    assert judge(PROMPT, captured, now).state == "UNKNOWN"


def test_tools(tmp_path: Path) -> None:
    captured = TOOLS.capture(context(shown=Current(tools=[READ, WRITE])))
    assert isinstance(captured, dict)
    assert (captured["count"], captured["names"]) == (2, ["read", "write"])

    def now(*tools: Any) -> Verdict:
        return judge(TOOLS, captured, context(current=Current(tools=list(tools))))

    assert now(WRITE, dict(reversed(READ.items()))).state == "FRESH"  # neither order counts
    changed = now(READ, {"type": "function", "function": {"name": "write", "parameters": {}}})
    assert (changed.state, "the same names, but a schema changed" in changed.evidence) == ("STALE", True)
    other = now(READ, {"type": "web_search"})
    assert "came: web_search; went: write" in other.evidence
    assert judge(TOOLS, captured, context(current=Current(tools={"tools": [READ, WRITE]}))).state == "FRESH"
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([READ, WRITE]))
    in_file = context(current=Current(tools=path))
    assert judge(TOOLS, captured, in_file).state == "FRESH"
    for wrong in ("[]", "{", "3", '"x"'):
        path.write_text(wrong)
        assert judge(TOOLS, captured, in_file).state == "UNKNOWN"
    assert "freshness.tools_file" in str(judge(TOOLS, captured, context()).remedy)
    assert TOOLS.capture(context()) is None


def test_many_tools_keep_no_names() -> None:
    tools = [{"name": f"tool_with_a_long_name_{number}"} for number in range(500)]
    captured = TOOLS.capture(context(shown=Current(tools=tools)))
    assert isinstance(captured, dict)
    assert captured["names"] is None
    verdict = judge(TOOLS, captured, context(current=Current(tools=tools[1:])))
    assert verdict.evidence == "other tools: 500 then, 499 now"


@pytest.mark.parametrize("captured", [None, 1, {}, {"digest": {"salt": "00", "scrypt": "00"}}])
def test_a_record_without_a_digest_is_unknown(captured: JsonValue) -> None:
    now = context(current=Current(prompt="x", tools=[READ]))
    assert judge(PROMPT, captured, now).state == "UNKNOWN"
    assert judge(TOOLS, captured, now).state == "UNKNOWN"


def transcript(dialect: str, *items: Any, header: Any = None) -> Transcript:
    part = TranscriptPart(name="t", media="json" if header else "jsonl", header=header, items=Items.of(items))
    return Transcript(dialect=dialect, parts=(part,))


USER = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("found", "prompt", "tools"),
    [
        (transcript("openai-chat", {"role": "system", "content": "Be kind."}, USER), "Be kind.", None),
        (
            transcript("openai-chat", USER, header={"model": "m", "tools": [WRITE], "messages": []}),
            None,
            [WRITE],
        ),
        (
            transcript("anthropic-messages", USER, header={"system": "Be kind.", "tools": [READ]}),
            "Be kind.",
            [READ],
        ),
        (
            transcript("anthropic-messages", USER, header={"system": [{"type": "text", "text": "Be kind."}]}),
            "Be kind.",
            None,
        ),
        (
            transcript("openai-responses", USER, header={"instructions": "Be kind.", "tools": [READ]}),
            "Be kind.",
            [READ],
        ),
        (
            transcript(
                "openai-responses", [{"request": {"instructions": "Be kind.", "tools": [READ]}}], USER
            ),
            "Be kind.",
            [READ],
        ),
        (
            transcript(
                "codex",
                {"type": "session_meta", "payload": {"id": "x", "base_instructions": {"text": "Be kind."}}},
                {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": []}},
            ),
            "Be kind.",
            None,
        ),
        (
            transcript("codex", {"id": "x", "timestamp": "2026-01-01T00:00:00Z", "instructions": "Be kind."}),
            "Be kind.",
            None,
        ),
        (
            transcript(
                "codex",
                {
                    "type": "response_item",
                    "payload": {
                        "type": "message",
                        "role": "developer",
                        "content": [{"type": "input_text", "text": "of this turn"}],
                    },
                },
            ),
            None,
            None,
        ),
        (transcript("claude-code", {"type": "user", "message": USER}), None, None),
        (transcript("opaque", 1, "x", None, []), None, None),
        (Transcript(), None, None),
    ],
)
def test_what_transcripts_show(found: Transcript, prompt: str | None, tools: Any) -> None:
    assert shown(found) == Current(prompt=prompt, tools=tools)
