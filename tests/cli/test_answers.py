"""Answers that say what is meant: nothing there, nothing written down, nothing that old."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import inside
import pytest

from archiver import __version__
from archiver.config import config_home, data_home, state_home

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


def completed(words: str, program: str = "archiver") -> list[str]:
    return inside.completed(words, program).removesuffix("\n").split("\n")


def test_runs_are_completed_and_errors_are_not_said(command: Command, note: Path, home: Path) -> None:
    note.write_text("another note\n")
    assert command("archive", note, "--run-id", "ready").code == 0
    for words in (
        "archiver show re",
        "archiver restore --plan re",
        "archiver verify re",
        "archiver audit list re",
        "archiver advise re",
    ):
        assert completed(words) == ["ready"]
    assert completed("restore re", "restore") == ["ready"]
    assert completed("archiver show --store /nowhere re") == [""]
    (home / "work" / "archiver.toml").write_text("torn = [")
    assert completed("archiver show re") == [""]


def test_help_names_no_types_of_the_program(command: Command, home: Path) -> None:
    for words in (["archive"], ["restore"], ["check"], ["audit", "verify"], ["find-credential"], ["verify"]):
        said = command(*words, "--help").out
        assert not re.search(r"<[A-Za-z]", said)
        assert "[[" not in said


def test_the_version_of_restore(command: Command, home: Path) -> None:
    for shown in (command("--version", name="restore"), command("restore", "--version")):
        assert (shown.code, shown.out) == (0, f"archiver {__version__}\n")


def test_what_goes_together_and_what_comes_next(command: Command, note: Path) -> None:
    said = " ".join(command("verify", "--help").out.split())
    assert "With --since: only say" in said
    assert "With --distrust: from when on" in said
    refused = command("drill", "--sample", "0")
    assert refused.code == 2
    assert "bundles" not in refused.err
    exported = command("export", "r", "--into", "out", terminal=True, columns=200)
    (last,) = [line for line in exported.out.splitlines() if line.startswith("Next: ")]
    words = shlex.split(last.removeprefix("Next: archiver ").removesuffix(" looks at the copy."))
    assert command(*words).code == 0


def test_a_changed_audit_line_is_named_beside_the_one_after_it(command: Command, note: Path) -> None:
    for number in range(3):
        assert command("restore", "r", "--into", f"out{number}").code == 0
    file = state_home() / "audit.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"run":"r"', b'"run":"x"')
    file.write_bytes(b"".join(lines))
    found = command("audit", "verify")
    assert found.code == 4
    assert [row[2] for row in found.rows] == ["3"]
    assert "does not follow line 2: either that one was changed" in found.err
