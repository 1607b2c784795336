"""Every rule finds what it is for, in the contexts it comes in, and nothing that only looks like it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from importlib import resources
from typing import TypeVar

import pytest

from archiver.redact import rules
from archiver.redact.finder import Finder
from archiver.redact.forms import Form, Run
from archiver.redact.judge import is_plausible
from archiver.redact.rules import Rule
from archiver.redact.scrub import Scrubber
from tests.redact.support import expand, lines, readable

T = TypeVar("T")

RULES = rules.load().rules
FORMATS = [(rule, form) for rule in RULES for form in rule.forms]
NAMED = [(rule, form) for rule in RULES for form in rule.beside]
NEAR = [(rule, form) for rule in RULES if rule.near for form in rule.beside]
CONTEXTS = ["{}", "see {} there", '"{}"', "X={}\n", "<{}>", "+{}", "a\n{}\nb", "({})", "'{}',", "\\n{}\\n"]


AT_ONCE = 40
"""Rules or forms that one test goes through: a test each would take longer to be begun than to be run."""


def _batches(cases: Sequence[T]) -> list[Sequence[T]]:
    return [cases[first : first + AT_ONCE] for first in range(0, len(cases), AT_ONCE)]


def _identity(cases: Sequence[tuple[Rule, Form] | Rule]) -> str:
    names = [case.id if isinstance(case, Rule) else case[0].id for case in (cases[0], cases[-1])]
    return " to ".join(names)


def _found(finder: Finder, text: str) -> list[tuple[str, str]]:
    data = text.encode()
    return [
        (finder.rules.rules[span.rule].id, data[span.start : span.end].decode()) for span in finder.find(data)
    ]


@pytest.mark.parametrize("cases", _batches(FORMATS), ids=_identity)
def test_a_form_is_found_whole_in_every_context(cases: Sequence[tuple[Rule, Form]], finder: Finder) -> None:
    def rule_of(name: str) -> Rule:
        return finder.rules.rules[finder.rules.index(name)]

    for rule, form in cases:
        rng = random.Random(rule.id + form.text)
        for context in CONTEXTS:
            value = form.sample(rng)
            found = _found(finder, context.format(value))
            assert any(value in text for _, text in found), (rule.id, context, value, found)
            kinds = {rule_of(name).kind for name, text in found if value in text}
            assert rule.kind in kinds or any(rule_of(name).specific for name, _ in found), (rule.id, value)


@pytest.mark.parametrize("cases", _batches(FORMATS), ids=_identity)
def test_a_form_is_not_found_inside_a_longer_run(cases: Sequence[tuple[Rule, Form]], finder: Finder) -> None:
    for rule, form in cases:
        first = form.parts[0]
        if rule.id == "otpauth-secret" or (isinstance(first, Run) and first.low != first.high):
            continue  # what begins the form may stand anywhere
        value = form.sample(random.Random(rule.id))
        found = _found(finder, f"Qx7{value}")
        assert (rule.id, value) not in found
        assert not any(name == rule.id and value in text for name, text in found), (rule.id, value)


@pytest.mark.parametrize("cases", _batches(NAMED), ids=_identity)
def test_a_named_form_counts_only_beside_its_name(cases: Sequence[tuple[Rule, Form]], finder: Finder) -> None:
    for rule, form in cases:
        value = form.sample(random.Random(rule.id + form.text))
        for word in rule.named:
            name = word if finder.rules.assigned.names.says(word) else f"{word}_token"
            for text in (f"{name.upper()}={value}", f'{name}: "{value}"', json.dumps({name: value})):
                assert any(value in found for _, found in _found(finder, text)), (rule.id, text)
        assert _found(finder, f"revision {value} was built") == [], rule.id


def _with_digits(form: Form, rng: random.Random) -> str:
    """A value with a digit among its first characters, or else with letters that nobody would write.

    Few random values are neither, and those may be missed beside short words.
    """
    values = [form.sample(rng)]
    while len(values) < 50:
        if re.search("[0-9]", values[-1][: max(1, min(10, len(values[-1]) - 11))]):
            return values[-1]
        values.append(form.sample(rng))
    return next((value for value in values if is_plausible(value.encode(), telling=False)), values[-1])


@pytest.mark.parametrize("cases", _batches(NEAR), ids=_identity)
def test_a_near_form_counts_after_the_word_of_its_provider(
    cases: Sequence[tuple[Rule, Form]], finder: Finder
) -> None:
    for rule, form in cases:
        _demand_near(rule, form, finder)


def _demand_near(rule: Rule, form: Form, finder: Finder) -> None:
    rng = random.Random(rule.id + form.text)
    for word in rule.near:
        value = _with_digits(form, rng)
        if " " in word and not re.search("[0-9]", value):
            continue  # words of several pieces are looked for only where a digit is in the value
        for text in (
            f'{word} token1 = "{value}"',
            f"{word.replace(' ', '')}SECRET {value}",
            f"calling the {word} API\n[DEBUG] Using Key={value}\n",
            json.dumps(json.dumps({word.replace(" ", "_") + "_api_key": value})),
        ):
            assert any(value in found for _, found in _found(finder, text)), text


@pytest.mark.parametrize("cases", _batches([rule for rule in RULES if rule.match]), ids=_identity)
def test_examples_that_must_match(cases: Sequence[Rule], finder: Finder, scrubber: Scrubber) -> None:
    for rule in cases:
        _demand_matches(rule, finder, scrubber)


def _demand_matches(rule: Rule, finder: Finder, scrubber: Scrubber) -> None:
    names: set[str] = set()
    for template in rule.match:
        for seed in range(5):
            text = expand(template, seed)
            found = _found(finder, text)
            assert found, text
            names |= {name for name, _ in found}
            redacted = lines(scrubber, json.dumps({"text": text}).encode() + b"\n")
            assert b"[REDACTED:" in redacted
    assert rule.id in names


@pytest.mark.parametrize("cases", _batches([rule for rule in RULES if rule.reject]), ids=_identity)
def test_examples_that_must_not_match(cases: Sequence[Rule], finder: Finder) -> None:
    for rule in cases:
        for template in rule.reject:
            for seed in range(5):
                text = expand(template, seed)
                assert rule.id not in {name for name, _ in _found(finder, text)}, text


def test_there_are_rules_for_many_providers() -> None:
    providers = {rule.source.split("/")[2] for rule in RULES if rule.specific}
    assert len(providers) >= 90
    assert len({rule.kind for rule in RULES if rule.specific}) >= 100


def test_rule_files_hold_no_credential(finder: Finder) -> None:
    files = [
        entry
        for entry in (resources.files("archiver.redact") / "rules").iterdir()
        if entry.name.endswith(".toml")
    ]
    assert len(files) >= 5
    for entry in files:
        found = _found(finder, entry.read_text("utf-8"))
        assert not [name for name, _ in found if finder.rules.rules[finder.rules.index(name)].specific], (
            entry.name
        )


def test_every_source_is_a_page_of_the_web() -> None:
    for rule in RULES:
        assert re.fullmatch(r"https://[\w.-]+/\S*|https://[\w.-]+", rule.source), rule.id


@pytest.mark.parametrize("level", range(4))
def test_a_secret_is_found_however_deep_json_is_nested(level: int, scrubber: Scrubber) -> None:
    value = expand("ghp_{alnum:36}")
    text: object = {"text": f"é\nGITHUB_TOKEN={value}\n"}
    for _ in range(level):
        text = {"inner": json.dumps(text)}
    output = lines(scrubber, json.dumps(text).encode() + b"\n")
    assert value not in readable(output)
    assert b"[REDACTED:github-token:" in output
