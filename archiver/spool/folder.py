"""The folder of one run in the spool: what is done to it, each step in one rename, under a lock.

.lock, .delivery          held while something changes; while something is delivered
entries/<number>/         a record and its bundle
bases/<number>/           delivered entries whose bundles one of the entries is based on
effects/<id>.age          an object of the effects ledger that the store has not taken yet
forks/<number>-<random>/  entries that lost their number to somebody else
finished                  empty; nothing of the run is kept once it is delivered
.tmp/                     what is being written or removed
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Final

from archiver.errors import AlreadyExistsError, ArchiverError, ContextMismatchError, DamagedError
from archiver.scratch import fsync_folder
from archiver.spool import disk
from archiver.spool.entry import (
    BUNDLE,
    REMEDY,
    Entry,
    Meta,
    State,
    load,
    meta_bytes,
    meta_file,
    number,
    record_file,
)

MAX_EFFECT: Final = 1 << 20
"""Bytes of an object of the effects ledger."""
_FINISHED = "finished"


class RunFolder:
    """What lies in the spool of one run of one store. Errors: those of `disk.translated`, `DamagedError`."""

    def __init__(self, path: Path, store: str, run: str) -> None:
        self.path = path
        self.run = run
        self._store = store
        self._entries, self.effects_path, self._forks = path / "entries", path / "effects", path / "forks"
        self._bases = path / "bases"
        self._tmp = path / ".tmp"

    @property
    def exists(self) -> bool:
        return disk.is_folder(self.path)

    @property
    def holds_something(self) -> bool:
        parts = (self._entries, self.effects_path, self._forks)
        return self.exists and any(disk.names(part) for part in parts)

    def waiting(self) -> tuple[int, datetime | None]:
        """How many entries and effects are not in the store yet, and since when the first entry is here.

        One that cannot be read counts.
        """
        numbers = self.numbers()
        for place, seq in enumerate(numbers):
            at = None
            with suppress(ArchiverError):
                entry = self.entry(seq)
                if entry.delivered:
                    continue
                at = entry.at
            return len(self.effects()) + len(numbers) - place, at
        return len(self.effects()), None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody else changes the folder meanwhile; what a killed process left half-done is removed."""
        with disk.translated(self.path), self._held(".lock"):
            for folder in (self._entries, self._tmp):
                disk.make_folder(folder)
            for left in self._tmp.iterdir():
                _remove(left)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """The same for a look; nothing is made where there is nothing."""
        with self.changing() if self.exists else nullcontext():
            yield

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Nobody else delivers meanwhile; adding goes on."""
        with disk.translated(self.path), self._held(".delivery"):
            yield

    @contextmanager
    def _held(self, name: str) -> Iterator[None]:
        held = None
        while held is None:
            disk.make_folder(self.path)
            with suppress(FileNotFoundError):  # it was empty, and somebody removed it just now
                held = disk.hold(self.path / name)
        try:
            yield
        finally:
            disk.release(held)

    # --- entries ---

    def numbers(self) -> list[int]:
        """Numbers that have an entry, ascending; what is called otherwise is nobody's entry."""
        return _numbers(self._entries)

    def entry(self, seq: int) -> Entry:
        """Raises what `entry.load` does."""
        path = self.entry_path(seq)
        if not disk.is_folder(path):
            raise DamagedError(f"{path} is not the folder of an entry", remedy=REMEDY)
        return load(path, self._store, self.run)

    def entry_path(self, seq: int) -> Path:
        return self._entries / f"{seq:08d}"

    def entries(self) -> list[Entry]:
        return [self.entry(seq) for seq in self.numbers()]

    def newest(self) -> Entry | None:
        numbers = self.numbers()
        return self.entry(numbers[-1]) if numbers else None

    def first_waiting(self) -> tuple[Entry | None, Entry | None]:
        """The entry before the first that is not delivered, and that one."""
        before = None
        for seq in self.numbers():
            entry = self.entry(seq)
            if not entry.delivered:
                return before, entry
            before = entry
        return before, None

    def bases(self) -> list[Entry]:
        """Those that are kept for others; one that cannot be read is passed over: the store has it."""
        found = []
        for seq in _numbers(self._bases):
            with suppress(DamagedError, ContextMismatchError):
                found.append(load(self._bases / f"{seq:08d}", self._store, self.run))
        return found

    def drop_bases(self, but: Collection[int] = ()) -> bool:
        """Remove those that are kept for others, which the store has; whether there were any."""
        gone = [seq for seq in _numbers(self._bases) if seq not in but]
        for seq in gone:
            disk.remove(self._bases / f"{seq:08d}", self._tmp)
        return bool(gone)

    def put(
        self,
        meta: Meta,
        sealed: bytes,
        bundle: Path | None,
        skip: Callable[[], None] = lambda: None,
        state: State = "waiting",
    ) -> Entry:
        """A new entry, durable when this returns; of a failure nothing is left, the bundle where it was.

        `skip` makes the room that it takes by the rules, once it is certain that the disk has it.
        """
        staged = self._tmp / secrets.token_hex(8)
        target = self.entry_path(meta.seq)
        at, moved = staged, False
        try:
            staged.mkdir(mode=0o700)
            disk.write(staged / record_file(meta), sealed)
            disk.write(staged / meta_file(state), meta_bytes(meta))
            if bundle is not None:
                moved = disk.take(bundle, staged / BUNDLE)
            fsync_folder(staged)
            skip()
            staged.rename(target)
            at = target
            fsync_folder(self._entries)
        except (OSError, ArchiverError):
            if moved and bundle is not None:
                (at / BUNDLE).rename(bundle)
            shutil.rmtree(at, ignore_errors=True)
            raise
        if bundle is not None and not moved:
            bundle.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (self.path / _FINISHED).unlink()
        return Entry(target, meta, state)

    def change(self, entry: Entry, meta: Meta, sealed: bytes | None = None) -> Entry:
        """Say something else of an entry, with another record if need be; its bundle goes if that is said."""
        place = entry.folder / meta_file(entry.state)
        if sealed is not None and record_file(meta) != record_file(entry.meta):
            (entry.folder / record_file(meta)).unlink(missing_ok=True)
            disk.write(entry.folder / record_file(meta), sealed)
        new = self._tmp / secrets.token_hex(8)
        disk.write(new, meta_bytes(meta))
        new.replace(place)
        fsync_folder(entry.folder)
        if record_file(meta) != record_file(entry.meta):
            (entry.folder / record_file(entry.meta)).unlink(missing_ok=True)
        if meta.bundle is None:
            (entry.folder / BUNDLE).unlink(missing_ok=True)
        return Entry(entry.folder, meta, entry.state)

    def mark(self, entry: Entry, state: State) -> Entry:
        """Let it take a step; nothing is written, so that it can on a full disk."""
        if entry.state != state:
            place = entry.folder / meta_file(entry.state)
            os.utime(place)
            place.rename(entry.folder / meta_file(state))
            fsync_folder(entry.folder)
        return Entry(entry.folder, entry.meta, state)

    def retire(self) -> None:
        """Remove what is delivered; of a run that goes on what is needed to go on without the store stays.

        That is the newest with a bundle, what came after it, and, apart, what these are based on.
        """
        numbers = self.numbers()
        delivered: list[Entry] = []
        with suppress(DamagedError):  # whoever delivers it next says so
            delivered.extend(takewhile(lambda entry: entry.delivered, map(self.entry, numbers)))
        kept = 0
        if not (self._is_finished() and len(delivered) == len(numbers)):
            from_end = [entry.bundle is not None for entry in reversed(delivered)]
            kept = from_end.index(True) + 1 if True in from_end else min(1, len(delivered))
        left = delivered[: len(delivered) - kept]
        needed = self._needed(numbers[len(left) :])
        for entry in left:
            if entry.seq in needed and entry.bundle is not None:
                disk.make_folder(self._bases)
                target = self._bases / entry.folder.name
                if disk.is_folder(target):
                    disk.remove(target, self._tmp)
                entry.folder.rename(target)
            else:
                disk.remove(entry.folder, self._tmp)
        self.drop_bases(but=needed)

    def _needed(self, numbers: list[int]) -> set[int]:
        """What the bundles of these entries are based on."""
        needed: set[int] = set()
        for seq in numbers:
            with suppress(DamagedError, ContextMismatchError):
                entry = self.entry(seq)
                needed.update(entry.meta.bases if entry.bundle is not None else ())
        return needed

    def finish(self) -> None:
        """Keep nothing any more of what is delivered; the folder goes when nothing is left in it."""
        marker = self.path / _FINISHED
        if not marker.exists():
            disk.write(marker, b"")
        self.retire()

    def tidy(self) -> None:
        """Remove the folder of a finished run in which nothing is left."""
        if not self._is_finished():
            return
        for folder in (self._entries, self.effects_path, self._forks):
            if disk.names(folder):
                return
        self.drop_bases()
        for folder in (self._entries, self.effects_path, self._forks, self._bases, self._tmp):
            with suppress(OSError):
                folder.rmdir()
        for name in (_FINISHED, ".delivery", ".lock"):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody has put something there
            self.path.rmdir()

    def _is_finished(self) -> bool:
        return (self.path / _FINISHED).exists()

    # --- forks ---

    def move_aside(self, seq: int) -> list[Path]:
        """Keep that entry and all later ones as forks; the last goes first, so an interruption is seen."""
        disk.make_folder(self._forks)
        moved = []
        for one in reversed([one for one in self.numbers() if one >= seq]):
            target = self._forks / f"{one:08d}-{secrets.token_hex(4)}"
            self.entry_path(one).rename(target)
            moved.append(target)
        for folder in (self._forks, self._entries):
            fsync_folder(folder)
        return moved[::-1]

    def forks(self) -> Iterator[tuple[int, Path, Entry | None]]:
        """Number, folder, and the entry where it can still be read."""
        with disk.translated(self._forks):
            found = disk.names(self._forks)
        for name in found:
            seq, path = number(name), self._forks / name
            if seq is None or not disk.is_folder(path):
                continue
            entry = None
            with suppress(ArchiverError):
                entry = load(path, self._store, self.run)
            yield seq, path, entry

    def drop_fork(self, path: Path) -> None:
        disk.remove(path, self._tmp)

    # --- effects ---

    def effects(self) -> list[str]:
        """File names, sorted."""
        with disk.translated(self.effects_path):
            return [name for name in disk.names(self.effects_path) if name.endswith(".age")]

    def read_effect(self, name: str) -> bytes:
        with disk.translated(self.effects_path):
            return disk.read(self.effects_path / name, MAX_EFFECT)

    def put_effect(self, name: str, sealed: bytes) -> None:
        """`AlreadyExistsError` where another object has the name."""
        disk.make_folder(self.effects_path)
        target = self.effects_path / name
        if os.path.lexists(target):
            if disk.read(target, MAX_EFFECT) == sealed:
                return
            raise AlreadyExistsError(
                f"the spool of run {self.run} holds another object {name}",
                remedy="an effect is recorded once: look at the one that is there",
            )
        new = self._tmp / secrets.token_hex(8)
        disk.write(new, sealed)
        new.rename(target)
        fsync_folder(self.effects_path)

    def drop_effect(self, name: str) -> None:
        (self.effects_path / name).unlink(missing_ok=True)
        fsync_folder(self.effects_path)

    def effect_aside(self, name: str) -> Path:
        """Keep the object among the forks."""
        disk.make_folder(self._forks)
        target = self._forks / f"effect-{secrets.token_hex(4)}-{name}"
        (self.effects_path / name).rename(target)
        for folder in (self._forks, self.effects_path):
            fsync_folder(folder)
        return target


def _numbers(folder: Path) -> list[int]:
    """Numbers that have an entry in the folder, ascending."""
    with disk.translated(folder):
        found = [(name, number(name)) for name in disk.names(folder)]
    return [seq for name, seq in found if seq is not None and len(name) == 8]


def _remove(path: Path) -> None:
    if disk.is_folder(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
