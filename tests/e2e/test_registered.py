"""A value that the caller registers leaves in no bundle, whatever it looks like and however it is written."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from archiver.archive import Given, Options, Source, archive
from archiver.redact import ExactValue
from archiver.restore import restore
from archiver.setup import Setup

OWN = """\
[[pattern]]
id = "own-words"
kind = "words"
about = "words of our own"
source = "https://example.com"
pattern = '{}'
"""


def with_rules(setup: Setup, rules: Path) -> Setup:
    settings = setup.settings
    redaction = settings.redaction.model_copy(update={"rule_files": (rules,)})
    return replace(setup, settings=settings.model_copy(update={"redaction": redaction}))


def test_a_registered_value_leaves_in_all_its_encodings(setup: Setup, tmp_path: Path) -> None:
    value = "plain words " + "".join(secrets.choice("abcdefgh/&é") for _ in range(12))
    said = [value, quote(value), value.encode().hex(), base64.b64encode(value.encode()).decode()]
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"notes": said, "inner": json.dumps({"said": value})}))
    knowing = setup.registering(ExactValue("PASSPHRASE", value), ExactValue("PIN", "1234"))
    done = archive(Source(paths=(path,)), knowing)
    (finding,) = [one for one in done.receipt.findings if one.rule == "known-value"]
    assert finding.about == "the value of PASSPHRASE"
    assert done.receipt.too_short == ("PIN",)
    restore(done.record.run, setup, into=tmp_path / "out", accept=("age", "git_commit"))
    for file in (tmp_path / "out").rglob("*"):
        content = file.read_text() if file.is_file() else ""
        assert not any(form in content or json.dumps(form)[1:-1] in content for form in said)


def test_what_is_secret_is_looked_up_for_each_save(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (
        "plain words " + "".join(secrets.choice("abcdefgh") for _ in range(12)) for _ in range(3)
    )
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"notes": [first, second, third]}))

    def kept(name: str) -> list[bool]:
        run = archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=name))).record.run
        restore(run, setup, into=tmp_path / name, accept=("age", "git_commit"))
        content = "".join(file.read_text() for file in (tmp_path / name).rglob("*") if file.is_file())
        return [value in content for value in (first, second, third)]

    rules = tmp_path / "own.toml"
    setup = with_rules(setup, rules)
    rules.write_text(OWN.format("never-there-[0-9]{40}"))
    monkeypatch.setenv("SOME_PASSWORD", first)
    assert kept("one") == [False, True, True]
    monkeypatch.setenv("SOME_PASSWORD", second)
    assert kept("two") == [True, False, True]
    rules.write_text(OWN.format(third))
    assert kept("three") == [True, False, False]
    monkeypatch.delenv("SOME_PASSWORD")
    assert kept("four") == [True, True, False]
