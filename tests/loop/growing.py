"""A run that grows, sealed as the background writer does it, and delivered when a test says so."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archiver.archive import Options
from archiver.catalog import Catalog
from archiver.loop.snapshot import Snapshot, Ticket
from archiver.loop.writer_queue import Job
from archiver.loop.writer_sealing import Sealed, Sealer
from archiver.model import Checkpoint, Items, Outcome, Record, Transcript, TranscriptPart
from archiver.position import Position, find
from archiver.redact import new_key
from archiver.restore import restore
from archiver.setup import Setup
from archiver.spool import open_spool

RUN = "r"


def words(seed: int, count: int) -> str:
    chance = random.Random(seed)
    return " ".join(f"word{chance.randrange(10**6)}" for _ in range(count))


def with_run(setup: Setup, **changes: Any) -> Setup:
    """The same with other settings of `[run]`."""
    run = setup.settings.run.model_copy(update=changes)
    return replace(setup, settings=setup.settings.model_copy(update={"run": run}))


class Growing:
    """One process that writes the run; `made` has what each of its checkpoints was made of."""

    def __init__(
        self,
        setup: Setup,
        *,
        run: str = RUN,
        resumed: Growing | None = None,
        first: int = 400,
        each: int = 30,
    ) -> None:
        self.setup, self.run = setup, run
        self.spool = open_spool(setup).of(run, run)
        place = find(run, setup) if resumed else Position(run, redaction_key=new_key())
        self.sealer = Sealer(setup, place, self.spool, lambda: Options(capture=False), self.deliver)
        self.messages: list[dict[str, Any]] = list(resumed.messages) if resumed else []
        self.made: dict[int, Checkpoint] = dict(resumed.made) if resumed else {}
        self._each = each
        self.grow(first)

    def grow(self, count: int | None = None) -> None:
        number = len(self.messages)
        role = "user" if number % 2 == 0 else "assistant"
        self.messages.append({"role": role, "content": words(number, count or self._each)})

    def state(self, outcome: Outcome = "running") -> Checkpoint:
        now = datetime.now(UTC)
        part = TranscriptPart(name="messages.jsonl", items=Items.of(list(self.messages)))
        return Checkpoint(
            run_id=self.run,
            task_id=self.run,
            objective="test",
            note=f"{len(self.messages)} messages",
            outcome=outcome,
            created_at=now,
            checkpoint_at=now,
            transcript=Transcript(dialect="anthropic-messages", parts=(part,)),
        )

    def save(self, outcome: Outcome = "running", *, plain: bool = True, deliver: bool = True) -> Sealed:
        """One more turn, sealed."""
        self.grow()
        state = self.state(outcome)
        done = self.sealer.seal(Job(Snapshot(lambda: state, 100, plain, Ticket("waiting", "test"))))
        self.made[done.seq] = state
        if deliver and not done.stored:
            assert self.deliver()
        return done

    def deliver(self) -> bool:
        """As the delivering thread does."""
        told = self.spool.deliver(told=self._told)
        return not told.pending

    def _told(self, entry: Any) -> None:
        if entry.kind == "checkpoint":
            self.sealer.acknowledged(entry.seq, entry.meta.bundle.name)


def records(setup: Setup, run: str = RUN) -> list[Record]:
    return list(Catalog(setup).chain(run).records)


def bases(setup: Setup) -> list[tuple[int, ...] | None]:
    """What each record of the run says that its bundle is based on."""
    return [record.bundle.bases if record.bundle else None for record in records(setup)]


def demand_whole(growing: Growing, folder: Path, *, only: set[int] | None = None) -> None:
    """Every checkpoint that was committed gives exactly what it was made of."""
    for record in records(growing.setup, growing.run):
        if record.kind == "checkpoint" and (only is None or record.seq in only):
            into = folder / f"whole-{growing.run}-{record.seq}"
            found = restore(growing.run, growing.setup, into=into, at=record.seq, accept=["age"]).checkpoint
            made = growing.made[record.seq]
            assert found.note == made.note
            assert list(found.transcript.parts[0].items) == list(made.transcript.parts[0].items)


def path_of(setup: Setup, record: Record) -> Path:
    """The file of a bundle."""
    assert record.bundle is not None
    return Path(setup.store.url.removeprefix("file://")) / record.bundle.name


__all__ = ["RUN", "Growing", "bases", "demand_whole", "path_of", "records", "with_run", "words"]
