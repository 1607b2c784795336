"""Kill a run that writes its folder and its conversation, at random events; what is restored is of one step.

    python workspace_killing.py CONFIG FOLDER KILLS SEED KIND

A child is forked each time, goes on with the run, and dies by SIGKILL at an event that is drawn: each step
writes its number into all files and into the conversation. Then the newest checkpoint is restored, what waits
in the spool is delivered, and the newest is restored again. `KIND` is "folder" or "git". Prints a JSON line
for each kill: the step it was killed in, the one that was durable for the child, those that were restored.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spool.making import Failing

import archiver
from archiver import syncing
from archiver.config import load
from archiver.errors import NoSuchRunError, StoreUnreachableError
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from e2e.killing import dies_at, remove_just_made

RUN = "r"
EAGER = archiver.Policy("milestones", floor=0.0, floor_calls=1)
"""Saves each milestone, and waits for no store."""
STEPS = 4
"""What a child does at most before it ends without closing anything."""
FILES = ("a.txt", "b/c.txt", "b/d/e.txt", "run.sh")
ACCEPT = ("git_dirty", "git_commit", "git_branch", "lockfiles", "installed")
GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"]}


@dataclass(frozen=True)
class Place:
    """Where one run works, and what it has told about itself before it died."""

    run: str
    folder: Path
    """The folder of the run, as a user has it."""
    kind: str
    told: Path

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env=GIT, check=True, capture_output=True)

    def begin(self) -> None:
        self.folder.mkdir()
        self.told.mkdir()
        if self.kind == "git":
            self.git("init", "-q", "-b", "main")
            self.git("config", "user.name", "A")
            self.git("config", "user.email", "a@example.org")

    def tell(self, what: str, number: int) -> None:
        new = self.told / f"{what}.new"
        new.write_text(f"{number}\n")
        new.replace(self.told / what)  # death in the midst of it leaves what was told before

    def heard(self, what: str) -> int:
        path = self.told / what
        return int(path.read_text()) if path.exists() else 0


def step(place: Place, number: int) -> None:
    """Write the number into every file; files come and go, and so do commits."""
    for name in FILES:
        path = place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    for old in place.folder.glob("only-*"):
        old.unlink()
    (place.folder / f"only-{number}").write_text(f"{number}\n")
    link = place.folder / "newest"
    link.unlink(missing_ok=True)
    link.symlink_to(f"only-{number}")
    if place.kind == "git":
        (place.folder / ".git" / "index.lock").unlink(missing_ok=True)  # of the child that was killed
        if number % 3 != 1:
            place.git("add", "-A")
        if number % 3 == 0:
            place.git("commit", "-q", "--allow-empty", "-m", f"step {number}")


def work(setup: Setup, place: Place) -> archiver.Run | None:
    """Go on for some steps; nothing is closed. None where the store is away at once."""
    opening = archiver.run(
        "t",
        run_id=place.run,
        workspace=place.folder,
        policy=EAGER,
        setup=setup,
        accept=ACCEPT,
    )
    try:
        run = opening.__enter__()
    except StoreUnreachableError:
        return None
    messages: list[Any] = run.messages
    for number in range(len(messages) + 1, len(messages) + 1 + STEPS):
        place.tell("begun", number)
        step(place, number)
        messages.append({"role": "user", "content": f"step {number}"})
        ticket = run.checkpoint(messages, milestone=f"step {number}")
        if ticket.saved:
            place.tell("durable", number)
    run.flush(2)
    return run


def away(draw: random.Random, setup: Setup) -> Setup:
    """The same with a store that takes nothing, or nothing after a while."""
    left = draw.randrange(6)

    def refuse(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise StoreUnreachableError("the store is away")

    return replace(setup, store=Failing(setup.store, before=refuse))


def restored(setup: Setup, into: Path) -> int:
    """The step that the newest checkpoint is of; conversation and tree must be of the same; 0: none is."""
    shutil.rmtree(into, ignore_errors=True)
    try:
        done = restore(RUN, setup, into=into, accept=ACCEPT)
    except NoSuchRunError:
        return 0
    messages = list(done.checkpoint.transcript.parts[0].items)
    number = len(messages)
    assert messages[-1]["content"] == f"step {number}", messages[-1]
    tree = into / "workspace"
    found = {name: (tree / name).read_text() for name in FILES}
    assert set(found.values()) == {f"{number}\n"}, (number, found)
    names = sorted(path.name for path in tree.iterdir() if path.name != ".git")
    assert names == sorted({"a.txt", "b", "run.sh", "newest", f"only-{number}"}), (number, names)
    assert os.readlink(tree / "newest") == f"only-{number}"  # noqa: PTH115 - a text as it is
    assert not [line for line in done.report.left_out if "the run went on" in line], done.report.left_out
    return number


def deliver(setup: Setup) -> None:
    """As `archiver sync` does."""
    for row in syncing.deliver(setup, syncing.waiting(setup)):
        assert row.error is None, row.error
        assert not (row.left or row.forks), row


def main(config: Path, folder: Path, kills: int, seed: int, kind: str) -> None:
    setup = open_setup(load(config), need="write")
    draw = random.Random(seed)
    # Once here, so that no child spends events on imports.
    warm, place = (Place(run, folder / f"{run}-work", kind, folder / f"{run}-told") for run in ("warm", RUN))
    for one in (warm, place):
        one.begin()
    run = work(setup, warm)
    assert run is not None
    run.close()
    killed = number = 0
    most = 1500
    while killed < kills:
        event = draw.randrange(1, most)
        through = away(draw, setup) if draw.random() < 0.3 else setup
        died = dies_at(event, lambda through=through: work(through, place))  # type: ignore[misc]
        most = int(most * (1.15 if died else 0.7)) + 20
        killed += died
        remove_just_made(setup)
        before = restored(setup, folder / "before")
        deliver(setup)
        after = restored(setup, folder / "after")
        begun, durable = place.heard("begun"), place.heard("durable")
        assert number <= before <= after, (number, before, after)
        assert max(number, durable) <= after <= begun, (number, durable, after, begun)
        number = after
        if number and draw.random() < 0.5:  # as somebody does who goes on with what was restored
            shutil.rmtree(place.folder)
            shutil.move(folder / "after" / "workspace", place.folder)
            if kind == "git":
                place.git("config", "user.name", "A")
                place.git("config", "user.email", "a@example.org")
        place.tell("durable", number)
        line = {"died": died, "event": event, "begun": begun, "durable": durable, "steps": [before, after]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
