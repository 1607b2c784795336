"""A writer that saves into the spool, as the library in a loop does, and stores that fail on purpose."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archiver import archive, records
from archiver.model import Checkpoint, Items, Record, Transcript, TranscriptPart
from archiver.model.record import RetentionClass
from archiver.position import Position
from archiver.redact import new_key
from archiver.restore import restore
from archiver.setup import Setup
from archiver.spool import Entry, RunSpool, open_spool
from archiver.store import ObjectInfo
from archiver.store.decorated import Decorated

_NUMBERS = random.Random(7)
TEXT = " ".join(str(_NUMBERS.randrange(10**9)) for _ in range(3000))
"""So long that the bundle is what counts."""


def checkpoint(run: str, note: str, text: str = "") -> Checkpoint:
    now = datetime.now(UTC)
    messages = [{"role": "user", "content": f"go on {text}"}]
    return Checkpoint(
        run_id=run,
        task_id=run,
        objective="test",
        phase="a phase",
        note=note,
        created_at=now,
        checkpoint_at=now,
        transcript=Transcript(
            dialect="anthropic-messages",
            parts=(TranscriptPart(name="messages.jsonl", items=Items.of(messages)),),
        ),
    )


@dataclass
class Hand:
    """Numbers and seals checkpoints of one run, and puts them into the spool."""

    setup: Setup
    spool: RunSpool
    place: Position
    made: list[Record] = field(default_factory=list)

    @classmethod
    def of(cls, setup: Setup, run: str) -> Hand:
        spool = open_spool(setup).of(run, run)
        return cls(setup, spool, Position(run, redaction_key=new_key()))

    def sealed(self, note: str, text: str = TEXT, keep: Path | None = None) -> tuple[Record, bytes, Path]:
        """A record, its object and the file of its bundle."""
        source = archive.Source(checkpoint=checkpoint(self.place.run, note, text))
        options = archive.Options(capture=False)
        with archive.prepare(
            source, self.setup, lambda _: self.place, options=options, parent=self.spool.folder
        ) as prepared:
            record = prepared.record(prepared.new_name(), datetime.now(UTC))
            reached = self.setup.seal_to(record.run, record.task, "record")
            record, sealed = records.sealed(record, self.setup.require_signing_key(), reached)
            path = (keep or self.spool.folder) / f"bundle-{record.seq}-{record.bundle.name[-30:-24]}"  # type: ignore[union-attr]
            shutil.move(prepared.sealed.path, path)
        return record, sealed, path

    def save(self, note: str, *, plain: bool = True, text: str = TEXT) -> Entry:
        record, sealed, path = self.sealed(note, text)
        entry = self.spool.add(record, sealed, path, plain=plain)
        self.went_on(record)
        return entry

    def went_on(self, record: Record) -> None:
        self.made.append(record)
        self.place = replace(
            self.place, seq=record.seq + 1, previous=records.body_sha256(record), head=record
        )


class Failing(Decorated):
    """A store that has something happen before, or after, a call is passed on."""

    def __init__(
        self,
        inner: Any,
        before: Callable[[str], None] = lambda _: None,
        after: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(inner)
        self.before, self.after = before, after
        self.created: list[str] = []

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        self.before(name)
        done = self._inner.create(name, body, retention=retention)
        self.created.append(name)
        self.after(name)
        return done


def through(setup: Setup, store: Any) -> Setup:
    return replace(setup, store=store)


def names(setup: Setup, prefix: str = "") -> list[str]:
    return [info.name for info in setup.store.list(prefix)]


def restored(setup: Setup, folder: Path, run: str = "r", at: int | None = None) -> str:
    """The note of what a restore gives."""
    into = folder / f"out-{run}-{at}"
    return restore(run, setup, into=into, at=at).checkpoint.note
