"""Answers that say what is meant: nothing there, nothing written down, nothing that old."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.config import config_home, data_home

from .conftest import Command


@pytest.fixture
def note(command: Command, home: Path) -> Path:
    assert command("init").code == 0
    path = Path("note.txt")
    path.write_text("a note\n")
    assert command("archive", path, "--run-id", "r").code == 0
    return path


@pytest.mark.parametrize("terminal", [True, False])
def test_the_audit_of_a_run_that_nobody_opened(command: Command, note: Path, terminal: bool) -> None:
    known = command("audit", "r", terminal=terminal)
    assert (known.code, known.out) == (0, "")
    assert known.err == "Nothing was written down about run r.\n"
    unknown = command("audit", "rr", terminal=terminal)
    assert (unknown.code, unknown.out) == (9, "")
    assert "the store has no run 'rr'" in unknown.err
    assert "written down" not in unknown.err
    assert command("restore", "r", "--into", "out").code == 0
    assert len(command("audit", "r").rows) > 0


def test_no_checkpoint_is_that_old(command: Command, note: Path) -> None:
    assert command("list", "--schema", "<2", terminal=True).out == "No checkpoint was saved in schema <2.\n"
    filtered = command("list", "--schema", "<2", "--task", "t", terminal=True)
    assert filtered.out == "No such checkpoint was saved in schema <2.\n"
    assert command("list", "--task", "t", terminal=True).out == "No such runs.\n"


def records(run: str) -> list[Path]:
    return sorted((data_home() / "store" / "records" / run).glob("[0-9]*"))


def test_advice_can_be_followed_when_the_only_checkpoint_is_damaged(command: Command, note: Path) -> None:
    (record,) = records("r")
    record.chmod(0o600)
    record.write_bytes(record.read_bytes()[:-9])
    for words in (["restore", "r", "--plan"], ["show", "r"], ["list"], ["verify"]):
        refused = command(*words)
        assert refused.code == 4
        assert "another copy of the store" in refused.err
        assert "--at" not in refused.err


@pytest.mark.parametrize(("gone", "left"), [(1, 0), (2, 1), (3, 2)])
def test_advice_about_a_gap(command: Command, note: Path, gone: int, left: int) -> None:
    for number in range(3):
        note.write_text(f"note {number}\n")
        assert command("archive", note, "--run-id", "r").code == 0
    records("r")[gone - 1].unlink()
    refused = command("show", "r")
    assert refused.code == 4
    assert (f"up to number {left} can be restored with --at" in refused.err) == bool(left)
    assert ("without its first record nothing" in refused.err) == (left == 0)
    if left:
        assert command("restore", "r", "--at", left, "--plan").code == 0


def test_no_checkpoint_from_before_where_all_is_of_the_distrusted_key(command: Command, note: Path) -> None:
    listed = config_home() / "keys" / "writers.toml"
    own = listed.with_name("own.toml")
    text = listed.read_text()
    own.write_text(text.replace("runs =", "distrusted_after = 2020-01-01T00:00:00Z\nruns ="))
    refused = command("restore", "r", "--plan", "--writers", own)
    assert refused.code == 3
    assert "look at what it wrote since then" in refused.err
    assert "--at" not in refused.err
