"""One save of a session at a time, and events that come meanwhile are one more afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver.hooks.event import Event
from archiver.hooks.turns import Turns, forget_old

NEVER = timedelta(0)
LONG = timedelta(hours=1)


@pytest.fixture
def turns(tmp_path: Path) -> Turns:
    return Turns(tmp_path / "hooks", tmp_path / "session.jsonl")


def event(name: str, at: float | None = None) -> Event:
    return Event(name, Path("/session.jsonl"), time.time() if at is None else at)


def test_what_comes_while_one_is_at_work_is_one_more(turns: Turns) -> None:
    saved: list[str] = []

    def save(one: Event) -> None:
        saved.append(one.name)
        if len(saved) == 1:
            for _ in range(10):
                turns.take(event("Stop"), NEVER, unwanted)
                turns.take(event("SubagentStop"), NEVER, unwanted)

    turns.take(event("Stop"), NEVER, save)
    assert len(saved) == 2
    assert sorted(path.name for path in turns.folder.iterdir()) == ["last", "lock"]


def unwanted(_: Event) -> None:
    raise AssertionError("somebody else holds the lock")


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        ([("Stop", 1.0), ("SessionEnd", 2.0)], "SessionEnd"),
        ([("Stop", 1.0), ("PreCompact", 2.0), ("Stop", 3.0)], "PreCompact"),
        ([("SessionEnd", 1.0), ("Stop", 2.0)], "Stop"),  # it was taken up again
        ([("SubagentStop", 2.0), ("Stop", 1.0)], "SubagentStop"),
    ],
)
def test_which_of_those_that_wait_counts(
    turns: Turns, waiting: list[tuple[str, float]], expected: str
) -> None:
    saved: list[str] = []

    def save(one: Event) -> None:
        saved.append(one.name)
        if len(saved) == 1:
            for name, at in waiting:
                turns.take(event(name, at), NEVER, unwanted)

    turns.take(event("PreCompact", 0.5), NEVER, save)
    assert saved == ["PreCompact", expected]


def test_the_floor_holds_for_turns_alone(turns: Turns) -> None:
    saved: list[str] = []

    def save(one: Event) -> None:
        saved.append(one.name)

    for name in ("Stop", "Stop", "SubagentStop", "PreCompact", "Stop", "SessionEnd", "Stop"):
        turns.take(event(name), LONG, save)
    assert saved == ["Stop", "PreCompact", "SessionEnd"]


def test_a_clock_that_was_set_back_does_not_stop_it(turns: Turns) -> None:
    saved: list[str] = []
    turns.take(event("Stop"), LONG, lambda one: saved.append(one.name))
    (turns.folder / "last").write_text(f'{{"began": {time.time() + 10_000}}}')
    turns.take(event("Stop"), LONG, lambda one: saved.append(one.name))
    (turns.folder / "last").write_text("damaged")
    turns.take(event("Stop"), LONG, lambda one: saved.append(one.name))
    assert len(saved) == 3


def test_a_late_turn_does_not_open_what_has_ended(turns: Turns) -> None:
    saved: list[str] = []
    turns.take(event("SessionEnd", 10.0), NEVER, lambda one: saved.append(one.name))
    turns.take(event("Stop", 9.9), NEVER, lambda one: saved.append(one.name))
    assert saved == ["SessionEnd"]
    turns.take(event("Stop", 10.1), NEVER, lambda one: saved.append(one.name))
    assert saved == ["SessionEnd", "Stop"]


def test_what_comes_between_the_last_look_and_the_end_of_the_lock(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    look = Turns._following

    def late(self: Turns) -> Event | None:
        found = look(self)
        if found is None and len(saved) == 1:
            turns.take(event("PreCompact"), NEVER, unwanted)
        return found

    monkeypatch.setattr(Turns, "_following", late)
    turns.take(event("Stop"), NEVER, lambda one: saved.append(one.name))
    assert saved == ["Stop", "PreCompact"]


def test_an_error_frees_the_lock(turns: Turns) -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        turns.take(event("Stop"), NEVER, broken)
    saved: list[str] = []
    turns.take(event("Stop"), NEVER, lambda one: saved.append(one.name))
    assert saved == ["Stop"]


CALLER = """
import os, sys, time
from datetime import timedelta
from pathlib import Path
from archiver.hooks.event import Event
from archiver.hooks.turns import Turns
home, busy, log = map(Path, sys.argv[1:4])
def save(event):
    os.mkdir(busy)  # fails where two are at work
    with log.open("a") as file:
        file.write(f"{event.at}\\n")
    time.sleep(0.02)
    os.rmdir(busy)
