"""What is to be saved, how, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import __version__, layout
from archiver.compact import CompactReport, Marks, Summarise
from archiver.describe import Given
from archiver.epochs import Based, Reason, Terms
from archiver.model import Checkpoint, Receipt, Record, Sizes, SourceRef
from archiver.position import Position
from archiver.record_of import record_of
from archiver.redact import Redactor
from archiver.saying import warnings_of
from archiver.sealing import SealedBundle
from archiver.transcripts.reader import Dropped

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Source:
    """What to save: the files of one transcript, or a checkpoint that the caller made."""

    paths: tuple[Path, ...] = ()
    checkpoint: Checkpoint | None = None
    workspace: Path | None = None
    """The folder that the run works in, to be saved with it."""
    was_still: Callable[[], bool] = lambda: True
    """Called once when all of the folder was read: whether the run has left it alone until now."""
    only: frozenset[tuple[int, int]] | None = None
    """Device and inode of what may be read, where others than who archives can change what lies at a path."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to save it."""

    given: Given = Given()  # noqa: RUF009 - frozen and without state
    keep_full: bool | None = None
    salvage: bool = False
    keep_turns: int | None = None
    summarise: Summarise | None = None
    capture: bool = True
    """False for a checkpoint that was saved before: the world of today is not the one it was taken in."""
    after: int | None = None
    """The number it has to follow, for one that is made of what was newest then."""
    watch: tuple[str, ...] = ()
    """Resources whose version is remembered, besides those of the settings."""
    made_of: SourceRef | None = None
    """The finished run on disk that it is made of."""
    full: bool = False
    """Whether the run has met its limit, so that `limits.run_policy` says what becomes of artifacts."""


@dataclass(frozen=True, slots=True)
class Archived:
    """A committed checkpoint."""

    record: Record
    receipt: Receipt
    compaction: CompactReport
    dropped: tuple[Dropped, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A redacted checkpoint that is sealed on the local disk, and nowhere else yet."""

    sealed: SealedBundle
    checkpoint: Checkpoint
    place: Position
    compaction: CompactReport
    dropped: tuple[Dropped, ...]
    raw: int
    """Bytes of the transcript as it was found."""
    redactor: Redactor
    setup: Setup
    made_of: SourceRef | None = None
    marks: Marks = Marks()  # noqa: RUF009 - frozen and without state
    """Where its compaction stood."""
    terms: Terms | None = None
    based: Based | Reason = "unacknowledged"
    """What it is based on, or why it is full."""

    def new_name(self) -> str:
        """A name for the bundle that nothing has had before."""
        return layout.bundle_name(self.place.run, self.place.seq, secrets.token_hex(8))

    def record(self, name: str, recorded_at: datetime) -> Record:
        """The record that commits it as the bundle of that name."""
        sealed = self.sealed
        return record_of(
            self.checkpoint,
            self.place,
            self.setup,
            bundle=sealed.packed.ref(name, sealed.container),
            sizes=Sizes(raw=self.raw, compacted=sealed.packed.unpacked, stored=sealed.size),
            receipt=self.redactor.receipt(),
            recipients=sealed.container.fingerprints,
            missing=sealed.missing,
            recorded_at=recorded_at,
            software=f"checkpoint-archiver {__version__}",
            source=self.made_of,
        )

    def archived(self, record: Record, unfinished: Iterable[str] = ()) -> Archived:
        """What is said of it once it is committed; `unfinished` is what could not be done after that."""
        redactor = self.redactor
        warnings = (*warnings_of(record, redactor, self.dropped), *map(redactor.text, unfinished))
        return Archived(record, redactor.receipt(), self.compaction, self.dropped, warnings)
