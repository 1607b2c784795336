"""Agents for tests of the harness: one that is right, some with a planted bug each, some that cannot be run.

They know nothing of the library face: they archive and restore by hand, so that these tests stand alone.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archiver import layout
from archiver.archive import Source, archive
from archiver.config import load
from archiver.errors import NoSuchRunError
from archiver.model import Checkpoint, Effect
from archiver.restore import restore
from archiver.setup import open_setup
from archiver.spool import open_spool
from archiver.testing import Place

STEPS = ("one", "two")
HOMES = ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
MAIL = Effect(key="mail", tool="mail.send", status="uncertain")


class Saved:
    """The state of run `r`: which steps are done, what is known of one mail, and how it ended."""

    def __init__(self, place: Place) -> None:
        self._setup = open_setup(load(), need="write")
        self._place = place
        self.done: list[str] = []
        self.mail: Effect | None = None
        self.outcome: Any = "running"
        self.resumed = False
        with suppress(NoSuchRunError):
            self._restore()

    def _restore(self) -> None:
        place = self._place
        into = place.folder / f"restored-{os.getpid()}"
        restored = restore("r", self._setup, into=into, accept={"effects"})
        state = restored.resume(resolve=place.resolve, because=place.because).state
        self.done, self.outcome = state.note.split(), state.outcome
        self.mail = next(iter(state.effects), None)
        self.resumed = True

    def save(self) -> None:
        now = datetime.now(UTC)
        state = Checkpoint(
            run_id="r",
            task_id="t",
            objective="test",
            note=" ".join(self.done),
            effects=() if self.mail is None else (self.mail,),
            outcome=self.outcome,
            created_at=now,
            checkpoint_at=now,
        )
        archive(Source(checkpoint=state), self._setup)


def right(place: Place) -> Any:
    """Steps that may be done again, then a mail that is sent once."""
    return work(place)


def work(place: Place, *, intent: bool = True, early: bool = False) -> Any:
    """All is right, but for what is asked: no `intent` before the mail, steps called done too `early`."""
    saved = Saved(place)
    for step in STEPS:
        if step not in saved.done:
            saved.done.append(step)
            if early:
                saved.save()
            place.world.act(step, replayable=True)
            saved.save()
    if saved.mail is None or saved.mail.status != "confirmed":
        if intent:
            saved.mail = MAIL
            saved.save()
        place.world.act("mail", {"to": "ops"})
        saved.mail = MAIL.model_copy(update={"status": "confirmed"})
        saved.save()
    if saved.outcome != "succeeded":
        saved.outcome = "succeeded"
        saved.save()
    return {"steps": saved.done, "mail": place.world.value("mail")}


def twice(place: Place) -> Any:
    """Sends the mail with no intent saved before, so it may send it twice."""
    return work(place, intent=False)


def loses(place: Place) -> Any:
    """Calls a step done before it is, so it may never be."""
    return work(place, early=True)


def differs(place: Place) -> Any:
    """Ends otherwise when it was resumed."""
    saved = Saved(place)
    saved.save()
    return "resumed" if saved.resumed else "at once"


def forgets(place: Place) -> Any:
    """Forgets, when it was resumed, to say that the run has succeeded."""
    saved = Saved(place)
    saved.save()
    saved.outcome = "running" if saved.resumed else "succeeded"
    saved.save()


def spoils(place: Place) -> Any:
    """Spoils a bundle when it was resumed, and leaves something in the spool."""
    saved = Saved(place)
    saved.save()
    if saved.resumed:
        setup = open_setup(load(), need="write")
        for bundle in (Path(str(setup.settings.store.url)) / "bundles" / "r").glob("0*"):
            bundle.write_bytes(b"spoilt")
        open_spool(setup).of("r", "t").add_effect(layout.effect_name("r", "0" * 32), b"never sent")


def breaks(place: Place) -> Any:
    """Cannot be resumed."""
    if any(place.folder.iterdir()):
        raise RuntimeError("the folder is in the way")
    (place.folder / "mine").write_text("x", encoding="utf-8")
    place.world.act("a", replayable=True)


def unsteady(place: Place) -> Any:
    """Ends differently each time."""
    place.world.act("a", replayable=True)
    return os.getpid()


def keeps_a_file(place: Place) -> Any:
    """Ends otherwise when what an earlier life wrote on the machine's disk is still there."""
    homes = [Path(os.environ[name]) for name in HOMES]
    found = [path.name for path in (place.folder, *homes) if (path / "mine").exists()]
    for path in (place.folder, *homes):
        (path / "mine").write_text("x", encoding="utf-8")
    place.world.act("a", replayable=True)
    return found


def leaves(place: Place) -> Any:
    """Starts a process that would outlive it."""
    child = subprocess.Popen(["sleep", "600"])
    place.world.act(f"started {child.pid}", replayable=True)
    child.kill()
    child.wait()


async def awaited() -> Any:
    """Takes nothing, and is awaited."""
    await asyncio.sleep(0)
    return {"home": os.environ["HOME"], "here": str(Path.cwd())}


def hangs(place: Place) -> Any:
    """Waits for what does not come."""
    place.world.act(f"{os.getpid()}")
    threading.Event().wait()


def fails() -> Any:
    """Fails also when nobody kills it."""
    raise ValueError("no good")


def two(one: Any, other: Any) -> Any:
    """Takes too much."""
