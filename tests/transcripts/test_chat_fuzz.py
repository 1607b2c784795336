"""Values of any shape where messages of Chat Completions are due: nothing is raised, every edit is one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.repair import repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect

from .repairing import of_items

DIALECT = get_dialect("openai-chat")
WORDS = (
    *("role", "content", "tool_calls", "function_call", "id", "name", "arguments", "type", "text", "url"),
    *(
        "function",
        "custom",
        "tool_call_id",
        "thinking_blocks",
        "signature",
        "image_url",
        "input_audio",
        "data",
    ),
    *("reasoning_content", "provider_specific_fields", "extra_content", "data:image/png;base64,iVBORw0K"),
    *("user", "assistant", "tool", "exit", "approval", "system", "model", "REDACTED", "thinking", "a.b", ""),
)
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=10,
)
calls = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(("a", "b")) | odd, "function": st.fixed_dictionaries({"name": odd}) | odd}
    )
    | odd,
    max_size=3,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "assistant", "tool", "exit", "approval", "system")) | odd},
    optional={
        "content": st.just("said") | odd,
        "tool_calls": calls | odd,
        "function_call": odd,
        "tool_call_id": st.sampled_from(("a", "b")) | odd,
        "thinking_blocks": odd,
        "provider_specific_fields": odd,
    },
)


short = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
long = settings(short, max_examples=4000)


@short
@given(items=st.lists(messages | odd, min_size=1, max_size=5))
def test_whatever_stands_in_a_file_is_bearable(items: list[Any]) -> None:
    _is_bearable(items)


@pytest.mark.soak
@long
@given(items=st.lists(messages | odd, min_size=1, max_size=5))
def test_much_of_what_stands_in_files(items: list[Any]) -> None:
    _is_bearable(items)


def _is_bearable(items: list[Any]) -> None:
    found = DIALECT.problems(iter(items))
    assert all(0 <= problem.item < len(items) for problem in found)
    for item in items:
        _edits(item)
    with Scratch() as scratch:
        after, report = repair(of_items(DIALECT.name, items), scratch)
        again, second = repair(after, scratch)
        left = [problem.code for problem in DIALECT.problems(after.transcript.parts[0].items.values())]
    assert again is after
    assert second.actions == ()
    assert sorted(left) == sorted(one.code for one in report.left)


def _edits(item: Any) -> None:
    before = json.dumps(item)
    facts = DIALECT.facts(item)
    DIALECT.with_sound_text(item)
    mended = DIALECT.with_sound_role(item)
    assert mended is None or DIALECT.facts(mended).role != "meta" or isinstance(mended, list)
    for call in facts.calls:
        if not call.id.startswith("function_call:"):
            renamed = DIALECT.facts(DIALECT.renamed_call(item, call.id, "new")).calls
            assert "new" in [one.id for one in renamed]
            left = DIALECT.renamed_call(item, call.id, None)
            assert left is None or len(DIALECT.facts(left).calls) == len(facts.calls) - 1
        DIALECT.renamed_tool(item, {call.name: "new"})
    for result in facts.results:
        DIALECT.renamed_result(item, result.call_id, "new")
    assert json.dumps(item) == before
