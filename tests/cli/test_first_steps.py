"""What somebody types first, and what it says when that is not yet right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Command

RUNS = 7
"""More than a sweep says one by one, unless it is asked for each."""


def finished(folder: Path, number: int, outcome: str = "failed") -> None:
    run = folder / f"job-{number}"
    run.mkdir(parents=True)
    (run / "log.txt").write_text(f"what happened in {number}\n")
    manifest = {"format": 1, "run": run.name, "transcript": ["log.txt"], "outcome": outcome}
    (run / "archiver-run.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_dry_run_makes_no_store_and_no_keys(command: Command, home: Path, terminal: bool) -> None:
    done = command("sweep", "--dry-run", terminal=terminal)
    assert done.code == 2
    assert "run `archiver init`" in (done.out + done.err)
    assert not list(home.rglob("*.pem"))
    assert not list(home.rglob("store.json"))


def test_a_dry_run_at_a_terminal_names_each_run(command: Command, home: Path) -> None:
    assert command("init", home / "store").code == 0
    runs = home / "runs"
    for number in range(RUNS):
        finished(runs, number)
        finished(home / "open", number + RUNS, "running")
    done = command("sweep", "--dry-run", "--source", f"folder={runs}", terminal=True, columns=120)
    assert done.code == 0, done.out
    for number in range(RUNS):
        assert f"to archive: job-{number} as failed: is new; " in done.out
    waiting = command("sweep", "--dry-run", "--source", f"folder={home / 'open'}", terminal=True, columns=120)
    assert waiting.out.count("  waits: job-") == RUNS
    assert command("sweep", "--source", f"folder={runs}").code == 0
    again = command("sweep", "--dry-run", "--source", f"folder={runs}", terminal=True, columns=120)
    assert "job-" not in again.out


def test_a_file_of_ones_own_that_names_no_store_yet(command: Command, home: Path) -> None:
    """Each of the errors on the way says how the store comes to be there, and doing so helps."""
    place = home / "archive"
    (home / "work" / "archiver.toml").write_text(f'[store]\nurl = "{place}"\n')
    missing = command("list")
    assert missing.code == 8
    assert "`archiver init FOLDER --config FILE` makes one" in missing.err
    assert "`archiver init FOLDER --config FILE` makes one" in command("doctor").out
    taken = command("init", place, "--config", "archiver.toml")
    assert taken.code == 3
    assert "`archiver init STORE --config FILE` makes STORE" in taken.err
    assert command("init", place, "--config", "new.toml").code == 0
    assert command("list").code == 0


def test_with_nothing_configured_a_doctor_sends_to_init(command: Command, home: Path) -> None:
    store = next(row for row in command("doctor").rows if row[1] == "store")
    assert store[0] == "failure"
    assert "run `archiver init`" in store[3]


def test_how_to_copy_the_keys_stands_where_it_is_said_to(command: Command, home: Path) -> None:
    lines = command("init", home / "store").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Back up both key files"))
    assert lines[at + 1].startswith("  cp -p ")
