"""What the records of a store say: the newest of each run, and the verified chain of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

from archiver import layout, records
from archiver.age.context import BindableIdentity
from archiver.errors import (
    ArchiverError,
    ChainError,
    ContextMismatchError,
    InvalidNameError,
    MissingRecordError,
    NoSuchRunError,
    ObjectNotFoundError,
    RefusedError,
    StoreUnreachableError,
)
from archiver.model.record import Record
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.records import Link
from archiver.store import ObjectInfo, ObjectStore, Remote

if TYPE_CHECKING:
    from archiver.setup import Setup

OUTAGE = 50
"""Runs that cannot be reached, one after the other, before the store itself counts as unreachable."""
GROUP = 32
"""Records that are fetched before the first of them is opened."""
FOLDER_WORKERS = 4
"""Threads that read records of a folder: more than one also where it lies on a network."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a run, or the error that keeps it from being read."""

    run: str
    seq: int
    record: Record | None = None
    error: ArchiverError | None = None


@dataclass(frozen=True, slots=True)
class Entry(Link):
    """A verified record with its object in the store."""

    info: ObjectInfo
    writer: str
    """Name of its writer, from the list of trusted keys."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Records of a run from the first on, each checked against the one before."""

    run: str
    links: tuple[Entry, ...]
    newest: int
    """The highest number that has a record, whether or not it was looked at."""

    @property
    def head(self) -> Entry:
        return self.links[-1]

    @property
    def writer(self) -> str:
        """Name of the writer of the last of them."""
        return self.head.writer


@dataclass(frozen=True, slots=True)
class Beginning:
    """Records of a run from the first on that form one unbroken chain, and what keeps it from going on."""

    run: str
    links: tuple[Entry, ...]
    newest: int
    """The highest number that has a record, whether or not it was looked at."""
    error: ArchiverError | None = None


_Found = tuple[str, int, ObjectInfo]
"""A record that a list has: its run, its number, its object."""
_Fetched = tuple[str, int, ObjectInfo, "bytes | Entry | ArchiverError"]
"""The same with the sealed record, with the opened one, or with what kept it from being read."""