def calls():
    for number in range(12):
        at = time.time()
        Turns(home, Path("/s.jsonl")).take(Event("Stop", Path("/s.jsonl"), at), timedelta(0), save)
    print(at, flush=True)
    os._exit(0)
children = [os.fork() or calls() for _ in range(3)]
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_many_processes_save_one_after_the_other_and_the_last_event_too(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("hooks", "busy", "log")]
    done = subprocess.run(
        [sys.executable, "-c", CALLER, *names], capture_output=True, text=True, timeout=120, check=True
    )
    last = list(map(float, done.stdout.split()))
    assert len(last) == 3
    saved = list(map(float, (tmp_path / "log").read_text().split()))
    assert len(saved) < 36
    assert not list((tmp_path / "hooks").glob("*/Stop"))
    assert max(saved) >= max(last) - 0.5


def test_sessions_that_nobody_calls_for_are_forgotten(turns: Turns, tmp_path: Path) -> None:
    turns.take(event("Stop"), NEVER, lambda _: None)
    other = Turns(turns.home, tmp_path / "other.jsonl")
    other.take(event("Stop"), NEVER, lambda _: None)
    old = time.time() - 31 * 86400
    os.utime(other.folder, (old, old))
    forget_old(turns.home)
    assert turns.folder.exists()
    assert not other.folder.exists()


def test_a_session_at_work_is_not_forgotten(turns: Turns) -> None:
    def save(_: Event) -> None:
        old = time.time() - 31 * 86400
        os.utime(turns.folder, (old, old))
        forget_old(turns.home)
        assert turns.folder.exists()

    turns.take(event("Stop"), NEVER, save)


def test_an_end_that_lies_ahead_of_the_clock_does_not_close_a_session(turns: Turns) -> None:
    """The clock was wrong when the session ended; every turn after that would be passed over for a year."""
    saved: list[str] = []
    turns.take(event("SessionEnd", time.time() + 365 * 86400), NEVER, lambda one: saved.append(one.name))
    turns.take(event("Stop"), NEVER, lambda one: saved.append(one.name))
    assert saved == ["SessionEnd", "Stop"]


def test_hooks_with_another_configuration_save_for_themselves(turns: Turns) -> None:
    saved: list[str] = []
    other = Turns(turns.home, turns.transcript, "/other.toml")

    def save(one: Event) -> None:
        saved.append(one.name)
        if len(saved) == 1:
            other.take(event("SessionEnd"), LONG, save)

    turns.take(event("Stop"), LONG, save)
    assert saved == ["Stop", "SessionEnd"]
    other.take(event("SessionEnd"), LONG, save)
    assert len(saved) == 3


def test_a_folder_that_is_forgotten_between_two_steps_is_made_anew(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    make, made = Path.mkdir, []

    def mkdir(self: Path, *arguments: Any, **more: Any) -> None:
        make(self, *arguments, **more)
        made.append(self)
        if len(made) == 1:
            self.rmdir()

    monkeypatch.setattr(Path, "mkdir", mkdir)
    turns.take(event("Stop"), NEVER, lambda one: saved.append(one.name))
    assert saved == ["Stop"]
