"""Saves as an agent does and ends, or is killed, without closing its writer.

    python writer_child.py CONFIG HOW NUMBER

`HOW`: "ends", "raises", "hangs" (the store never answers) or "killed" (as "hangs", and dies by SIGKILL once
all is sealed).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from archiver.config import load
from archiver.loop.snapshot import Snapshot, Ticket
from archiver.loop.writer import Writer
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.position import Position
from archiver.redact import new_key
from archiver.setup import open_setup
from archiver.spool import open_spool
from archiver.store.decorated import Decorated

Result = TypeVar("Result")


class Hanging(Decorated):
    """A store that never answers."""

    def _call(self, verb: str, work: Callable[[], Result]) -> Result:
        threading.Event().wait()
        return work()


def checkpoint(note: str) -> Checkpoint:
    now = datetime.now(UTC)
    part = TranscriptPart(name="messages.jsonl", items=Items.of([{"role": "user", "content": note}]))
    return Checkpoint(
        run_id="r",
        task_id="r",
        objective="test",
        note=note,
        created_at=now,
        checkpoint_at=now,
        transcript=Transcript(dialect="anthropic-messages", parts=(part,)),
    )


def main(config: Path, how: str, number: int) -> None:
    setup = open_setup(load(config), need="write")
    if how in ("hangs", "killed"):
        setup = replace(setup, store=Hanging(setup.store))
    writer = Writer(
        setup,
        Position("r", redaction_key=new_key()),
        open_spool(setup).of("r", "r"),
        patience=0.5 if how == "hangs" else 60.0,
        queue=8,
    )
    for one in range(number):
        writer.submit(Snapshot(partial(checkpoint, f"note {one}"), 100, False, Ticket("waiting", "")))
    if how in ("hangs", "killed"):
        assert writer.drain(60)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise ValueError("the agent is wrong")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
