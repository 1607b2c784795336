"""In what two endings of an agent differ."""

from __future__ import annotations

import re
from typing import Any

import pytest

from archiver.testing.ending import Ending, differences, ending, repeated
from archiver.testing.place import Action

MAIL, STEP = Action("mail", {"to": "ops"}), Action("step", 1, replayable=True)
USUAL = Ending({"a": 1}, (MAIL, STEP), {"r": "succeeded"})


def changed(**fields: Any) -> list[str]:
    kept = {"outcome": USUAL.outcome, "actions": USUAL.actions, "runs": USUAL.runs, **fields}
    return list(differences(USUAL, Ending(**kept)))


def test_the_same_ending_has_no_difference() -> None:
    assert not changed()
    assert not changed(actions=(STEP, MAIL)), "the order of actions is free"
    assert not changed(actions=(STEP, MAIL, STEP)), "what may be done again may be done again"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"outcome": {"a": 2}}, r'the outcome is \{"a":2\}, uninterrupted it is \{"a":1\}'),
        ({"outcome": {"a": True}}, r'the outcome is \{"a":true\}, uninterrupted it is \{"a":1\}'),
        ({"actions": (MAIL, STEP, MAIL)}, "the action mail with .* was done 2 times, uninterrupted 1"),
        ({"actions": (STEP,)}, "the action mail with .* was lost"),
        ({"actions": (MAIL,)}, "the action step with 1 was lost"),
        ({"actions": (MAIL, STEP, Action("more"))}, "the action more .* was done, which it is not"),
        ({"runs": {"r": "failed"}}, "run r is failed in the store, uninterrupted it is succeeded"),
        ({"runs": {}}, "run r is not there in the store"),
        ({"runs": {"r": "succeeded", "s": "running"}}, "run s is running in the store, .* not there"),
        ({"wrong": ("a bundle is gone",)}, "in the store: a bundle is gone"),
    ],
)
def test_each_difference_is_said(fields: dict[str, Any], said: str) -> None:
    (only,) = changed(**fields)
    assert re.search(said, only), only


def test_what_was_done_again_is_counted() -> None:
    assert repeated(USUAL, Ending(None, (STEP, STEP, STEP, MAIL, MAIL))) == 2
    assert repeated(USUAL, Ending(None, ())) == 0


def test_another_comparison_of_outcomes() -> None:
    longer = Ending({"a": 1, "at": 5}, USUAL.actions, USUAL.runs)
    assert list(differences(USUAL, longer))
    assert not list(differences(USUAL, longer, same=lambda one, other: one["a"] == other["a"]))


def test_effects_that_nobody_knows_the_end_of_are_wrong() -> None:
    found = {"wrong": [], "runs": {"r": {"ended": "succeeded", "undecided": ["mail"]}}}
    assert ending(None, (), found).wrong == (
        "run r ended, and nobody knows whether these effects happened: mail",
    )
