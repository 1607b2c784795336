"""A run that grows and works in a folder, and what was read of that folder at each save."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.loop.writer_sealing import Sealed
from archiver.model import Checkpoint, Outcome
from archiver.model.checkpoint import Workspace
from archiver.redact.carried import CarriedRedactor
from archiver.restore import restore
from archiver.setup import Setup
from loop.growing import RUN, Growing, records

Picture = dict[str, tuple[int, int, bytes]]


def with_capture(setup: Setup) -> Setup:
    """The same, with workspaces saved."""
    workspace = setup.settings.workspace.model_copy(update={"capture": True})
    return replace(setup, settings=setup.settings.model_copy(update={"workspace": workspace}))


def looks(folder: Path) -> Picture:
    """Mode, time and content of everything below, by path."""
    found = {}
    for path in folder.rglob("*"):
        seen = path.lstat()
        data = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if stat.S_ISREG(seen.st_mode):
            data = path.read_bytes()
        found[str(path.relative_to(folder))] = (seen.st_mode, seen.st_mtime_ns, data)
    return found


class Working(Growing):
    """`looked` has the folder as it was at each checkpoint."""

    def __init__(self, setup: Setup, folder: Path, *, run: str = RUN, resumed: Working | None = None) -> None:
        self.folder = folder
        self.looked: dict[int, Picture] = dict(resumed.looked) if resumed else {}
        super().__init__(with_capture(setup), run=run, resumed=resumed, first=20, each=5)

    def state(self, outcome: Outcome = "running") -> Checkpoint:
        return super().state(outcome).model_copy(update={"workspace": Workspace(path=str(self.folder))})

    def save(self, outcome: Outcome = "running", *, plain: bool = True, deliver: bool = True) -> Sealed:
        looked = looks(self.folder)
        done = super().save(outcome, plain=plain, deliver=deliver)
        self.looked[done.seq] = looked
        return done


@contextmanager
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of the files that are scanned within the block."""
    read: list[str] = []
    scan = CarriedRedactor.file

    def noted(self: CarriedRedactor, found: object, blocks: object) -> object:
        read.append(found.entry.path)  # type: ignore[attr-defined]
        return scan(self, found, blocks)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(CarriedRedactor, "file", noted)
        yield read


def back(working: Working, folder: Path, seq: int) -> Path:
    """The folder of a checkpoint, made again."""
    into = folder / f"back-{seq}-{len(list(folder.glob('back-*')))}"
    restore(working.run, working.setup, into=into, at=seq, accept=["age"])
    return into / "workspace"


def demand_folders(working: Working, folder: Path) -> None:
    """Every checkpoint gives the folder as it was."""
    for record in records(working.setup, working.run):
        assert looks(back(working, folder, record.seq)) == working.looked[record.seq], record.seq