class Catalog:
    """Reads records; every one is opened, its signature verified and its writer judged before it is used.

    Up to `workers` are read at the same time, by default as many as the store welcomes.
    """

    def __init__(self, setup: Setup, *, workers: int | None = None) -> None:
        self._setup = setup
        self.notes = Notes(setup)
        self._distant_keys = any(isinstance(key, BindableIdentity) for key in setup.identities)
        self.workers = workers or (
            setup.store.parallel if isinstance(setup.store, Remote) else FOLDER_WORKERS
        )

    def runs(self) -> Iterator[str]:
        """Every run that has a record, in the order of the store's names; nothing is read."""
        return (run for run, _ in self.newest_numbers())

    def newest_numbers(self) -> Iterator[tuple[str, int]]:
        """The same, each with the number of its newest record."""
        return ((run, seq) for run, seq, _ in self._newest_objects())

    def numbers(self, run: str) -> list[int]:
        """The sequence numbers that have a record, ascending; empty when there is no such run."""
        return [seq for seq, _ in self._run_objects(run)]

    def heads(self) -> Iterator[Head]:
        """The newest record of each run, in the order of the store's names; a damaged one with its error.

        Raises the store's errors where they concern no single run; also when many runs in a row cannot be
        reached, for each takes as long as all attempts at it.
        """
        in_a_row = 0
        with closing(in_order(self._fetch, self._newest_objects(), workers=self.workers)) as fetched:
            for head in map(self._head, _in_groups(fetched)):
                in_a_row = in_a_row + 1 if isinstance(head.error, StoreUnreachableError) else 0
                if head.error is not None and in_a_row == OUTAGE:
                    raise head.error
                yield head

    def head(self, run: str) -> Entry | None:
        """The newest record of the run, or None when there is none."""
        objects = self._run_objects(run)
        return self.read(run, *objects[-1]) if objects else None

    def newest_of(self, run: str) -> Head | None:
        """The same as one of `heads`: a damaged record comes with its error."""
        objects = self._run_objects(run)
        return self._head(self._fetch((run, *objects[-1]))) if objects else None

    def chain(self, run: str, upto: int | None = None) -> Chain:
        """Every record of the run (or those up to a number), verified as one unbroken chain.

        What comes after `upto` is not looked at: so one gets past a damaged or distrusted end. Raises
        `NoSuchRunError`, `MissingRecordError` (a gap), `ChainError` (a link does not fit, or another writer
        without a claim), `ContextMismatchError`, and what `records.decode` raises.
        """
        beginning = self.beginning(run, upto)
        if beginning.error is not None:
            raise beginning.error
        return Chain(run, beginning.links, beginning.newest)

    def beginning(self, run: str, upto: int | None = None) -> Beginning:
        """The same as far as it is unbroken, and the error that ends it; raises `NoSuchRunError` alone."""
        objects = self._run_objects(run)
        if not objects:
            raise NoSuchRunError(f"the store has no run {run!r}", remedy=self._near(run))
        newest = objects[-1][0]
        if upto is not None:
            if not 1 <= upto <= newest:
                raise NoSuchRunError(
                    f"run {run} has no checkpoint {upto}", remedy=f"it has numbers 1 to {newest}"
                )
            objects = [(seq, info) for seq, info in objects if seq <= upto]
        links: list[Entry] = []
        try:
            self._link(run, objects, links)
            _check_gaps(run, [seq for seq, _ in objects], newest if upto is None else upto)
        except ArchiverError as error:
            return Beginning(run, tuple(links), newest, error)
        return Beginning(run, tuple(links), newest)

    def _link(self, run: str, objects: list[tuple[int, ObjectInfo]], links: list[Entry]) -> None:
        """Append the records up to the first gap, each checked against the one before."""
        named = [(run, seq, info) for place, (seq, info) in enumerate(objects, 1) if seq == place]
        with closing(in_order(self._fetch, named, workers=min(self.workers, len(objects)))) as fetched:
            for link in map(self._take, _in_groups(fetched)):
                _check_link(link, links[-1] if links else None)
                links.append(link)

    def _near(self, run: str) -> str:
        runs = list(self.runs())
        near = [name for name in runs if run and name.startswith(run)] or get_close_matches(run, runs)
        if near:
            return f"did you mean {' or '.join(map(repr, near[:3]))}?"
        return "`archiver list` shows the runs that are there"

    def read(self, run: str, seq: int, info: ObjectInfo | None = None) -> Entry:
        """One record: opened, verified, its writer trusted for the run, its store the configured one."""
        info = info or self._setup.store.head(layout.record_name(run, seq))
        return self._open(run, seq, info, self._sealed(run, seq))

    def _sealed(self, run: str, seq: int) -> bytes:
        try:
            return self._setup.store.read(layout.record_name(run, seq), limit=records.MAX_RECORD)
        except ObjectNotFoundError as error:
            raise MissingRecordError(f"record {seq} of run {run} vanished while it was read") from error

    def _open(self, run: str, seq: int, info: ObjectInfo, sealed: bytes) -> Entry:
        link = records.decode(sealed, self._setup.identities_for(run, "record"), run=run, seq=seq)
        expected = self._setup.store_id
        if expected is not None and link.record.store != expected:
            raise ContextMismatchError(
                f"record {seq} of run {run} belongs to store {link.record.store}, not to {expected}"
            )
        if self._setup.writers.distrusts(link.record.writer):
            demand_unchanged(info, self._setup.store)
        return Entry(link.record, link.sha256, link.seal, info, self.notes.judge(link, info))

    def _fetch(self, found: _Found) -> _Fetched:
        """What the threads do: waiting for the store, and for the service of a key that lies in one."""
        run, seq, info = found
        try:
            sealed = self._sealed(run, seq)
            return (*found, self._open(run, seq, info, sealed) if self._distant_keys else sealed)
        except ArchiverError as error:
            # Its frames hold what was read: of many damaged runs that would be much.
            return (*found, error.with_traceback(None))

    def _take(self, fetched: _Fetched) -> Entry:
        run, seq, info, content = fetched
        if isinstance(content, ArchiverError):
            raise content
        return content if isinstance(content, Entry) else self._open(run, seq, info, content)

    def _head(self, fetched: _Fetched) -> Head:
        run, seq, *_ = fetched
        try:
            return Head(run, seq, record=self._take(fetched).record)
        except ArchiverError as error:
            return Head(run, seq, error=error.with_traceback(None))

    def _newest_objects(self) -> Iterator[_Found]:
        """The last object of each run: names are sorted, so those of one run follow each other."""
        last = None
        for found in self._objects(layout.RECORDS):
            if last is not None and last[0] != found[0]:
                yield last
            last = found
        if last is not None:
            yield last

    def _run_objects(self, run: str) -> list[tuple[int, ObjectInfo]]:
        return [(seq, info) for _, seq, info in self._objects(layout.records_prefix(run))]

    def _objects(self, prefix: str) -> Iterator[_Found]:
        """Records under a prefix; an object of another name is nobody's record, `verify` reports it."""
        for info in self._setup.store.list(prefix):
            try:
                name = layout.parse(info.name)
            except InvalidNameError:
                continue
            if name.kind == "record" and name.run is not None and name.seq is not None:
                yield name.run, name.seq, info


def _in_groups(fetched: Iterator[_Fetched]) -> Iterator[_Fetched]:
    """Some at a time, so that they are opened in a row: between requests that takes twice as long."""
    while group := list(islice(fetched, GROUP)):
        yield from group


def demand_unchanged(info: ObjectInfo, store: ObjectStore) -> None:
    """`RefusedError` if the object is no longer the one that was listed, whose time it is judged by.

    Who holds a stolen key could else put a forgery under an old name between the list and the reading, and
    have it judged by the time of what was there before.
    """
    found = store.head(info.name)
    if (found.size, found.modified, found.etag) != (info.size, info.modified, info.etag):
        raise RefusedError(
            f"{info.name} was changed while it was looked at",
            remedy="run it again; if nobody rewrites the run with `archiver rekey` now, look who could write "
            "to the store",
        )


def _check_link(link: Link, before: Link | None) -> None:
    record = link.record
    where = f"run {record.run}: record {record.seq}"
    if before is None:
        if record.previous is not None:
            raise ChainError(f"{where} is the first but names a record before it")
        return
    if record.previous != before.sha256:
        raise ChainError(f"{where} does not follow the record {before.record.seq} that is in the store")
    if record.task != before.record.task:
        raise ChainError(f"{where} belongs to another task than the record before it")
    if record.writer != before.record.writer and record.kind != "claim":
        raise ChainError(f"{where} was written by another key than the record before it, without a claim")


def _check_gaps(run: str, present: list[int], last: int) -> None:
    """Refuse a chain in which numbers up to `last` are missing; a far number costs nothing to refuse."""
    missing = []
    before = 0
    for seq in (*present, last + 1):
        if seq > before + 1:
            missing.append(f"{before + 1}" if seq == before + 2 else f"{before + 1} to {seq - 1}")
        before = seq
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise MissingRecordError(
            f"run {run}: record {shown} is missing before the newest, {last}",
            remedy="somebody or something removed records, or added one: look in a copy of the store; "
            "--at with a number before the gap restores what is whole",
        )
