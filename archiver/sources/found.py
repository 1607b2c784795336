"""What a source says: the runs that it found, those that cannot be looked at, and how one ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from archiver.model.checkpoint import Outcome

if TYPE_CHECKING:
    from archiver.sources.opened import OpenFiles

Kind = Literal["claude-code", "codex", "messages", "folder"]
IDLE = timedelta(minutes=30)
"""How long a run must be quiet where no settings say it."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as it was seen: if one of these changes, it may have been written to. Size in bytes."""

    path: Path
    size: int
    mtime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class Found:
    """One run on disk."""

    kind: Kind
    key: str
    """Its name within its source: the path of the main file, or of the folder; bytes that are not UTF-8 are
    surrogates, as `os.fsdecode` has them."""
    paths: tuple[Path, ...]
    """What is to be read, the main file first; the files of sub-agents are found by the reader itself."""
    files: tuple[FileStamp, ...]
    """All files that belong to it, the main one first."""
    written: datetime
    """The newest modification of any of them; it may lie ahead of the clock."""
    run_id: str | None = None
    task: str | None = None
    user: str | None = None
    phase: str = ""
    note: str = ""
    outcome: Outcome | None = None
    """As a manifest states it; what a transcript shows is told by `Source.ending`."""
    idle: timedelta = IDLE


@dataclass(frozen=True, slots=True)
class Unusable:
    """What looks like a run and cannot be archived as it is; the others go on."""

    kind: Kind
    key: str
    why: str
    """Plain words, without the path."""
    broken: bool = True
    """False for what is merely none of the runs that this source is for, and is passed over with a word."""
    remedy: str = "mend or move it, or leave it out with `match` of the source"
    root: bool = False
    """Whether it is the folder of the source itself, so that none of its runs can be seen."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Whether a run is complete, how it ended (None while it goes on), and by what that is told."""

    complete: bool
    outcome: Outcome | None
    why: str


class Source(Protocol):
    """A place where runs lie; nothing is changed there."""

    @property
    def kind(self) -> Kind: ...

    @property
    def path(self) -> Path: ...

    def find(self) -> Iterator[Found | Unusable]:
        """The runs that lie there now, each once; no content is read but what is needed to tell them."""
        ...

    def ending(self, found: Found, now: datetime, opened: OpenFiles) -> Ending:
        """Whether it is complete and how it ended; `RefusedError` if it may not be read."""
        ...


def newest(files: tuple[FileStamp, ...]) -> datetime:
    """When the newest of these files was written."""
    written = max(stamp.mtime_ns for stamp in files)
    try:
        return datetime.fromtimestamp(written // 1_000_000_000, UTC) + timedelta(
            microseconds=written % 1_000_000_000 // 1000
        )
    except (OverflowError, ValueError, OSError):  # a file system may hold any number
        return datetime.max.replace(tzinfo=UTC) if written > 0 else datetime.fromtimestamp(0, UTC)
