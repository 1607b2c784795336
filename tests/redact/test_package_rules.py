"""The rule files of the package are as they should be, by the check that users have for their own."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import Chosen, rules
from archiver.redact.examples import must_match, must_not_match
from archiver.redact.finder import Finder
from archiver.redact.forms import Form, FormError
from archiver.redact.rule_check import check_package
from archiver.redact.rules import PACKS

NO_FILE = ("assigned-secret", "encoded-secret")
"""Rules that stand in no file."""


def test_every_file_and_pack_passes_the_check(cache_folder: Path) -> None:
    checked = check_package()
    assert [(one.name, problem) for one in checked for problem in one.problems] == []
    assert sum(one.rules for one in checked) > 1_000
    assert {f"{pack}.toml" for pack in PACKS} < {one.name for one in checked}


def test_every_rule_has_an_example_of_each_sort_and_an_id_of_its_own() -> None:
    made = rules.load(Chosen(packs=PACKS))
    assert [name for name, count in Counter(rule.id for rule in made.rules).items() if count > 1] == []
    for rule in made.rules:
        if rule.id not in NO_FILE:
            assert any(texts for _, texts in must_match(rule)), rule.id
            assert any(texts for _, texts in must_not_match(rule)), rule.id


@pytest.mark.parametrize("form", ["{=a||b|}{hex:32}", "{hex:32}", "x{hex:3}", "{=a|}{digit:2}"])
def test_a_form_without_fixed_text_is_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(FormError, match="too little fixed text"):
        Form.parse(form).trigger()
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[rule]]\nid = "acme-key"\nkind = "acme-key"\nabout = "key of Acme"\n'
        f'source = "https://acme.example/docs"\nforms = ["acme_{{alnum:20}}", "{form}"]\n'
    )
    with pytest.raises(RedactionUnavailableError, match=r"mine\.toml.*line 6: rule acme-key: form"):
        rules.load(Chosen(files=(path,)))


def test_fixed_text_that_may_be_absent_is_no_fault() -> None:
    assert Form.parse("acme{=-|}{hex:32}").trigger()[0].startswith(b"(?:acme)")
    assert Form.parse("BDG{digit:8}").trigger()


def test_a_literal_of_one_character_does_not_fire_along_a_run_of_it(tmp_path: Path) -> None:
    form = Form.parse("A" * 21 + "{alnum:16,20}z")
    trigger, widths = form.trigger()
    assert trigger.endswith(b"BCDEFGHIJKLMNOPQRSTUVWXYZ]")
    assert widths == tuple(range(29, 21, -1))


def test_a_web_key_is_seen_however_often_its_quotes_are_escaped(finder: Finder) -> None:
    text = '{"kty":"EC","d":"' + Form.parse("{url:41}7x").sample(random.Random(1)) + '"}'
    rule = finder.rules.index("web-key")
    for depth in range(4):
        owners = {
            finder.rules.owners[n] for _, n in finder.hits(text.encode()) if n < len(finder.rules.owners)
        }
        assert rule in owners, depth
        text = json.dumps(text)
