"""Bring what waits into the store: effects first, then bundle and record of each number in order, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from archiver import age, committing, layout, records, rollback, telemetry
from archiver.committing import MAX_AGE_OF_BUNDLE
from archiver.errors import (
    AlreadyExistsError,
    ContainerError,
    ContextMismatchError,
    DamagedError,
    LimitExceededError,
    MissingRecordError,
    ObjectNotFoundError,
    StaleWriterError,
    StoreDeniedError,
    UnconfirmedError,
)
from archiver.history import Histories, opening
from archiver.progress import Progress
from archiver.shellwords import run_word
from archiver.spool import disk
from archiver.spool.entry import Entry, Meta
from archiver.spool.signing import signed_anew
from archiver.store import Remote

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.spool.folder import RunFolder


@dataclass(slots=True)
class Courier:
    """One delivery of one run; nobody else delivers it meanwhile."""

    folder: RunFolder
    setup: Setup
    known: Mapping[int, bytes]
    progress: Progress
    told: Callable[[Entry], None] = lambda _: None
    """Is told of each entry that the store has taken, as it went."""
    delivered: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def run(self, upto: int | None) -> None:
        """Deliver what waits now, in order; raises at the first that cannot be."""
        for name in self.folder.effects():
            self._effect(name)
        numbers = self.folder.numbers()
        last = numbers[-1] if upto is None and numbers else upto or 0
        while (entry := self._next(last)) is not None:
            began = time.monotonic()
            self._entry(*entry)
            telemetry.delivered(time.monotonic() - began)
            with self.folder.changing():
                done = self.folder.mark(self.folder.entry(entry[0].seq), "delivered")
                self.folder.retire()
            self.told(done)
            self.delivered.append(entry[0].seq)

    # --- effects ---

    def _effect(self, name: str) -> None:
        sealed = self.folder.read_effect(name)
        place = layout.effect_name(self.folder.run, name.removesuffix(".age"))
        try:
            self.setup.store.create(place, [sealed], retention="record")
        except AlreadyExistsError:
            with suppress(ObjectNotFoundError):
                if not _same(sealed, self.setup.store.read(place, limit=len(sealed) + (1 << 20))):
                    with self.folder.changing():
                        path = self.folder.effect_aside(name)
                    self.warnings.append(
                        f"{place} was recorded by somebody else before; what was recorded here lies in {path}"
                    )
                    return
        with self.folder.changing():
            self.folder.drop_effect(name)

    # --- entries ---

    def _next(self, last: int) -> tuple[Entry, bool] | None:
        """The first that is not in the store, ready to be sent, and whether that was tried before."""
        while True:
            with self.folder.changing():
                before, entry = self._first()
            if entry is None or entry.seq > last:
                return None
            if entry.state == "sent":
                return entry, True
            changed = self._changed(entry, before)  # without the lock: KMS may be asked, and take its time
            with self.folder.changing():
                if self.folder.entry(entry.seq) != entry:
                    continue  # it gave up its bundle meanwhile
                if changed is not None:
                    entry = self.folder.change(entry, *changed)
                return self.folder.mark(entry, "sent"), False

    def _first(self) -> tuple[Entry | None, Entry | None]:
        """The entry before the first that waits, and that one; the lock is held."""
        try:
            before, entry = self.folder.first_waiting()
            if entry is not None and entry.meta.joined and not _follows(entry, before):
                raise MissingRecordError(f"the entry before record {entry.seq} is not in the spool any more")
        except (DamagedError, ContextMismatchError) as error:
            raise self._broken(error) from error
        return before, entry

    def _changed(self, entry: Entry, before: Entry | None) -> tuple[Meta, bytes] | None:
        """It signed anew, where it gave up its bundle or the one before it was signed anew."""
        previous = before.sha256 if entry.meta.joined and before is not None else entry.meta.previous
        meta = entry.meta if _is_whole(entry) else self._without_bundle(entry)
        if not meta.unsigned and previous == meta.previous:
            return None
        return signed_anew(entry, meta, previous, self.known, self.setup)

    def _without_bundle(self, entry: Entry) -> Meta:
        self.warnings.append(
            f"the bundle of checkpoint {entry.seq} of run {entry.run} in the spool is not what was put "
            "there: its record says that it was skipped"
        )
        return skipped(entry)

    def _entry(self, entry: Entry, tried: bool) -> None:
        self.progress.stage(f"deliver {entry.seq}", entry.size)
        if tried:
            if self._is_there(entry):
                return
            if not _is_whole(entry):
                entry = self._again(entry, self._without_bundle(entry))
        age_of_bundle = 0.0
        if entry.bundle is not None:
            entry, age_of_bundle = self._bundle(entry)
        committing.refuse_old(entry, age_of_bundle)
        sealed = entry.read_record()
        self.progress.advance(len(sealed))
        try:
            self.warnings += committing.create(entry, entry.sha256, sealed, self.setup)
        except AlreadyExistsError as error:
            if not self._is_there(entry):
                raise UnconfirmedError(
                    f"the store says that record {entry.seq} of run {entry.run} exists already, and "
                    "whether it is the own one cannot be read",
                    remedy="let somebody who may read the store run `archiver sync`",
                ) from error
        except UnconfirmedError:
            if not self._was_seen(entry):
                raise

    def _is_there(self, entry: Entry) -> bool:
        """Whether the store has this record already: an answer was lost. Raises where it has another."""
        own = self._is_own(entry)
        if own is False:
            raise self._fork(entry)
        if own:
            self.warnings += committing.follow_up(entry, entry.sha256, self.setup)
        return bool(own)

    def _bundle(self, entry: Entry) -> tuple[Entry, float]:
        """Put the bundle; gives the entry, which may name it anew, and how many seconds ago it was put."""
        started = time.monotonic()
        try:
            self._put(entry)
        except (AlreadyExistsError, UnconfirmedError):
            there = self._age(entry)
            if there is not None and 0 <= there <= MAX_AGE_OF_BUNDLE:
                return entry, there
            # Nobody may tell whether a sweeper takes it for an orphan: it is put once more.
            entry = self._renamed(entry)
            started = time.monotonic()
            self._put(entry)
        return entry, time.monotonic() - started

    def _put(self, entry: Entry) -> None:
        bundle, path = entry.meta.bundle, entry.bundle
        if bundle is not None and path is not None:
            body = _Body(path, self.progress)
            self.setup.store.create(bundle.name, body, retention=entry.meta.retention)

    def _age(self, entry: Entry) -> float | None:
        """Seconds since the store got what lies under the name of the bundle; None if it is not the bundle.

        A role that may not look goes by when it began to send: nobody else knows the name.
        """
        bundle, store = entry.meta.bundle, self.setup.store
        if bundle is None:
            return None
        try:
            info = store.head(bundle.name)
            with store.open(bundle.name) as source:
                if age.payload_digest(source) != (bundle.payload_sha256, bundle.payload_length):
                    return None
        except (ObjectNotFoundError, ContainerError):
            return None
        except StoreDeniedError:
            return time.time() - entry.stepped_at()
        now = store.clock() if isinstance(store, Remote) else datetime.now(UTC)
        return (now - info.modified).total_seconds()

    def _again(self, entry: Entry, meta: Meta) -> Entry:
        """Another record for one that was sent, and of which the store has none."""
        changed = signed_anew(entry, meta, entry.meta.previous, self.known, self.setup)
        with self.folder.changing():
            return self.folder.change(entry, *changed)

    def _renamed(self, entry: Entry) -> Entry:
        name = layout.bundle_name(entry.run, entry.seq, token_hex(8))
        bundle = entry.meta.bundle and entry.meta.bundle.model_copy(update={"name": name})
        return self._again(entry, entry.meta.model_copy(update={"bundle": bundle}))

    def _is_own(self, entry: Entry) -> bool | None:
        """Whether the store's record of this number is this one; None where it has none, or does not say."""
        name = layout.record_name(entry.run, entry.seq)
        histories = Histories(self.setup.store)
        opens = opening(self.setup.identities_for(entry.run, "record"))
        try:
            found = histories.listed(name).objects
            if not found:
                return None
            sealed = histories.read(found[0], records.MAX_RECORD, opens).sealed
        except (ObjectNotFoundError, StoreDeniedError):
            return True if self._was_seen(entry) else None
        except LimitExceededError:
            return False
        return _same(entry.read_record(), sealed)

    def _was_seen(self, entry: Entry) -> bool:
        """Whether the witness has seen this record in the store: a role that may only create cannot look."""
        seen = rollback.look(entry.run, self.setup).seen
        return seen is not None and (seen.seq, seen.sha256) == (entry.seq, entry.sha256)

    # --- forks ---

    def _fork(self, entry: Entry) -> StaleWriterError:
        with self.folder.changing():
            moved = self.folder.move_aside(entry.seq)
        return stale(
            f"somebody else has committed record {entry.seq} of run {entry.run}: what was saved here from "
            "that number on",
            moved,
            entry.run,
        )

    def _broken(self, error: DamagedError) -> StaleWriterError:
        """The lock is held."""
        before = [seq for seq in self.folder.numbers() if self._is_delivered(seq)]
        moved = self.folder.move_aside(before[-1] + 1 if before else 1)
        return stale(f"{error}: what follows in run {self.folder.run}", moved, self.folder.run)

    def _is_delivered(self, seq: int) -> bool:
        with suppress(DamagedError, ContextMismatchError):
            return self.folder.entry(seq).delivered
        return False


