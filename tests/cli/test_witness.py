"""What was seen of runs, listed and forgotten through the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.config import state_home
from archiver.witness import FolderWitness, Seen

from .conftest import Command
from .test_commands import check_harmless, session, work  # noqa: F401 - a fixture

RUN = "run 1"
OTHER = "f" * 32


@pytest.fixture
def store(command: Command, work: Path, tmp_path: Path) -> str:  # noqa: F811 - as above
    """A store with two checkpoints of one run; its id."""
    made = command("init", tmp_path / "store", "--json")
    assert made.code == 0, made.err
    path = session(tmp_path / "t.jsonl", work)
    for _ in range(2):
        assert command("archive", path, "--run-id", RUN).code == 0
    (found,) = command("witness", "list", "--json").json["remembered"]
    return str(found["store"])


def take_back(tmp_path: Path) -> None:
    (tmp_path / "store/records/run~201/00000002.age").unlink()


def remember(store: str, run: str) -> None:
    now = datetime.now(UTC)
    FolderWitness(state_home() / "witness").remember(
        store, run, Seen(seq=7, sha256="a" * 64, recorded_at=now, seen_at=now)
    )


def file_of(store: str) -> Path:
    return state_home() / "witness" / store / "run~201.json"


def test_nothing_is_remembered_at_first(command: Command) -> None:
    assert command("witness", "list", "--json").json == {"remembered": []}
    assert command("witness", "list").out == ""
    assert command("witness", "forget", "r", "--yes").code == 9


def test_what_was_seen_is_listed(command: Command, store: str) -> None:
    (one,) = command("witness", "list", "--json").json["remembered"]
    assert (one["run"], one["seq"], one["error"]) == (RUN, 2, None)
    assert one["where"] == str(file_of(store))
    assert one["sha256"] == json.loads(file_of(store).read_text())["sha256"]
    (row,) = command("witness", "list").rows
    assert (row[:3], row[5:]) == ([store, RUN, "2"], [one["sha256"], "-"])
    shown = command("witness", "list", terminal=True)
    assert RUN in shown.out
    assert one["sha256"][:12] in shown.out
    assert one["sha256"] not in shown.out


def test_a_store_that_is_behind_is_refused_until_it_is_forgotten(
    command: Command, store: str, tmp_path: Path
) -> None:
    take_back(tmp_path)
    for words in (
        ["restore", RUN, "--plan"],
        ["restore", RUN],
        ["archive", tmp_path / "t.jsonl", "--run-id", RUN],
    ):
        outcome = command(*words, "--json")
        assert (outcome.code, outcome.json["error"]["type"]) == (4, "RolledBackError")
        assert f"archiver witness forget '{RUN}'" in outcome.json["error"]["remedy"]
        assert str(file_of(store)) in outcome.json["error"]["message"]
    done = command("restore", RUN, "--accept", "rollback", "--into", "out")
    assert done.code == 0, done.err
    assert "THE STORE IS BEHIND" in done.err
    assert ["rollback", "unverified"] in done.rows
    assert "record 2, recorded up to" in done.out
    assert "rollback" in json.loads((Path("out") / "report.json").read_text())["accepted"]
    assert command("restore", RUN, "--plan").code == 4
    assert command("witness", "forget", RUN, "--yes").code == 0
    report = command("restore", RUN, "--plan", "--json").json
    assert (report["seq"], report["rollback"]) == (1, "unverified")


def test_the_first_sight_of_a_run_is_unverified_also_where_the_folder_is_named_after_it(
    command: Command, store: str
) -> None:
    assert command("witness", "forget", RUN, "--yes").code == 0
    report = command("restore", RUN, "--json").json
    assert report["rollback"] == "unverified"
    assert "first sight" in report["witness"]
    assert command("restore", RUN, "--plan", "--json").json["rollback"] == "verified"


def test_forgetting_has_to_be_confirmed(
    command: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = command("witness", "forget", RUN, "--json")
    assert (outcome.code, outcome.json["error"]["type"]) == (2, "UsageError")
    assert "record 2 of" in outcome.json["error"]["message"]
    assert command("witness", "forget", RUN).code == 2
    asked: list[str] = []

    def answer(said: bool) -> None:
        def confirm(text: str, **_: object) -> bool:
            asked.append(text)
            return said

        monkeypatch.setattr("typer.confirm", confirm)

    answer(said=False)
    outcome = command("witness", "forget", RUN, terminal=True)
    assert (outcome.code, "Nothing was changed" in outcome.out, "record 2 of" in outcome.err) == (
        0,
        True,
        True,
    )
    assert file_of(store).exists()
    answer(said=True)
    assert command("witness", "forget", RUN, terminal=True).code == 0
    assert not file_of(store).exists()
    assert asked == ["Forget it?"] * 2


def test_a_run_of_another_store_is_not_meant(command: Command, store: str) -> None:
    remember(OTHER, RUN)
    remember(OTHER, "only there")
    done = command("witness", "forget", RUN, "--yes", "--json")
    assert done.json["forgotten"]["store"] == store
    assert command("witness", "forget", "only there", "--yes").code == 9
    assert command("witness", "forget", "only there", "--yes", "--store-id", OTHER).code == 0
    assert [one["store"] for one in command("witness", "list", "--json").json["remembered"]] == [OTHER]


def test_one_name_in_two_stores_needs_the_store(command: Command) -> None:
    remember(OTHER, RUN)
    remember("e" * 32, RUN)
    outcome = command("witness", "forget", RUN, "--yes", "--json")
    assert (outcome.code, outcome.json["error"]["type"]) == (2, "UsageError")
    assert OTHER in outcome.json["error"]["remedy"]
    assert command("witness", "forget", RUN, "--yes", "--store-id", OTHER).code == 0


def test_a_torn_memory_is_shown_refused_and_can_be_forgotten(
    command: Command, store: str, tmp_path: Path
) -> None:
    remember(store, "whole")
    file_of(store).write_bytes(b'{"format": 1')
    outcome = command("witness", "list", "--json")
    assert outcome.code == 3
    assert [(one["run"], one["error"] is None) for one in outcome.json["remembered"]] == [
        (RUN, False),
        ("whole", True),
    ]
    assert command("witness", "list").rows[0][:3] == [store, RUN, "-"]
    outcome = command("restore", RUN, "--plan", "--json")
    assert (outcome.code, outcome.json["error"]["type"]) == (3, "WitnessError")
    assert command("archive", tmp_path / "t.jsonl", "--run-id", RUN, "--json").code == 3
    assert command("witness", "forget", RUN, "--yes").code == 0
    assert command("restore", RUN, "--plan").code == 0


def test_hostile_names_and_content_stay_inert(command: Command, store: str) -> None:
    for run in ("\u202e\u2066evil", "-rf", "../../x"):
        remember(store, run)
    file_of(store).write_text(json.dumps({"format": 1, "run": "\x1b[2J", "store": "\x1b]52;c;eA==\x07"}))
    for terminal in (True, False):
        check_harmless(command("witness", "list", terminal=terminal))
    assert command("witness", "forget", "--yes", "--", "-rf").code == 0
    assert command("witness", "forget", "--yes", "../../x").code == 0
    check_harmless(command("witness", "forget", "--yes", "\u202e\u2066evil", terminal=True))
    assert [one["run"] for one in command("witness", "list", "--json").json["remembered"]] == [RUN]


def test_without_a_witness_there_is_nothing_to_list(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_TRUST__USE_WITNESS", "false")
    outcome = command("witness", "list", "--json")
    assert (outcome.code, outcome.json["error"]["type"]) == (2, "ConfigError")


def test_a_folder_that_cannot_be_read_is_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("ARCHIVER_TRUST__WITNESS", str(Path.cwd() / "file"))
    for words in (["witness", "list"], ["witness", "forget", "r", "--yes"]):
        outcome = command(*words, "--json")
        assert (outcome.code, outcome.json["error"]["type"]) == (3, "WitnessError")
