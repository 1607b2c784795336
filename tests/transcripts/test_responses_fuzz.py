"""Values of any shape where Responses items and lines of Codex are due: nothing is raised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.compact import CompactOptions, compact
from archiver.model import Checkpoint, Items, Receipt, Transcript, TranscriptPart
from archiver.redacted import vouch
from archiver.repair import repair
from archiver.scratch import Scratch
from archiver.transcripts import detect, get_dialect

from .samples import START, line_of

NAMES = ("openai-responses", "codex")
SMALL = CompactOptions(keep_turns=1, small_result=40, blob_limit=64)
WORDS = (
    *("type", "role", "content", "id", "call_id", "output", "outputs", "payload", "timestamp", "name"),
    *("arguments", "input", "summary", "encrypted_content", "status", "tools", "execution", "result", "info"),
    *("replacement_history", "images", "message", "action", "url", "text", "total_token_usage", "git"),
    *("function_call", "function_call_output", "message", "reasoning", "shell_call_output", "response_item"),
    *("event_msg", "compacted", "session_meta", "user_message", "token_count", "exec_command_end"),
    *("input_image", "image_generation_call", "local_shell_call", "tool_search_call", "user", "assistant"),
)
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=14,
)
parts = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(WORDS) | odd}, optional={"text": odd}), max_size=2
)
payloads = st.fixed_dictionaries(
    {"type": st.sampled_from(WORDS) | odd},
    optional={"role": odd, "content": parts | odd, "output": parts | odd},
)
lines = (
    odd
    | payloads
    | st.fixed_dictionaries(
        {
            "type": st.sampled_from(("response_item", "event_msg", "compacted", "session_meta")) | odd,
            "payload": payloads | odd,
            "timestamp": st.just("2026-01-31T14:00:00Z") | odd,
        }
    )
)


short = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
long = settings(short, max_examples=8000)


@pytest.mark.parametrize("name", NAMES)
@short
@given(items=st.lists(lines, min_size=1, max_size=3))
def test_whatever_stands_in_a_file_is_bearable(name: str, items: list[Any]) -> None:
    _is_bearable(name, items)


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
@long
@given(items=st.lists(lines, min_size=1, max_size=3))
def test_much_of_what_stands_in_files(name: str, items: list[Any]) -> None:
    _is_bearable(name, items)


@short
@given(values=st.lists(lines, max_size=4), container=odd)
def test_whatever_stands_in_a_file_is_known_or_not(values: list[Any], container: Any) -> None:
    detect.of_messages(values, container)
    detect.of_lines(values)
    detect.of_conversations(values)


def _is_bearable(name: str, items: list[Any]) -> None:
    dialect = get_dialect(name)
    dialect.problems(iter(items))
    for item in items:
        facts = dialect.facts(item)
        dialect.fold(item)
        dialect.with_sound_text(item)
        dialect.without_reasoning(item)
        dialect.user_note("note", item)
        dialect.with_sound_role(item)
        dialect.renamed(item, None)
        dialect.renamed(item, "new")
        dialect.numbered(item, items[0])
        dialect.renamed_tool(item, {call.name: "new" for call in facts.calls})
        for result in facts.results:
            dialect.stub_result(item, result.call_id, "[stub]")
            dialect.without_result(item, result.call_id)
            renamed = dialect.renamed_result(item, result.call_id, "new")
            assert not result.call_id or "new" in [one.call_id for one in dialect.facts(renamed).results]
        for call in facts.calls:
            dialect.error_results([call], item, "[lost]")
            if not call.answered_elsewhere:
                renamed = dialect.renamed_call(item, call.id, "new")
                assert "new" in [one.id for one in dialect.facts(renamed).calls]
                left = dialect.renamed_call(item, call.id, None)
                assert left is None or len(dialect.facts(left).calls) == len(facts.calls) - 1
        for blob in list(dialect.blobs(item)):
            dialect.opaque(blob.path, item)
            dialect.replace_blob(item, blob.path, "[blob]")
    with Scratch() as scratch:
        part = TranscriptPart(name="main", items=Items.of_lines(map(line_of, items)))
        value = Checkpoint(
            run_id="run",
            task_id="task",
            created_at=START,
            checkpoint_at=START,
            transcript=Transcript(dialect=name, parts=(part,)),
        )
        after, _ = repair(value, scratch)
        compact(vouch(after, Receipt()), None, SMALL, scratch)
