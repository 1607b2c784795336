"""`archiver sync`: delivers, lists, tells what is left, and removes a fork only when told to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Command, command

from archiver.cli.completing import spooled
from archiver.config import load
from archiver.doctor import Check, examine
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.spool.spool import place

from .making import Hand
from .test_forks import take_over

__all__ = ["command"]
Make = Callable[..., Hand]


@pytest.fixture
def waiting(hand: Make) -> Hand:
    """Two checkpoints of run `r` and one of run `-s` wait."""
    writer = hand()
    writer.save("one")
    writer.save("two")
    hand("-s").save("one")
    return writer


def spool_check(config: Path) -> Check:
    (check,) = (check for check in examine(load(config)) if check.name == "spool")
    return check


def test_everything_is_delivered(command: Command, config: Path, setup: Setup, waiting: Hand) -> None:
    listed = command("sync", "--list", "--config", config)
    assert [row[:4] for row in listed.rows] == [
        ["r", "1", "checkpoint", "waiting"],
        ["r", "2", "checkpoint", "waiting"],
        ["-s", "1", "checkpoint", "waiting"],
    ]
    assert command("sync", "--dry-run", "r", "--config", config).rows == listed.rows[:2]
    assert spool_check(config).verdict == "warning"
    done = command("sync", "--config", config)
    assert (done.code, done.rows) == (0, [["r", "2", "0", "0", "-"], ["-s", "1", "0", "0", "-"]]), done.err
    again = command("sync", "--json", "--config", config)
    assert (again.code, again.json) == (0, {"runs": [], "error": None})
    listed = command("sync", "--list", "--all", "--json", "--config", config)
    assert [one["state"] for one in listed.json["spool"]] == ["delivered", "delivered"]
    swept = command("sync", "--list", "--config", config)
    assert (swept.rows, swept.err[:20]) == ([], "2 records besides: d")
    assert command("sync", "--list", "--json", "--config", config).json["delivered_not_shown"] == 2
    assert spool_check(config).verdict == "ok"


def test_one_run_alone(command: Command, config: Path, setup: Setup, waiting: Hand) -> None:
    assert command("sync", "r", "--config", config).rows == [["r", "2", "0", "0", "-"]]
    assert open_spool(setup).depth().entries == 1
    assert command("sync", "--config", config, "--", "-s").code == 0
    assert open_spool(setup).depth().entries == 0


def test_a_run_that_is_nowhere(command: Command, config: Path, setup: Setup, hand: Make) -> None:
    """It is a slip; of one that the store has and that has left nothing here there is nothing to do."""
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    shutil.rmtree(place(load(config)))
    done = command("sync", "r", "--config", config)
    assert (done.code, done.out) == (0, "Nothing waits for the store.\n")
    done = command("sync", "nosuch", "r", "--config", config)
    assert done.code == 9
    assert "there is no run nosuch" in done.err


def test_a_store_that_is_away(command: Command, config: Path, tmp_path: Path, waiting: Hand) -> None:
    (tmp_path / "store").rename(tmp_path / "gone")
    done = command("sync", "--config", config)
    assert done.code == 8
    assert done.rows == [["r", "0", "2", "0", "-"], ["-s", "0", "1", "0", "-"]]
    assert "3 objects of 2 runs wait" in done.err
    assert command("sync", "--list", "--config", config).code == 0
    (tmp_path / "gone").rename(tmp_path / "store")
    assert command("sync", "--config", config).code == 0


def test_forks(command: Command, config: Path, setup: Setup, hand: Make) -> None:
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    writer.save("two")
    take_over(setup)
    done = command("sync", "--config", config)
    assert (done.code, done.rows) == (3, [["r", "0", "0", "1", "StaleWriterError"]]), done.err
    assert "sync --list" in done.err
    assert command("sync", "--config", config).code == 0, "it is said once"
    check = spool_check(config)
    assert check.text == "1 lost its number to another writer, kept as fork"
    assert "delivers" not in str(check.remedy), "nothing waits"
    assert "never delivered" in str(check.remedy)
    rows = command("sync", "--list", "--config", config).rows
    assert [row[:4] for row in rows] == [["r", "2", "checkpoint", "fork"]]
    shown = command("sync", "--drop-fork", "r:2", "--config", config)
    assert (shown.code, shown.out[:12]) == (0, "Would remove")
    (fork,) = writer.spool.forks()
    assert fork.path.exists()
    assert command("sync", "--drop-fork", "r:2", "--yes", "--config", config).out.startswith("Removed")
    assert writer.spool.forks() == ()
    assert command("sync", "--drop-fork", "r:2", "--yes", "--config", config).code == 9


@pytest.mark.parametrize(
    "words", [("--yes",), ("--all",), ("--drop-fork", "r"), ("--drop-fork", ":2"), ("--drop-fork", "r:x")]
)
def test_what_makes_no_sense(words: tuple[str, ...], command: Command, config: Path) -> None:
    assert command("sync", *words, "--config", config).code == 2


def test_runs_are_completed(config: Path, waiting: Hand) -> None:
    class Context:
        parent = None
        params: dict[str, object] = {"config": config}  # noqa: RUF012 # as typer's is

    assert spooled(Context(), "") == ["r", "-s"]  # type: ignore[arg-type]
    assert spooled(Context(), "r") == ["r"]  # type: ignore[arg-type]
