"""The names that the package gives to programs, and what they cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import archiver


def test_every_public_name_is_there() -> None:
    for name in archiver.__all__:
        assert getattr(archiver, name) is not None
    assert archiver.Restored.__module__ == "archiver.restored"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = archiver.nothing


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import sys, archiver; print(sorted(n for n in sys.modules if n.startswith('archiver.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PROGRAM = """
from pathlib import Path

from archiver import Answer, Effect, NeedsDecisionError, Outcome, Restored, Resumed
from archiver.config import load
from archiver.restore import plan, restore
from archiver.setup import open_setup


def look(effect: Effect) -> Outcome | None:
    return "done" if effect.key == "a" else None


def go_on(run: str, folder: Path) -> int:
    setup = open_setup(load(), "read")
    if plan(run, setup).exit_code:
        return 7
    restored: Restored = restore(run, setup, into=folder, accept=["effects"])
    try:
        resumed: Resumed = restored.resume(check=look)
    except NeedsDecisionError as error:
        print(error.remedy, [blocker.reason for blocker in restored.blockers])
        raise
    answer: Answer = resumed.effects.outcome("a", {"n": 1})
    return resumed.next_seq if answer.act else restored.report.seq


reveal_type(go_on("r", Path("x")))
"""


def test_a_program_of_somebody_else_s_is_typed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("note:") == 1
    assert 'Revealed type is "int"' in done.stdout.replace("builtins.", "")
