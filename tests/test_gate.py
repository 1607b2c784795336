"""The gate of effects: what an agent is told before it acts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from archiver import gate
from archiver.effect_names import name_of
from archiver.errors import NeedsDecisionError, RedactedValueError, RefusedError
from archiver.gate import Effects
from archiver.model import Checkpoint, Effect
from archiver.model.record import Decision

NOW = datetime.now(UTC)
PLACEHOLDER = "[REDACTED:github-token:0123456789ab]"


def effect(status: str, key: str = "k", **more: Any) -> Effect:
    return Effect.model_validate({"key": key, "tool": "pay", "arguments": {"n": 1}, "status": status, **more})


def ask(*effects: Effect, arguments: Any = None) -> gate.Answer:
    return Effects(effects).outcome("k", {"n": 1} if arguments is None else arguments)


def test_a_confirmed_effect_is_replayed() -> None:
    answer = ask(effect("confirmed", result={"id": 9}))
    assert (answer.act, answer.result, answer.decision) == (False, {"id": 9}, None)


@pytest.mark.parametrize("replayable", [True, False])
def test_a_proposed_effect_is_done(replayable: bool) -> None:
    assert ask(effect("proposed", replayable=replayable)).act


@pytest.mark.parametrize("status", ["uncertain", "in_progress"])
def test_one_that_nobody_knows_of_is_done_only_if_it_may_be_done_twice(status: str) -> None:
    assert ask(effect(status, replayable=True)).act
    with pytest.raises(NeedsDecisionError, match="cannot be done again"):
        ask(effect(status))
    assert [one.key for one in Effects((effect(status), effect(status, "r", replayable=True))).undecided] == [
        "k"
    ]


def test_one_that_is_not_known_is_done() -> None:
    assert Effects(()).outcome("new", {"n": 1}).act


@pytest.mark.parametrize("status", ["confirmed", "proposed", "uncertain", "in_progress"])
def test_the_same_key_with_other_arguments_is_refused(status: str) -> None:
    with pytest.raises(RefusedError, match="recorded with other arguments"):
        ask(effect(status, replayable=True), arguments={"n": 2})
    with pytest.raises(RefusedError):
        ask(effect(status, replayable=True), arguments={"n": 1, "m": None})


def test_the_order_of_keys_in_arguments_means_nothing() -> None:
    one = effect("confirmed", arguments={"a": 1, "b": [{"c": 2, "d": 3}]}, result=1)
    assert ask(one, arguments={"b": [{"d": 3, "c": 2}], "a": 1}).result == 1
    with pytest.raises(RefusedError):
        ask(one, arguments={"a": True, "b": [{"c": 2, "d": 3}]})


def test_what_was_redacted_is_neither_replayed_nor_done() -> None:
    with pytest.raises(RedactedValueError, match="recorded result"):
        ask(effect("confirmed", result={"token": PLACEHOLDER}))
    with pytest.raises(RedactedValueError, match="argument"):
        ask(effect("proposed", arguments={"token": PLACEHOLDER}), arguments={"token": PLACEHOLDER})
    with pytest.raises(RedactedValueError, match="argument"):
        ask(effect("confirmed", arguments={"token": PLACEHOLDER}), arguments={"token": "the real one"})
    # Whoever repeats the call from the transcript has the placeholder there too.
    known = effect("confirmed", arguments={"token": PLACEHOLDER}, result=3)
    assert ask(known, arguments={"token": PLACEHOLDER}).result == 3


@pytest.mark.parametrize(
    ("statuses", "act"),
    [
        (("proposed", "confirmed"), False),
        (("confirmed", "proposed"), False),
        (("proposed", "proposed"), True),
    ],
)
def test_of_several_with_one_key_the_most_cautious_counts(statuses: tuple[str, ...], act: bool) -> None:
    assert ask(*map(effect, statuses)).act is act
    with pytest.raises(NeedsDecisionError):
        ask(*map(effect, statuses), effect("uncertain"))


def test_a_message_does_not_repeat_a_long_key() -> None:
    long = effect("uncertain", "x" * 100_000 + "\x1b[2J")
    checkpoint = Checkpoint(run_id="r", task_id="t", created_at=NOW, checkpoint_at=NOW, effects=(long,))
    with pytest.raises(NeedsDecisionError) as caught:
        gate.refuse_undecided(checkpoint)
    assert len(str(caught.value)) < 400
    (told,) = gate.open_effects(checkpoint)
    assert told.resolve == f"--resolve {name_of(long.key)}"
    assert len(told.resolve) < 100


def test_decisions_change_only_what_was_undecided() -> None:
    effects = (
        effect("uncertain", "a", result=1),
        effect("in_progress", "b"),
        effect("confirmed", "a2", result=2),
        effect("uncertain", "c", replayable=True),
        effect("proposed", "d"),
    )
    checkpoint = Checkpoint(run_id="r", task_id="t", created_at=NOW, checkpoint_at=NOW, effects=effects)
    said = [
        Decision(effect=key, outcome=outcome, by="x", at=NOW)
        for key, outcome in (
            ("a", "done"),
            ("b", "not-done"),
            ("a2", "not-done"),
            ("c", "done"),
            ("d", "done"),
        )
    ]
    made = gate.with_decisions(checkpoint, said)
    statuses = [one.status for one in made.effects]
    assert statuses == ["confirmed", "proposed", "confirmed", "uncertain", "proposed"]
    assert [one.result for one in made.effects] == [None, None, 2, None, None]
