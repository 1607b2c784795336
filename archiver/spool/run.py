"""The spool of one run: put records there, bring them into the store, and prove from them what is newest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import jsonio, layout, records, telemetry
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    StaleWriterError,
    StoreFullError,
    UsageError,
)
from archiver.model.record import Record
from archiver.progress import Progress, Silent
from archiver.spool import disk, proof, room
from archiver.spool.delivery import Courier, skipped
from archiver.spool.entry import BundleFile, Entry, Meta
from archiver.spool.folder import MAX_EFFECT, RunFolder
from archiver.spool.reader import SpoolReader
from archiver.spool.signing import opened

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a delivery has done."""

    delivered: tuple[int, ...]
    """Numbers that it brought into the store."""
    pending: int
    """Entries and effects that still wait."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fork:
    """An entry that lost its number to somebody else, and is kept to be looked at."""

    run: str
    seq: int
    at: datetime
    """When it was put into the spool; where it cannot be read, when its folder changed last."""
    phase: str | None
    """None where no identity at hand opens it."""
    size: int
    """Bytes on the disk."""
    path: Path


class RunSpool:
    """What waits of one run. Safe with several processes and threads, and across a fork.

    Each call locks anew. There are two locks: one, for milliseconds, around each change, and one around a
    whole delivery, so that adding goes on meanwhile. Who waits in vain gets `StoreUnreachableError`.
    """

    def __init__(self, setup: Setup, folder: RunFolder, scratch: Path, space: room.Room, task: str) -> None:
        self._setup, self._folder, self._room = setup, folder, space
        self._scratch = scratch
        self._task = task
        self._known: dict[int, bytes] = {}
        self._last: str | None = None

    @property
    def folder(self) -> Path:
        """A folder for what is being made, on the file system of the spool; it is there."""
        with disk.translated(self._scratch):
            disk.make_folder(self._scratch)
        return self._scratch

    def add(self, record: Record, sealed_record: bytes, bundle: Path | None, *, plain: bool) -> Entry:
        """Keep a sealed record, durable when this returns; the file of its bundle is moved here.

        `plain` says that it may give up its bundle when there is no room: it is then delivered as a skipped
        record. The oldest do first, never the newest. What the next record names as `previous` is the digest
        of `record`, whatever becomes of it here.

        Raises `StoreFullError` where that makes not enough room, or the disk is full: nothing is kept then,
        and what was kept before is whole. `StaleWriterError` where the number does not follow what is here.
        """
        self._demand_own(record, bundle)
        size = len(sealed_record) + (bundle.stat().st_size if bundle is not None else 0)
        with self._folder.changing():
            joined = self._place(record)
            chosen = self._chosen(size)
            meta = self._meta(record, sealed_record, bundle, plain=plain, joined=joined)
            entry = self._folder.put(meta, sealed_record, bundle, lambda: self._skip(chosen))
        self._room.changed(size)
        self._last = entry.sha256
        self._remember(record)
        return entry

    def keep(self, record: Record, sealed_record: bytes) -> bool:
        """Keep a record without a bundle that came straight into the store, such as the own claim, as one
        that was delivered: what proves the head goes on to it. Whether it follows what is kept here; else
        nothing is done.

        Raises `StoreFullError` and what else the disk fails with.
        """
        self._demand_own(record, None)
        if not self._folder.exists:
            return False
        with self._folder.changing():
            head = self._folder.newest()
            if head is None or not head.delivered or head.seq + 1 != record.seq:
                return False
            if record.previous not in head.digests:
                return False
            meta = self._meta(record, sealed_record, None, plain=False, joined=True)
            self._folder.put(meta, sealed_record, None, state="delivered")
        self._room.changed(len(sealed_record))
        return True

    def entries(self) -> tuple[Entry, ...]:
        """What is not in the store yet, by number. Raises `DamagedError` for an entry that cannot be read."""
        with self._folder.reading():
            return tuple(entry for entry in self._folder.entries() if not entry.delivered)

    def head(self) -> Entry | None:
        """The newest, in the store or not; None where nothing is kept of the run."""
        with self._folder.reading():
            return self._folder.newest()

    def add_effect(self, name: str, sealed: bytes) -> None:
        """Keep an object of the effects ledger under its name in the store; durable when this returns.

        `AlreadyExistsError` where another object has the name here.
        """
        parsed = layout.parse(name)
        if parsed.kind != "effect" or parsed.run != self._folder.run or len(sealed) > MAX_EFFECT:
            raise InvalidNameError(f"{name} is no effect of run {self._folder.run}, or too large for one")
        with self._folder.changing():
            self._folder.put_effect(f"{parsed.effect}.age", sealed)

    def effects(self) -> tuple[tuple[str, bytes], ...]:
        """Objects of the effects ledger that the store has not taken yet: name there, and bytes."""
        run = self._folder.run
        with self._folder.reading():
            return tuple(
                (layout.effect_name(run, name.removesuffix(".age")), self._folder.read_effect(name))
                for name in self._folder.effects()
            )

    @telemetry.span("archiver.deliver")
    def deliver(
        self,
        *,
        upto: int | None = None,
        progress: Progress | None = None,
        told: Callable[[Entry], None] = lambda _: None,
    ) -> Delivery:
        """Bring what waits now into the store, effects first, then by number, each exactly once.

        `told` hears of each entry that the store has taken, as it went there.
        What the store does not take stays, and its error is raised. Where the store has another record of a
        number, that one and all after it become forks: `StaleWriterError`. `KeyUnavailableError` where a
        record has to be signed anew and cannot be opened here.
        """
        if not self._folder.exists:
            return Delivery((), 0)
        with self._folder.delivering():
            courier = Courier(self._folder, self._setup, self._known, progress or Silent(), told)
            try:
                courier.run(upto)
            finally:
                for seq in courier.delivered:
                    self._known.pop(seq, None)
        with self._folder.changing():
            pending, _ = self._folder.waiting()
            self._folder.tidy()
        return Delivery(tuple(courier.delivered), pending, tuple(courier.warnings))

    def finish(self) -> None:
        """The run is over: once all of it is delivered nothing of it is kept here, but for forks."""
        self._last = None
        if self._folder.exists:
            with self._folder.changing():
                self._folder.finish()
                self._folder.tidy()

    def forks(self) -> tuple[Fork, ...]:
        """Entries that lost their number, oldest number first."""
        with self._folder.reading():
            return tuple(self._forks())

    def drop_fork(self, fork: Fork) -> None:
        """Remove a fork for good."""
        with self._folder.changing():
            self._folder.drop_fork(fork.path)
            self._folder.tidy()

    def reader(self) -> ObjectStore:
        """What is here as a store that is only read: to open a bundle while the store is away."""
        return SpoolReader(self._folder)

    def proven(self) -> proof.Proven | None:
        """The newest record as far as this machine can tell, and the newest with a bundle here; else None.

        Proven is what leads without a gap from what the witness has seen, or is exactly that; what another
        machine has done since nobody can know here. Raises what opening a record raises.
        """
        with self._folder.reading():
            entries, bases = self._folder.entries(), self._folder.bases()
        return proof.prove(entries, bases, self._folder.run, self._setup)

    def proven_head(self) -> Record | None:
        """The newest record of `proven`."""
        proven = self.proven()
        return proven.head if proven else None

    # --- adding ---

    def _demand_own(self, record: Record, bundle: Path | None) -> None:
        place = (self._setup.require_store_id(), self._folder.run, self._task or record.task)
        if (record.store, record.run, record.task) != place:
            raise ContextMismatchError(
                f"record {record.seq} of run {record.run} of task {record.task} does not belong into the "
                f"spool of run {self._folder.run}",
                remedy="open the spool of that run",
            )
        if (bundle is None) != (record.bundle is None):
            raise UsageError(f"record {record.seq} of run {record.run} and its bundle do not belong together")

    def _place(self, record: Record) -> bool:
        """Whether it follows the newest entry; `StaleWriterError` where it cannot come next."""
        for _, path, fork in self._folder.forks():
            if fork is not None and record.previous in fork.digests:
                raise _lost(record, f"the record before it lost its number; it is kept in {path}")
        head = self._folder.newest()
        joined = head is not None and head.seq + 1 == record.seq and record.previous in head.digests
        if head is not None and not joined:
            if record.seq <= head.seq:
                raise _lost(record, f"the spool has record {head.seq} of the run already")
            if not head.delivered or record.seq == head.seq + 1:
                raise _lost(record, f"it does not follow record {head.seq}, which is in the spool")
        if self._last is not None and record.previous == self._last and not joined:
            raise _lost(record, "the record before it is not in the spool any more")
        return joined

    def _chosen(self, size: int) -> list[Entry]:
        """Those that give up their bundles, so that there is room for so many bytes."""
        lacking = self._room.lacking(size)
        if lacking and self._folder.drop_bases():  # the store has them: they are here for a resume without it
            lacking = self._room.lacking(size)
        if not lacking:
            return []
        waiting = [entry for entry in self._folder.entries() if not entry.delivered]
        chosen = room.to_skip(waiting, lacking, self._room.limit)
        if not chosen:
            raise StoreFullError(
                f"the spool of run {self._folder.run} has no room for {size} bytes: it may hold "
                f"{self._room.limit}, and nothing more of this run may be left out",
                remedy="`archiver sync` delivers what it holds; run.spool_limit says how much that may be",
            )
        return chosen

    def _skip(self, chosen: list[Entry]) -> None:
        for entry in chosen:
            changed = self._folder.change(entry, skipped(entry))
            self._room.changed(changed.size - entry.size)

    def _meta(self, record: Record, sealed: bytes, bundle: Path | None, *, plain: bool, joined: bool) -> Meta:
        held = None
        if record.bundle is not None and bundle is not None:
            held = BundleFile(
                name=record.bundle.name,
                payload_sha256=record.bundle.payload_sha256,
                payload_length=record.bundle.payload_length,
                size=bundle.stat().st_size,
            )
        return Meta(
            store=record.store,
            run=record.run,
            seq=record.seq,
            kind=record.kind,
            plain=plain,
            joined=joined,
            sha256=records.body_sha256(record),
            previous=record.previous,
            recorded_at=record.recorded_at,
            retention=record.retention,
            sealed_sha256=hashlib.sha256(sealed).hexdigest(),
            sealed_size=len(sealed),
            bundle=held,
            bases=record.bundle.bases if record.bundle is not None else (),
            at=datetime.now(UTC),
        )

    def _remember(self, record: Record) -> None:
        """Keep what a record says where it cannot be opened again: it may have to be signed anew."""
        own = {identity.fingerprint for identity in self._setup.identities}
        if not own & set(record.recipients):
            self._known[record.seq] = jsonio.canonical(record.document())

    # --- the rest ---

    def _forks(self) -> Iterator[Fork]:
        for seq, path, entry in self._folder.forks():
            phase = None
            try:
                phase = opened(entry, self._setup).phase if entry is not None else None
            except ArchiverError:
                phase = None
            with disk.translated(path):
                at = entry.at if entry else datetime.fromtimestamp(path.stat().st_mtime, UTC)
                yield Fork(self._folder.run, seq, at, phase, disk.size_of(path), path)


def _lost(record: Record, why: str) -> StaleWriterError:
    return StaleWriterError(
        f"record {record.seq} of run {record.run} cannot be kept: {why}",
        remedy="another process writes this run: resume it, and go on from what is in the store",
    )
