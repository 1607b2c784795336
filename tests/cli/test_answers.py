"""Answers that say what is meant: nothing there, nothing written down, nothing that old."""

from __future__ import annotations

from pathlib import Path

import pytest

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
