"""Checkpoints to compare, and strategies that make them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from archiver.comparing import Side, Tree
from archiver.model import (
    Approval,
    Artifact,
    Budget,
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    GitState,
    Items,
    Plan,
    Sizes,
    Spend,
    Step,
    SubtaskResult,
    Transcript,
    TranscriptPart,
    Workspace,
)

NOW = datetime(2026, 1, 31, 14, tzinfo=UTC)


def part(*items: Any, name: str = "main.jsonl", **more: Any) -> TranscriptPart:
    return TranscriptPart(name=name, items=Items.of(items), **more)


def raw(data: bytes, name: str = "log", size: int = 1000) -> TranscriptPart:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return TranscriptPart(name=name, media="raw", items=Items.of_chunks(chunks))


def messages(*items: Any, dialect: str = "anthropic-messages") -> Transcript:
    return Transcript(dialect=dialect, parts=(part(*items),))


def checkpoint(**fields: Any) -> Checkpoint:
    return Checkpoint(**{"run_id": "r", "task_id": "t", "created_at": NOW, "checkpoint_at": NOW, **fields})


def side(made: Checkpoint, seq: int = 1, tree: Tree | None = None, **more: Any) -> Side:
    given = {"findings": {}, "sizes": Sizes(), **more}
    return Side(seq=seq, recorded_at=NOW + timedelta(minutes=seq), checkpoint=made, tree=tree, **given)


ids = st.sampled_from(["a", "b", "c", "d"])
texts = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda one: st.lists(one, max_size=2),
    max_leaves=3,
)
steps = st.builds(Step, id=ids, title=texts, detail=texts)
spends = st.builds(
    Spend,
    tokens_in=st.integers(0, 9),
    tokens_out=st.integers(0, 9),
    cost=st.sampled_from([0.0, 0.1, 0.3]),
    currency=st.sampled_from(["USD", "EUR"]),
    seconds=st.sampled_from([0.0, 1.5]),
)
digests = st.sampled_from(["0" * 64, "1" * 64, "a" * 64])
items = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, texts),
    st.builds(lambda text: {"role": "assistant", "content": [{"type": "text", "text": text}]}, texts),
    st.builds(
        lambda name: {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": name}}
            ],
        },
        ids,
    ),
)


def _listed(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


checkpoints = st.builds(
    checkpoint,
    objective=texts,
    phase=texts,
    note=texts,
    turn=st.integers(0, 3),
    outcome=st.sampled_from(["running", "failed"]),
    summary=texts,
    spend=spends,
    budget=st.none() | st.builds(Budget, cost=st.sampled_from([1.0, 2.0])),
    plan=st.builds(
        Plan,
        completed=_listed(steps),
        remaining=_listed(steps),
        pending_approvals=_listed(st.builds(Approval, id=ids, question=texts)),
    ),
    results=_listed(st.builds(SubtaskResult, key=ids, output=values, files=_listed(texts))),
    evidence=_listed(st.builds(Evidence, command=texts, exit_status=st.none() | st.integers(0, 2))),
    effects=_listed(
        st.builds(
            Effect, key=ids, tool=ids, arguments=values, status=st.sampled_from(["proposed", "confirmed"])
        )
    ),
    artifacts=_listed(st.builds(Artifact, sha256=digests, size=st.just(5), summary=texts)),
    transcript=st.lists(items, max_size=4).map(lambda found: messages(*found)),
    workspace=st.builds(Workspace, path=st.none() | texts, git=st.none() | st.builds(GitState, branch=texts)),
    environment=st.builds(
        Environment, model=st.none() | texts, probes=st.dictionaries(ids, values, max_size=2)
    ),
)
