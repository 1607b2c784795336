"""Properties of every edit: nothing but what it names changes, and its argument stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.transcripts import DIALECTS, Dialect, get_dialect
from archiver.transcripts.dialect import Call
from transcripts.samples import anthropic_messages, claude_session, line_of

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "anthropic-messages": anthropic_messages(3, seed=5, images=True),
    "claude-code": list(claude_session(3, seed=5, images=True, compaction=True)),
}
NAMES = st.sampled_from(sorted(SAMPLES))


@st.composite
def items(draw: st.DrawFn) -> tuple[Dialect, Any]:
    """An item of a sample, with keys and blocks of unknown kinds strewn in."""
    name = draw(NAMES)
    item = copy.deepcopy(draw(st.sampled_from(SAMPLES[name])))
    item[draw(st.sampled_from(["zExtra", "aExtra"]))] = draw(st.sampled_from([None, 1, "x", [{"k": "v"}]]))
    message = item.get("message", item)
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list) and draw(st.booleans()):
        content.insert(draw(st.integers(0, len(content))), {"type": "novelty", "id": 3, "data": {"a": [1]}})
    return get_dialect(name), item


def edits(dialect: Dialect, item: Any) -> Iterator[Callable[[], Any]]:
    facts = dialect.facts(item)
    ids = [result.call_id for result in facts.results] or ["toolu_none"]
    calls = [Call(ids[0], "Read", {}), Call("toolu_new", "Read", {})]
    own, _ = dialect.link(item)
    yield lambda: dialect.stub_result(item, ids[0], "[stub]")
    yield lambda: dialect.fold(item)
    yield lambda: dialect.without_reasoning(item)
    yield lambda: dialect.relinked(item, {str(own): None, "x": "y"})
    yield lambda: dialect.with_results(item, calls, "[lost]") if facts.role == "user" else item
    yield lambda: dialect.without_result(item, ids[0])
    yield lambda: dialect.error_results(calls, item, "[lost]")
    for blob in dialect.blobs(item):
        yield partial(dialect.replace_blob, item, blob.path, "[blob]")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


@given(items())
@settings(max_examples=150, deadline=None)
def test_an_edit_leaves_its_argument_alone(drawn: tuple[Dialect, Any]) -> None:
    dialect, item = drawn
    before = line_of(item)
    for edit in edits(dialect, item):
        edit()
        assert line_of(item) == before


@given(items())
@settings(max_examples=150, deadline=None)
def test_an_edit_keeps_all_it_does_not_name(drawn: tuple[Dialect, Any]) -> None:
    dialect, item = drawn
    for edit in list(edits(dialect, item))[:3]:
        edited = edit()
        if edited is None or edited is item:
            continue
        assert [key for key in item if key in edited] == list(edited)
        kept = {str(leaf) for _, leaf in leaves(edited)}
        lost = {str(leaf) for _, leaf in leaves(item)} - kept
        results = {part for result in dialect.facts(item).results for part in (result.text,)}
        may_go = str([*results, item.get("toolUseResult"), *reasoning(item), *pictures(dialect, item)])
        assert all(repr(leaf)[1:-1] in may_go or leaf in may_go for leaf in lost), lost


def reasoning(item: Any) -> list[Any]:
    content = (item.get("message") or item).get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if block["type"] == "thinking"]


def pictures(dialect: Dialect, item: Any) -> list[Any]:
    """Results that hold pictures go whole: blocks, media types and all."""
    if not list(dialect.blobs(item)):
        return []
    content = (item.get("message") or item).get("content")
    return [block for block in content if block["type"] == "tool_result"]


@given(items())
@settings(max_examples=100, deadline=None)
def test_edits_that_find_nothing_give_the_same_object(drawn: tuple[Dialect, Any]) -> None:
    dialect, item = drawn
    facts = dialect.facts(item)
    assert dialect.stub_result(item, "toolu_none", "[stub]") is item
    assert dialect.without_result(item, "toolu_none") is item
    assert dialect.relinked(item, {}) is item
    if not facts.has_reasoning:
        assert dialect.without_reasoning(item) is item
    folded = dialect.fold(item)
    assert dialect.fold(folded) is folded


@given(items())
@settings(max_examples=100, deadline=None)
def test_opaque_leaves_stay_through_edits_and_are_told_by_dialect(drawn: tuple[Dialect, Any]) -> None:
    dialect, item = drawn
    texts = {path: leaf for path, leaf in leaves(item) if isinstance(leaf, str)}
    opaque = {path: leaf for path, leaf in texts.items() if dialect.opaque(path, item)}
    assert not {path[-1] for path in opaque} & {"thinking", "text", "name", "command", "file_path"}
    folded = dialect.fold(item)
    for path, leaf in opaque.items():
        if path[0] != "toolUseResult":
            assert dict(leaves(folded))[path] == leaf


def test_the_opaque_dialect_edits_nothing() -> None:
    dialect = DIALECTS["opaque"]
    item = SAMPLES["claude-code"][3]
    assert dialect.facts(item).role == "meta"
    assert list(dialect.problems(iter(SAMPLES["claude-code"][5:]))) == []
    for edited in (
        dialect.stub_result(item, "x", "y"),
        dialect.fold(item),
        dialect.without_reasoning(item),
        dialect.relinked(item, {item.get("parentUuid", ""): None}),
        dialect.without_result(item, "x"),
    ):
        assert edited is item


def test_an_unknown_dialect_is_opaque() -> None:
    assert get_dialect("made-up-by-a-newer-release").name == "opaque"
    assert "made-up-by-a-newer-release" not in DIALECTS
