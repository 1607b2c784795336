"""Two checkpoints compared as a whole: nothing is told where nothing changed, and no field is forgotten."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.comparing import COVERED, NOT_COMPARED, compare
from archiver.model import (
    Approval,
    Artifact,
    Budget,
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    Plan,
    Sizes,
    Spend,
    Step,
    SubtaskResult,
    Workspace,
)
from archiver.model.difference import Difference

from .sides import NOW, checkpoint, checkpoints, messages, side

SCHEMA = jsonschema.Draft202012Validator(
    json.loads(
        (Path(__file__).parents[2] / "schemas" / "v2" / "diff.schema.json").read_text(encoding="utf-8")
    )
)
ANOTHER: dict[str, Any] = {
    "task_id": "another",
    "user_id": "somebody",
    "objective": "x",
    "iteration": 1,
    "turn": 1,
    "phase": "x",
    "outcome": "failed",
    "note": "x",
    "created_at": NOW - timedelta(days=1),
    "spend": Spend(tokens_in=1),
    "budget": Budget(),
    "plan": Plan(pending_approvals=(Approval(id="a", question="may I?"),)),
    "results": (SubtaskResult(key="a"),),
    "evidence": (Evidence(command="make"),),
    "effects": (Effect(key="a", tool="mail"),),
    "summary": "x",
    "transcript": messages({"role": "user", "content": "hello"}),
    "artifacts": (Artifact(sha256="0" * 64, size=1),),
    "workspace": Workspace(path="x"),
    "environment": Environment(model="x"),
}
SAME: dict[str, Any] = {
    "schema_version": 2,
    "run_id": "r",
    "checkpoint_at": NOW + timedelta(days=1),
    "full_transcript": messages({"role": "user", "content": "hello"}),
}


def test_every_field_of_a_checkpoint_is_told_of_or_named_as_left_out() -> None:
    assert set(COVERED) | set(NOT_COMPARED) == set(Checkpoint.model_fields)
    assert not set(COVERED) & set(NOT_COMPARED)
    assert set(COVERED.values()) <= set(Difference.model_fields)
    assert set(ANOTHER) == set(COVERED)
    assert set(SAME) == set(NOT_COMPARED)


@pytest.mark.parametrize("name", COVERED)
def test_another_value_of_a_field_is_told_of_in_its_part(name: str) -> None:
    for one, other in (({}, ANOTHER), (ANOTHER, {})):
        old, new = (checkpoint(**{name: each[name]} if each else {}) for each in (one, other))
        found = compare(side(old, 1), side(new, 2))
        said = found.model_dump(exclude={"format", "run", "before", "after"})
        told = {key for key, value in said.items() if value}
        assert COVERED[name] in told
        assert told <= {COVERED[name], "fields"}
        assert not found.empty


@pytest.mark.parametrize("name", NOT_COMPARED)
def test_what_is_left_out_is_no_change(name: str) -> None:
    assert compare(side(checkpoint(), 1), side(checkpoint(**{name: SAME[name]}), 2)).empty


@settings(max_examples=40, deadline=None)
@given(checkpoints)
def test_a_checkpoint_differs_in_nothing_from_itself(made: Checkpoint) -> None:
    again = Checkpoint.model_validate(jsonio.loads(jsonio.dumps(made.document())))
    found = compare(side(made, 1), side(again, 2))
    assert found.empty, found.document()


@settings(max_examples=25, deadline=None)
@given(checkpoints, checkpoints)
def test_what_is_told_is_the_other_way_round_the_other_way_round(one: Checkpoint, other: Checkpoint) -> None:
    there = compare(side(one, 1), side(other, 2))
    back = compare(side(other, 2), side(one, 1))
    assert there.empty == back.empty
    SCHEMA.validate(there.document())
    swapped = {(change.name, str(change.after), str(change.before)) for change in back.environment}
    assert {(change.name, str(change.before), str(change.after)) for change in there.environment} == swapped
    if there.effects is not None and back.effects is not None:
        assert there.effects.new == back.effects.gone
        assert len(there.effects.changed) == len(back.effects.changed)
    if there.spend is not None and back.spend is not None:
        assert there.spend.tokens_in == -back.spend.tokens_in
        assert there.spend.seconds == -back.spend.seconds
    for forth, reverse in zip(there.transcript, back.transcript, strict=True):
        assert (forth.before, forth.after, forth.common) == (reverse.after, reverse.before, reverse.common)


def test_sizes_and_times_of_saving_are_no_change() -> None:
    found = compare(
        side(checkpoint(), 1, sizes=Sizes(stored=1)), side(checkpoint(), 9, sizes=Sizes(stored=2))
    )
    assert found.empty
    assert (found.before.seq, found.after.seq, found.after.sizes.stored) == (1, 9, 2)


def test_findings_by_rule() -> None:
    old = side(checkpoint(), findings={"gone": 1, "same": 2, "more": 1})
    found = compare(old, side(checkpoint(), 2, findings={"new": 1, "same": 2, "more": 3}))
    assert [(one.rule, one.before, one.after) for one in found.findings] == [
        ("gone", 1, 0), ("more", 1, 3), ("new", 0, 1)
    ]  # fmt: skip
    assert not found.empty


def plan(done: str, left: str) -> Plan:
    return Plan(
        completed=tuple(Step(id=one, title=f"step {one}") for one in done),
        remaining=tuple(Step(id=one, title=f"step {one}") for one in left),
    )


def test_steps_of_a_plan() -> None:
    found = compare(
        side(checkpoint(plan=plan("ab", "cde"))), side(checkpoint(plan=plan("cax", "dbz")), 2)
    ).plan
    assert found is not None
    names = {
        name: [step.id for step in getattr(found, name)]
        for name in ("completed", "reopened", "added", "removed")
    }
    assert names == {"completed": ["c", "x"], "reopened": ["b"], "added": ["z"], "removed": ["e"]}
    assert not found.reordered
    turned = compare(side(checkpoint(plan=plan("", "ab"))), side(checkpoint(plan=plan("", "ba")), 2)).plan
    assert turned is not None
    assert turned.reordered


def test_values_of_effects_and_results_are_not_told() -> None:
    secret = "a-value-that-is-nobodys-business"
    old = checkpoint(
        effects=(Effect(key="k", tool="mail", status="proposed"),), results=(SubtaskResult(key="s"),)
    )
    new = checkpoint(
        effects=(Effect(key="k", tool="mail", status="confirmed", arguments={"to": secret}, result=secret),),
        results=(SubtaskResult(key="s", output=secret, files=("a.txt",)),),
    )
    found = compare(side(old), side(new, 2))
    assert secret not in jsonio.dumps(found.document()).decode()
    assert found.effects is not None
    (change,) = found.effects.changed
    assert (change.before, change.after, change.fields) == ("proposed", "confirmed", ("arguments", "result"))
    assert found.results is not None
    assert [(one.key, one.fields) for one in found.results.changed] == [("s", ("output", "files"))]
    assert found.results.files_new == ("a.txt",)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_money_in_two_currencies_has_no_difference(one: float, other: float) -> None:
    old, new = Spend(cost=one, currency="EUR"), Spend(cost=other, currency="USD")
    found = compare(side(checkpoint(spend=old)), side(checkpoint(spend=new), 2)).spend
    assert found is not None
    assert (found.cost, found.currency, found.currency_before) == (None, "USD", "EUR")


def test_when_a_checkpoint_was_made_is_no_change_of_the_world() -> None:
    """Each capture has the time, the questions and the spend in it, which are told elsewhere."""
    told = {"age": {"at": "x"}, "approvals": {"pending": []}, "budget": {"spend": {"seconds": 1.0}}}
    before = checkpoint(environment=Environment(probes={"platform": "linux"}))
    after = checkpoint(environment=Environment(probes={"platform": "linux", **told}))
    assert compare(side(before), side(after, 2)).environment == ()
    moved = checkpoint(environment=Environment(probes={"platform": "mac"}))
    assert [one.name for one in compare(side(before), side(moved, 2)).environment] == ["probes.platform"]
