"""The spool of one store on this machine: `<run.spool>/<store id>/<run>/`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import layout, telemetry
from archiver.config import state_home
from archiver.errors import InvalidNameError
from archiver.spool import disk
from archiver.spool.folder import RunFolder
from archiver.spool.room import Room
from archiver.spool.run import Fork, RunSpool

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup

_SCRATCH = ".scratch"


@dataclass(frozen=True, slots=True)
class Depth:
    """How much waits for the store."""

    entries: int
    """Records and effects that the store does not have yet."""
    bytes: int
    """All that is on the disk, the kept newest entries and forks too."""
    forks: int
    oldest: datetime | None
    """When the oldest entry that waits was put here."""


class Spool:
    """What waits of all runs of one store. Nothing is made before something is added."""

    def __init__(self, setup: Setup, root: Path) -> None:
        self._setup = setup
        self._store = setup.require_store_id()
        self.folder = root / self._store
        self._room = Room(root, setup.settings.run.spool_limit)

    def of(self, run: str, task: str = "") -> RunSpool:
        """The spool of that run; `task` is the one that its records must be of. `InvalidNameError`."""
        folder = RunFolder(self.folder / layout.encode_run(run), self._store, run)
        return RunSpool(self._setup, folder, self.folder / _SCRATCH, self._room, task)

    def runs(self) -> tuple[str, ...]:
        """Runs of which anything is here, by name; other files and folders are passed over."""
        return tuple(one.run for one in _folders(self.folder, self._store))

    def depth(self) -> Depth:
        """How much waits; an entry that cannot be read counts."""
        return _depth(self.folder, self._store)

    def forks(self) -> tuple[Fork, ...]:
        """Entries of all runs that lost their number."""
        return tuple(fork for run in self.runs() for fork in self.of(run).forks())


def place(settings: Settings) -> Path:
    """The folder of the spools of all stores; `ConfigError` without a home."""
    return settings.run.spool or state_home() / "spool"


def open_spool(setup: Setup) -> Spool:
    """The spool of the configured store; `ConfigError` where it has no id, or there is no home for it."""
    spool = Spool(setup, place(setup.settings))
    telemetry.spool(str(spool.folder), partial(_waiting, spool.folder, setup.require_store_id()))
    return spool


def _folders(folder: Path, store: str) -> list[RunFolder]:
    """Those of runs of which anything is there."""
    found = []
    with disk.translated(folder):
        for name in disk.names(folder):
            with suppress(InvalidNameError):
                found.append(RunFolder(folder / name, store, layout.decode_run(name)))
        return [one for one in found if one.holds_something]


def _depth(folder: Path, store: str) -> Depth:
    entries = forks = 0
    oldest = None
    for one in _folders(folder, store):
        with one.reading():
            waiting, since = one.waiting()
            entries += waiting
            forks += sum(1 for _ in one.forks())
        oldest = min((at for at in (oldest, since) if at is not None), default=None)
    with disk.translated(folder):
        return Depth(entries, disk.size_of(folder), forks, oldest)


def _waiting(folder: Path, store: str) -> tuple[int, int]:
    """For the measures: they hold no setup, whose keys would stay as long as the process."""
    depth = _depth(folder, store)
    return depth.entries, depth.bytes
