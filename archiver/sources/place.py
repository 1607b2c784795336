"""What all sources have in common: a folder, a pattern, and what the settings say of the runs there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from archiver.sources.ending import ending
from archiver.sources.found import IDLE, Ending, FileStamp, Found, Kind, Unusable, newest
from archiver.sources.listing import Entry, Pattern, entries, stamp, unusable
from archiver.sources.opened import OpenFiles


@dataclass(frozen=True, slots=True)
class Place:
    """A folder where runs of one kind lie."""

    kind: Kind
    path: Path
    match: str = "**"
    idle: timedelta = IDLE
    task: str | None = None
    named: bool = True
    """False for the place of a harness that nobody named: it need not be there."""
    configured: bool = True
    """False where whoever calls the sweep has typed it."""

    def ending(self, found: Found, now: datetime, opened: OpenFiles) -> Ending:
        """Whether a run is complete and how it ended."""
        return ending(found, now, opened)

    def pattern(self) -> Pattern:
        """Which paths below the folder count."""
        return Pattern(self.path, self.match)

    def missing(self) -> Unusable | None:
        """That the folder is not there."""
        try:
            if self.path.is_dir():
                return None
        except OSError as error:
            return unusable(self.kind, self.path, error, root=True)
        remedy = "make it, or correct or remove this source in `sweep.sources`"
        if not self.configured:
            remedy = "name a folder that is there behind KIND="
        why = "there is no such folder"
        return Unusable(self.kind, str(self.path), why, broken=self.named, remedy=remedy, root=True)

    def entries(self, folder: Path, problems: list[Unusable]) -> list[Entry]:
        """What lies in a folder; one that cannot be listed is a problem and holds nothing."""
        try:
            return entries(folder)
        except OSError as error:
            problems.append(unusable(self.kind, folder, error, root=folder == self.path))
            return []

    def stamp(self, entry: Entry, problems: list[Unusable], *, follow: bool) -> FileStamp | None:
        """A regular file as it is now, or None; one that cannot be looked at is a problem."""
        try:
            return stamp(entry, follow=follow)
        except OSError as error:
            problems.append(unusable(self.kind, entry.path, error))
            return None

    def found(self, key: Path, files: tuple[FileStamp, ...], **said: Any) -> Found:
        """A run whose main file is the first one."""
        said["task"] = self.task or said.get("task")
        given = {"paths": (files[0].path,), **said}
        return Found(self.kind, str(key), files=files, written=newest(files), idle=self.idle, **given)


class Once:
    """Files that were given already: one with two names, or a link to it, is one run."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def first(self, file: FileStamp) -> bool:
        """Whether the file was not given before."""
        before = len(self._seen)
        self._seen.add((file.device, file.inode))
        return len(self._seen) > before


def given(problems: list[Unusable]) -> Iterator[Unusable]:
    """The problems so far, each once."""
    yield from problems
    problems.clear()