def skipped(entry: Entry) -> Meta:
    """What is said of an entry that has given up its bundle; its record has yet to be signed as that."""
    return entry.meta.model_copy(update={"kind": "skipped", "bundle": None, "bases": (), "unsigned": True})


def stale(what: str, moved: list[Path], run: str) -> StaleWriterError:
    """The error of entries that were moved aside, with where they are."""
    error = StaleWriterError(
        f"{what} is kept as {len(moved)} fork{'' if len(moved) == 1 else 's'} and not delivered",
        remedy=f"`archiver sync --list` shows forks, `archiver show {run_word(run)}` who goes on with the "
        "run; a resumed run goes on from what is in the store",
    )
    error.details["forks"] = [str(path) for path in moved]
    return error


@dataclass(frozen=True, slots=True)
class _Body:
    """The sealed bytes, from their beginning whenever a store asks again."""

    path: Path
    progress: Progress

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                self.progress.advance(len(block))
                yield block


def _follows(entry: Entry, before: Entry | None) -> bool:
    return before is not None and before.seq == entry.seq - 1 and entry.meta.previous in before.digests


def _is_whole(entry: Entry) -> bool:
    bundle, path = entry.meta.bundle, entry.bundle
    if bundle is None or path is None:
        return True
    with disk.translated(path):
        try:
            with path.open("rb") as file:
                return age.payload_digest(file) == (bundle.payload_sha256, bundle.payload_length)
        except (FileNotFoundError, ContainerError):
            return False


def _same(own: bytes, found: bytes) -> bool:
    """Whether they are one object: a rekeyed one has another header before the same payload."""
    if own == found:
        return True
    try:
        return age.payload_digest(BytesIO(own)) == age.payload_digest(BytesIO(found))
    except ContainerError:
        return False
