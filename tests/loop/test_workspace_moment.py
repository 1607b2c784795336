"""A folder that is saved with its run is of the moment at which its checkpoint was taken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import archiver
from archiver import restore, workspace_in
from archiver.loop.snapshot import Hold, Ticket
from archiver.setup import Setup

RUN = "r"
FILES = 40
EAGER = archiver.Policy("milestones", floor=0.0, floor_calls=1)
"""Saves each milestone, and waits for none."""


@pytest.fixture
def capturing(reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    return reopen()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def step(run: Any, folder: Path, number: int) -> Ticket:
    """Every file says the number of the step, and so does the conversation."""
    for file in range(FILES):
        (folder / f"{file:03}.txt").write_text(f"{number}\n")
    ticket: Ticket = run.checkpoint([{"role": "user", "content": f"{number}"}], milestone=f"step {number}")
    return ticket


def told(setup: Setup, into: Path, at: int | None) -> tuple[str, set[str]]:
    """What the conversation of a restored checkpoint says, and what its files do."""
    done = restore.restore(RUN, setup, into=into, at=at)
    (item,) = list(done.checkpoint.transcript.parts[0].items)
    return item["content"], {path.read_text().strip() for path in (into / "workspace").iterdir()}


def test_each_checkpoint_has_the_files_of_its_own_step(
    capturing: Setup, folder: Path, tmp_path: Path
) -> None:
    with archiver.run("t", run_id=RUN, workspace=folder, policy=EAGER, setup=capturing) as run:
        tickets = [step(run, folder, number) for number in range(3)]
        assert run.flush(60)
    for number, ticket in enumerate(tickets):
        assert ticket.seq is not None
        assert told(capturing, tmp_path / f"out-{number}", ticket.seq) == (str(number), {str(number)})


def patient(setup: Setup, seconds: float) -> Setup:
    run = setup.settings.run.model_copy(update={"patience": timedelta(seconds=seconds)})
    return replace(setup, settings=setup.settings.model_copy(update={"run": run}))


def test_a_folder_that_takes_longer_than_the_patience_is_said_to(
    capturing: Setup,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    goes_on = threading.Event()
    members = workspace_in.WorkspaceIn.members

    def slow(self: workspace_in.WorkspaceIn, *more: Any, **named: Any) -> Any:
        assert goes_on.wait(60)
        return members(self, *more, **named)

    monkeypatch.setattr(workspace_in.WorkspaceIn, "members", slow)
    with archiver.run("t", run_id=RUN, workspace=folder, policy=EAGER, setup=patient(capturing, 0.3)) as run:
        ticket = step(run, folder, 1)
        assert not ticket.saved
        assert "may be newer than its conversation" in caplog.text
        goes_on.set()
        assert ticket.wait(60)
        assert step(run, folder, 2).wait(60)
    assert ticket.seq == 1
    said = restore.restore(RUN, capturing, into=tmp_path / "out", at=1).report.left_out
    assert [line for line in said if "the run went on before all of its folder was read" in line]
    said = restore.restore(RUN, capturing, into=tmp_path / "next", at=2).report.left_out
    assert not [line for line in said if "the run went on" in line]


def test_a_save_that_fails_keeps_no_call(
    capturing: Setup, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(workspace_in.WorkspaceIn, "members", fails)
    with archiver.run("t", run_id=RUN, workspace=folder, policy=EAGER, setup=capturing) as run:
        ticket = step(run, folder, 1)
        assert ticket.hold is not None
        assert ticket.hold.wait(0)
        assert ticket.error is not None
        monkeypatch.undo()


def test_without_a_folder_nothing_is_held(setup: Setup, capturing: Setup, folder: Path) -> None:
    with archiver.run("t", run_id=RUN, policy=EAGER, setup=capturing) as run:
        assert run.checkpoint([], milestone="x").hold is None
    with archiver.run("t", run_id="s", workspace=folder, policy=EAGER, setup=setup) as run:
        assert run.checkpoint([], milestone="x").hold is None


def test_a_second_reading_is_of_another_moment() -> None:
    hold = Hold()
    assert hold.end()
    assert hold.wait(0)
    assert not hold.end(), "the call went on after the first one"
    late = Hold()
    assert not late.wait(0)
    assert not late.end()
