"""`archiver rules list | check | test`: what they say, what they exit with, and what they never print."""

from __future__ import annotations

from pathlib import Path

from tests.redact.support import expand

from .conftest import Command

RULE = """[[rule]]
id = "acme-key"
kind = "acme-key"
about = "key of Acme"
source = "https://acme.example/docs"
forms = ["acme_{alnum:20}"]
"""
"""As in the tests of redaction: another set of rules takes seconds to compile."""


def test_rules_are_listed(command: Command, home: Path) -> None:
    rows = command("rules", "list").rows
    assert len(rows) > 200
    assert all(len(row) == 7 for row in rows)
    assert {row[5] for row in rows} == {"default"}
    hosts = command("rules", "list", "--pack", "hosts", "--json").json["rules"]
    assert {rule["pack"] for rule in hosts} == {"hosts"}
    assert {rule["file"] for rule in hosts} == {"hosts.toml"}
    [slack] = [
        row for row in command("rules", "list", "--search", "SLACK-TOKEN").rows if row[0] == "slack-token"
    ]
    assert int(slack[4]) > 1
    refused = command("rules", "list", "--pack", "mails")
    assert refused.code == 2
    assert "identifiers" in refused.err


def test_a_narrow_list_keeps_what_a_rule_is(command: Command, home: Path) -> None:
    shown = command("rules", "list", "--search", "slack-token", terminal=True, columns=80).out
    assert "Slack " in shown
    assert "http" not in shown
    assert "No rule fits" in command("rules", "list", "--search", "no such rule", terminal=True).out


def test_a_file_is_checked(command: Command, home: Path) -> None:
    good, bad = home / "good.toml", home / "bad.toml"
    good.write_text(RULE)
    bad.write_text(RULE + "from = 'x'\n")
    whole = command("rules", "check", good)
    assert (whole.code, whole.out) == (0, "")
    checked = command("rules", "check", bad)
    assert checked.code == 1
    assert checked.rows == [["problem", str(bad), "7", "rule acme-key has the unknown field 'from'"]]
    assert command("rules", "check", bad, "--json").json["problems"][0]["line"] == 7
    assert f"{bad}:7:" in command("rules", "check", bad, terminal=True).err
    assert command("rules", "check", home / "absent.toml").code == 2
    bad.write_bytes(b"\xff\xfe")
    assert command("rules", "check", bad).code == 2


def test_a_text_is_tried_and_its_secret_not_printed(command: Command, home: Path) -> None:
    secret = expand("ghp_{alnum:36}")
    text = f"first\nsee {secret} and no more"
    shown = command("rules", "test", text)
    assert shown.code == 1
    assert shown.rows == [["2", "5", str(4 + len(secret)), "github-token", "github-token"]]
    (home / "text.txt").write_text(text)
    for outcome in (
        shown,
        command("rules", "test", "--file", home / "text.txt", "--json"),
        command("rules", "test", text, terminal=True),
    ):
        assert outcome.code == 1
        assert secret not in outcome.out
        assert secret[6:20] not in outcome.out
    assert "^" in command("rules", "test", text, terminal=True).out


def test_nothing_found_is_said_and_why(command: Command, home: Path) -> None:
    outcome = command("rules", "test", "AKIA" + "IOSFODNN7EXAMPLE", "--explain")
    assert outcome.code == 0
    assert ["1", "-", "aws-access-key-id"] in [[row[0], row[2], row[3]] for row in outcome.rows]
    assert "made up" in outcome.out
    assert "Nothing" in command("rules", "test", "a plain text", terminal=True).out
    assert command("rules", "test").code == 2


def test_a_rule_file_can_be_tried_before_it_is_configured(command: Command, home: Path) -> None:
    (home / "mine.toml").write_text(RULE)
    text = expand("acme_{alnum:20}")
    assert command("rules", "test", text).code == 0
    found = command("rules", "test", text, "--rule-file", home / "mine.toml")
    assert found.rows[0][3] == "acme-key"
