"""What holds for every session: generated ones in every dialect, and the real ones where they are at hand."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.compact import Compacted, CompactOptions, compact, read_stub
from archiver.compact.notes import read_cut, without_attachments
from archiver.model import Checkpoint
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from compact.sessions import (
    DIALECTS,
    Turn,
    Written,
    checkpoint,
    items_of,
    lines_of,
    redacted,
    sessions,
    write,
)

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"
LIMITS = {"head": 256, "tail": 2048, "output_limit": 5000}
options = st.builds(
    CompactOptions, keep_turns=st.integers(1, 4), **{k: st.just(v) for k, v in LIMITS.items()}
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _problems(dialect: str, lines: list[bytes]) -> Counter[tuple[str, str | None, str | None]]:
    found = get_dialect(dialect).problems(map(jsonio.loads, lines))
    return Counter((problem.code, problem.call_id, problem.ref) for problem in found)


def _holds(dialect: str, lines: list[bytes], chosen: CompactOptions, scratch: Scratch) -> Compacted:
    """Check what must hold for any transcript, and give the compacted one."""
    first = compact(redacted(checkpoint(dialect, lines)), None, chosen, scratch)
    value = first.checkpoint.value
    _same_again(value, first, chosen, scratch)
    assert not _problems(dialect, lines_of(value)) - _problems(dialect, lines)
    assert first.report.bytes_after == sum(len(line) + 1 for line in lines_of(value))
    assert first.report.bytes_before == sum(len(line) + 1 for line in lines)
    assert len(value.transcript.parts[0].items) == len(lines_of(value))
    _same_instructions(dialect, lines, value)
    _same_reasoning(dialect, lines, value)
    _notes_are_true(dialect, lines, first)
    return first


def _same_again(value: Checkpoint, first: Compacted, chosen: CompactOptions, scratch: Scratch) -> None:
    again = compact(first.checkpoint, None, chosen, scratch).checkpoint.value
    assert lines_of(again) == lines_of(value)
    assert again.document() == value.document()
    blank = first.checkpoint.derive(lambda held: held.model_copy(update={"summary": ""}))
    assert compact(blank, None, chosen, scratch).checkpoint.value.summary == value.summary


def _same_instructions(dialect: str, lines: list[bytes], value: Checkpoint) -> None:
    facts = get_dialect(dialect).facts
    said = [facts(jsonio.loads(line)).instruction for line in lines]
    kept = [without_attachments(facts(item).instruction) for item in items_of(value)]
    assert [text for text in kept if text] == [text for text in said if text]


def _same_reasoning(dialect: str, lines: list[bytes], value: Checkpoint) -> None:
    before, after = (
        [json.dumps(block, sort_keys=True) for item in items for block in _thinking(item)]
        for items in (map(jsonio.loads, lines), items_of(value))
    )
    assert after == before[len(before) - len(after) :] or not Counter(after) - Counter(before)


def _thinking(item: Any) -> list[dict[str, Any]]:
    content = item.get("message", item).get("content") if isinstance(item, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "thinking"]


def _notes_are_true(dialect: str, lines: list[bytes], compacted: Compacted) -> None:
    """Every digest is that of what was there, and every artifact named is there."""
    facts = get_dialect(dialect).facts
    texts = {
        hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest()
        for line in lines
        for result in facts(jsonio.loads(line)).results
    }
    value = compacted.checkpoint.value
    held = {artifact.sha256 for artifact in value.artifacts}
    bodies = {
        member.path.removeprefix("artifacts/"): Path(str(member.source)).read_bytes()
        for member in compacted.members.value
        if member.path.startswith("artifacts/")
    }
    assert bodies.keys() == held
    assert all(hashlib.sha256(body).hexdigest() == digest for digest, body in bodies.items())
    for item in items_of(value):
        for result in facts(item).results:
            note = read_stub(result.text) or read_cut(result.text)
            if note is not None:
                assert set(note.content.artifacts) <= held
                assert note.content.sha256 in texts or note.content.artifacts


@pytest.mark.parametrize("dialect", DIALECTS)
@quick
@given(session=sessions, chosen=options)
def test_any_session(dialect: str, session: list[Turn], chosen: CompactOptions) -> None:
    written = write(session, dialect)
    with Scratch() as scratch:
        compacted = _holds(dialect, written.lines, chosen, scratch)
        assert compacted.report.bytes_after <= compacted.report.bytes_before
        _last_turns_whole(written, compacted, len(session), chosen)


def _last_turns_whole(written: Written, compacted: Compacted, turns: int, chosen: CompactOptions) -> None:
    """Items of the last turns stay, but for what is over a limit and for a link to what was dropped."""
    kept = [_unlinked(item) for item in items_of(compacted.checkpoint.value)]
    for item, turn in zip(written.items, written.turns, strict=True):
        if turn > turns - chosen.keep_turns and len(json.dumps(item)) < 4000:
            assert _unlinked(item) in kept


def _unlinked(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "parentUuid"}


@pytest.mark.parametrize("dialect", DIALECTS)
@quick
@given(session=sessions, chosen=options, data=st.data())
def test_a_damaged_session_gets_no_worse(
    dialect: str, session: list[Turn], chosen: CompactOptions, data: st.DataObject
) -> None:
    lines = write(session, dialect).lines
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place : place + 1] = [lines[place]] * data.draw(st.sampled_from((0, 2)))
        if not lines:
            return
    with Scratch() as scratch:
        _holds(dialect, lines, chosen, scratch)


def _real() -> list[Path]:
    return sorted((SHARED / "claude_code").rglob("*.jsonl"))


@pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"no transcripts at {SHARED}: set ARCHIVER_SHARED to the folder"
)
@pytest.mark.parametrize("path", _real(), ids=lambda path: path.name)
def test_real_claude_code_sessions(path: Path) -> None:
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip() and _is_json(line)]
    with Scratch() as scratch:
        compacted = _holds("claude-code", lines, CompactOptions(), scratch)
        assert compacted.report.bytes_after <= compacted.report.bytes_before


@pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"no transcripts at {SHARED}: set ARCHIVER_SHARED to the folder"
)
def test_real_anthropic_conversations() -> None:
    conversations = [
        messages
        for path in sorted((SHARED / "anthropic_messages").glob("*.json"))
        for messages in _message_lists(jsonio.loads(path.read_bytes()))
    ]
    assert len(conversations) >= 3
    with Scratch() as scratch:
        for messages in conversations:
            _holds("anthropic-messages", [jsonio.dumps(item) for item in messages], CompactOptions(), scratch)


def _message_lists(value: Any) -> list[list[Any]]:
    if isinstance(value, dict):
        found = [inner for inner in value.values() for inner in _message_lists(inner)]
        own = value.get("messages")
        return [own, *found] if isinstance(own, list) and own else found
    return [found for inner in value for found in _message_lists(inner)] if isinstance(value, list) else []


def _is_json(line: bytes) -> bool:
    try:
        jsonio.loads(line)
    except ValueError:
        return False
    return True
