"""Paths are shown as they were given: escaped for terminals, and never as addresses write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command
from .test_commands import session, work

__all__ = ["work"]


@pytest.fixture
def beside(work: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder beside the working one that holds a session, and its path from there."""
    session(work.parent / "b%d" / "x.jsonl", work)
    inside = work / "in"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return "../../b%d"


def test_steps_upwards_are_shown_as_they_were_given(command: Command, beside: str) -> None:
    path = Path(beside) / "x.jsonl"
    whole = path.read_text()
    path.write_text(whole + "{torn}\n" + whole.splitlines()[-1] + "\n")
    assert {row[0] for row in command("check", path).rows} == {str(path)}
    shown = command("check", path, terminal=True, columns=200)
    assert f"{path}: " in shown.out
    assert command("check", path, "--json").json["transcripts"][0]["path"] == str(path)
    mended = command("repair", path)
    assert f"Written: {beside}/x.repaired/x.jsonl" in mended.err


def test_a_folder_without_a_session(command: Command, beside: str) -> None:
    (Path(beside) / "none").mkdir()
    for name in (f"{beside}/none", ".", ".."):
        outcome = command("check", name)
        assert outcome.code == 2
        assert f"error: {name} holds no" in outcome.err


def test_scans_too(command: Command, beside: str) -> None:
    (Path(beside) / "twice%").write_text("nothing\n")
    outcome = command("scan", f"{beside}/twice%", beside, "../\x1b]0;x\x07none")
    assert f"{beside}/twice% was passed over" in outcome.err
    assert "../\\x1b]0;x\\x07none cannot be read" in outcome.err


def test_a_valid_file_is_called_valid(command: Command, beside: str) -> None:
    path = Path(beside) / "x.jsonl"
    done = command("repair", path)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{path} is valid: nothing was written.\n"
