"""`rekey` and `recipients list` as people and scripts use them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from archiver import age, layout
from archiver.config import config_home, data_home
from archiver.setup.keys import IDENTITY_FILE, key_folder
from archiver.store import open_store

from .conftest import Command, Outcome
from .test_commands import HOSTILE, check_harmless, init, plain, session, work

__all__ = ["work"]

RUN = "nightly-7"


@pytest.fixture
def new(home: Path) -> age.X25519Identity:
    """An identity that lies beside the configured one, as a file."""
    identity = age.generate()
    (home / "new.txt").write_text(identity.secret_text() + "\n")
    (home / "new.txt").chmod(0o600)
    return identity


@pytest.fixture
def saved(command: Command, work: Path) -> str:
    """A store with two runs of one checkpoint; the recipient that they are sealed to."""
    made = init(command).json
    transcript = session(work / "t.jsonl", work)
    for run in (RUN, "other"):
        assert command("archive", transcript, "--run-id", run).code == 0
    return str(made["recipient"])


def configure(*recipients: str) -> None:
    """Name recipients in the configuration that `init` wrote."""
    path = config_home() / "archiver.toml"
    listed = ", ".join(f'"{text}"' for text in recipients)
    text = re.sub(
        r"^recipients = \[[^]]*\]", f"recipients = [{listed}]", path.read_text(), flags=re.MULTILINE
    )
    path.write_text(text)


def both(home: Path) -> tuple[object, ...]:
    return ("-i", key_folder() / IDENTITY_FILE, "-i", home / "new.txt")


def test_keys_are_changed_at_a_terminal(
    command: Command, home: Path, saved: str, new: age.X25519Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(str(new.recipient))
    verified = command("verify", *both(home), terminal=True)
    assert verified.code == 0
    assert "sealed to other recipients than the configured ones" in verified.err
    assert f"archiver rekey {RUN} --dry-run" in verified.err

    dry = command("rekey", "--all", "--dry-run", *both(home), terminal=True)
    assert dry.code == 0, dry.err
    assert "4 objects of 2 runs to rewrite" in dry.out
    assert "This revokes nothing" in dry.out

    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    refused = command("rekey", RUN, *both(home), terminal=True)
    assert (refused.code, "Nothing was changed." in refused.out) == (0, True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    done = command("rekey", RUN, "--because", "new key", *both(home), terminal=True)
    assert done.code == 0, done.err
    assert "2 objects of 1 run rewritten" in done.out
    assert "This revokes nothing" in done.out
    assert (
        "Nothing rewritten: 2 objects right already."
        in command("rekey", RUN, "--yes", *both(home), terminal=True).out
    )

    shown = command("show", RUN, *both(home), terminal=True)
    assert new.fingerprint in shown.out
    assert command("restore", RUN, "-i", home / "new.txt", "--into", "out").code == 0
    assert command("restore", RUN, "--into", "no").code == 6
    told = command("verify", RUN, "--deep", *both(home))
    assert [row[0] for row in told.rows] == ["ok"] * 5  # record, bundle, note; the audit of both commands
    assert all("; rekeyed at " in row[4] for row in told.rows[:2])
    assert "signed a rekey of 2 objects: new key" in told.rows[2][4]


def test_scripts_get_lines_and_json(
    command: Command, home: Path, saved: str, new: age.X25519Identity
) -> None:
    configure(saved, str(new.recipient))
    (dry,) = command("rekey", RUN, "--dry-run").rows
    assert (dry[0], dry[1], dry[3:]) == (RUN, "2", ["0", "-"])
    assert int(dry[2]) > 1000
    unattended = command("rekey", RUN)
    assert unattended.code == 2
    assert "--yes" in unattended.err
    assert command("rekey", RUN, "--json").json["error"]["type"] == "UsageError"
    done = command("rekey", RUN, "--yes", "--json").json
    assert (done["dry_run"], done["objects"], done["bytes"]) == (False, 2, int(dry[2]))
    (found,) = done["runs"]
    assert (found["run"], found["fitting"], found["gone"], found["error"]) == (RUN, 0, [], None)
    assert [layout.parse(name).kind for name in found["notes"]] == ["note"]
    assert "revokes nothing" in done["note"]
    rows = command("rekey", "--all", "-y").rows
    assert [row[:2] + row[3:] for row in rows] == [[RUN, "0", "2", "-"], ["other", "2", "0", "-"]]
    assert {row[0] for row in command("list").rows} == {RUN, "other"}


def test_what_is_wrong_with_one_run_is_said_and_the_others_are_done(
    command: Command, home: Path, saved: str, new: age.X25519Identity
) -> None:
    configure(saved, str(new.recipient))
    (data_home() / "store" / layout.record_name("other", 1)).write_bytes(b"garbage")
    outcome = command("rekey", "--all", "--yes")
    assert outcome.code == 4
    assert [row[:2] for row in outcome.rows] == [[RUN, "2"], ["other", "0"]]
    assert outcome.rows[1][4] == "HeaderError"
    assert "error: record 1 of run other" in outcome.err
    assert command("rekey", "none", "--yes").code == 9
    assert command("rekey", "none", "--dry-run", "--json").json["runs"][0]["error"]["exit_code"] == 9


@pytest.mark.parametrize(
    "arguments", [["rekey"], ["rekey", RUN, "--all"], ["recipients", "list", "--all", "--run", RUN]]
)
def test_one_run_or_all(command: Command, saved: str, arguments: list[str]) -> None:
    assert command(*arguments).code == 2


def test_nobody_is_locked_out(command: Command, saved: str, new: age.X25519Identity) -> None:
    configure(str(new.recipient))
    outcome = command("rekey", "--all", "--yes")
    assert outcome.code == 2
    assert "none of your identities would open" in outcome.err
    assert [info.name for info in open_store(data_home() / "store").list(layout.NOTES)] == []


def test_the_recipients_without_a_store(command: Command, home: Path, new: age.X25519Identity) -> None:
    assert command("recipients", "list").rows == []
    made = init(command).json
    (row,) = command("recipients", "list").rows
    assert row == ["recipient", made["fingerprint"], "X25519", "here", "yes", made["recipient"], "-"]
    configure(made["recipient"], str(new.recipient))
    rows = command("recipients", "list").rows
    assert [row[3:5] for row in rows] == [["here", "yes"], ["offline", "no"]]
    listed = command("recipients", "list", "--json").json
    assert (listed["named"], listed["runs"]) == (True, [])
    assert [one["way"] for one in listed["recipients"]] == ["here", "offline"]
    shown = plain(command("recipients", "list", terminal=True, columns=200).out)
    assert "identity elsewhere" in shown
    assert new.fingerprint in shown
    narrow = plain(command("recipients", "list", terminal=True, columns=80).out)
    assert new.fingerprint in narrow


def test_recipients_for_emergencies_are_marked(
    command: Command, home: Path, new: age.X25519Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = init(command).json
    configure(made["recipient"], str(new.recipient))
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", str(new.recipient))
    assert [row[6] for row in command("recipients", "list").rows] == ["-", "break-glass"]
    assert [one["break_glass"] for one in command("recipients", "list", "--json").json["recipients"]] == [
        False,
        True,
    ]
    shown = command("recipients", "list", terminal=True, columns=200)
    assert ("BREAK-GLASS" in shown.out, shown.err) == (True, "")
    stranger = age.generate().recipient.fingerprint
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", stranger)
    warned = command("recipients", "list")
    assert f"{stranger}, which is no recipient" in warned.err
    assert [row[6] for row in warned.rows] == ["-", "-"]


def test_a_break_glass_recipient_with_a_slip_in_it_is_named(
    command: Command, home: Path, new: age.X25519Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(command)
    wrong = str(new.recipient)[:-1] + ("q" if str(new.recipient)[-1] != "q" else "p")
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", wrong)
    for arguments in (["recipients", "list"], ["list"]):
        refused = command(*arguments)
        assert refused.code == 2
        assert f"keys.break_glass: '{wrong}'" in refused.err


def remarks(outcome: Outcome) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in outcome.rows:
        if row[0] == "object":
            found.setdefault(row[1], set()).update(row[7].split("; "))
    return found


def test_whom_the_runs_are_sealed_to(
    command: Command, home: Path, saved: str, new: age.X25519Identity
) -> None:
    before = command("recipients", "list", "--run", RUN)
    rows = [row for row in before.rows if row[0] == "object"]
    assert [layout.parse(row[3]).kind for row in rows] == ["record", "bundle"]
    own = rows[0][4]
    assert all(row[4:7] == [own, own, "signed"] for row in rows)
    assert remarks(before) == {RUN: {"only one key opens it"}}
    configure(saved, str(new.recipient))
    found = {
        "only one key opens it",
        "no break-glass recipient opens it",
        "sealed to other recipients than the configured ones",
    }
    assert remarks(command("recipients", "list", "--all")) == {RUN: found, "other": found}
    assert command("rekey", RUN, "--yes").code == 0
    after = command("recipients", "list", "--all")
    assert after.code == 0
    assert remarks(after)[RUN] == {"-"}
    shown = command("recipients", "list", "--all", terminal=True, columns=160)
    assert "archiver rekey RUN --dry-run" in shown.err
    assert new.fingerprint[:8] in shown.out
    assert command("recipients", "list", "--run", "none").code == 9


def test_a_run_that_none_of_the_identities_opens(
    command: Command, home: Path, saved: str, new: age.X25519Identity
) -> None:
    """Which key would open it is the question of a responder; the answer is a hint."""
    outcome = command("recipients", "list", "--run", RUN, "-i", home / "new.txt", "--json")
    assert outcome.code == 0
    (run,) = outcome.json["runs"]
    (one,) = run["objects"]
    assert one["recipients"] == [age.parse_recipient(saved).fingerprint]
    assert (one["authentic"], one["yours"]) == (False, [])
    assert "none of your identities opens it" in run["remarks"]
    (data_home() / "store" / layout.record_name("other", 1)).write_bytes(b"garbage")
    damaged = command("recipients", "list", "--all")
    assert damaged.code == 4
    assert "run other" in damaged.err


def test_hostile_content_never_reaches_the_terminal(
    command: Command, home: Path, work: Path, new: age.X25519Identity
) -> None:
    made = init(command).json
    run = "r\u202e[bold]x/../y"
    path = session(work / "t.jsonl", work)
    assert command("archive", path, "--run-id", run).code == 0
    configure(made["recipient"], str(new.recipient))
    for terminal in (True, False):
        for arguments in (
            ["rekey", run, "--dry-run"],
            ["recipients", "list", "--all"],
            ["rekey", run, "--yes", "--because", HOSTILE],
            ["verify", run],
        ):
            outcome = command(*arguments, terminal=terminal)
            assert outcome.code == 0, outcome.err
            check_harmless(outcome)


def test_help_says_that_it_revokes_nothing(command: Command) -> None:
    assert "It revokes nothing" in command("rekey", "--help").out
    listed = command("recipients", "--help")
    assert (listed.code, "list" in listed.out) == (0, True)
    assert command("recipients").code == 2
