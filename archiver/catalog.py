"""What the records of a store say: the newest of each run, and the verified chain of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

from archiver import layout, records
from archiver.age.context import BindableIdentity
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    MissingRecordError,
    NoSuchRunError,
    ObjectNotFoundError,
    RefusedError,
    StoreUnreachableError,
    UntrustedWriterError,
)
from archiver.history import Histories, Read, Stored, opening
from archiver.linking import check_gaps, check_link, of_the_future
from archiver.model.record import Record
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.records import Link
from archiver.shellwords import run_word
from archiver.store import ObjectInfo, ObjectStore, Remote

if TYPE_CHECKING:
    from archiver.setup import Setup

OUTAGE = 50
"""Runs that cannot be reached, one after the other, before the store itself counts as unreachable."""
GROUP = 32
"""Records that are fetched before the first of them is opened."""
MAX_WARNINGS = 20
"""Warnings of one chain that are said one by one."""
FOLDER_WORKERS = 4
"""Threads that read records of a folder: more than one also where it lies on a network."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a run, or the error that keeps it from being read."""

    run: str
    seq: int
    record: Record | None = None
    error: ArchiverError | None = None
    """Beside a record: why it is not the newest all the same (`witnessed`)."""
    sha256: str = ""
    """Digest of the record's body."""
    missing: tuple[str, ...] = ()
    """Fingerprints of keys that were away when it was saved, and that it is still not sealed to."""


@dataclass(frozen=True, slots=True)
class Entry(Link):
    """A verified record with its object in the store."""

    info: ObjectInfo
    """Of the version that was read."""
    writer: str
    """Name of its writer, from the list of trusted keys."""
    written: datetime
    """When the store got its first version, as far as the store knows."""
    remarks: tuple[str, ...] = ()
    """What is not as it should be, and kept nobody from reading it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Records of a run from the first on, each checked against the one before."""

    run: str
    links: tuple[Entry, ...]
    newest: int
    """The highest number that has a record, whether or not it was looked at."""
    remarks: tuple[str, ...] = ()
    """What is to be said of the list of records; each record has its own."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not as it should be in the store, and kept nobody from reading the records."""
        said = (*self.remarks, *(remark for link in self.links for remark in link.remarks))
        if len(said) <= MAX_WARNINGS:
            return said
        more = f"{len(said) - MAX_WARNINGS} more: `archiver verify {run_word(self.run)}` lists them"
        return (*said[:MAX_WARNINGS], more)

    @property
    def head(self) -> Entry:
        return self.links[-1]

    @property
    def records(self) -> tuple[Record, ...]:
        """What the links hold."""
        return tuple(link.record for link in self.links)

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
    remarks: tuple[str, ...] = ()
    """As of a chain."""


_Found = tuple[str, int, Stored]
"""A record that a list has: its run, its number, its object."""
_Fetched = tuple[str, int, Stored, "Read | Entry | ArchiverError"]
"""The same with the sealed record, with the opened one, or with what kept it from being read."""


@dataclass(frozen=True, slots=True)
class _Records:
    """The records of a run by number, and what is to be said of their list."""

    objects: tuple[tuple[int, Stored], ...]
    remarks: tuple[str, ...]


class Catalog:
    """Reads records; every one is opened, its signature verified and its writer judged before it is used.

    Up to `workers` are read at the same time, by default as many as the store welcomes. Of a single run, the
    first version of each record counts where the store keeps versions (`history`); lists of all runs go by
    what is there now, for their versions would be a list of everything that ever was.
    """

    def __init__(self, setup: Setup, *, workers: int | None = None) -> None:
        self._setup = setup
        self.notes = Notes(setup)
        self._histories = Histories(setup.store)
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
        return [seq for seq, _ in self._records_of(run).objects]

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
        objects = self._records_of(run).objects
        return self._read(run, *objects[-1]) if objects else None

    def newest_of(self, run: str) -> Head | None:
        """The same as one of `heads`: a damaged record comes with its error."""
        objects = self._records_of(run).objects
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
        return Chain(run, beginning.links, beginning.newest, beginning.remarks)

    def beginning(self, run: str, upto: int | None = None, *, near: bool = True) -> Beginning:
        """The same as far as it is unbroken, and the error that ends it; raises `NoSuchRunError` alone.

        That names runs of a similar name, for which all are listed; not without `near`.
        """
        found = self._records_of(run)
        objects = found.objects
        if not objects:
            remedy = self._near(run) if near else None
            raise NoSuchRunError(f"the store has no run {run!r}", remedy=remedy)
        newest = objects[-1][0]
        if upto is not None:
            if not 1 <= upto <= newest:
                raise NoSuchRunError(
                    f"run {run} has no checkpoint {upto}", remedy=f"it has numbers 1 to {newest}"
                )
            objects = tuple((seq, stored) for seq, stored in objects if seq <= upto)
        links: list[Entry] = []
        try:
            self._link(run, objects, links)
            check_gaps(run, [seq for seq, _ in objects], newest if upto is None else upto)
        except ArchiverError as error:
            return Beginning(run, tuple(links), newest, error, found.remarks)
        return Beginning(run, tuple(links), newest, None, found.remarks)

    def _link(self, run: str, objects: Sequence[tuple[int, Stored]], links: list[Entry]) -> None:
        """Append the records up to the first gap, each checked against the one before."""
        named = [(run, seq, stored) for place, (seq, stored) in enumerate(objects, 1) if seq == place]
        with closing(in_order(self._fetch, named, workers=min(self.workers, len(objects)))) as fetched:
            for link in map(self._take, _in_groups(fetched)):
                check_link(link, links[-1] if links else None)
                links.append(link)

    def _near(self, run: str) -> str:
        runs = list(self.runs())
        near = [name for name in runs if run and name.startswith(run)] or get_close_matches(run, runs)
        if near:
            return f"did you mean {' or '.join(map(repr, near[:3]))}?"
        return "`archiver list` shows the runs that are there"

    def read(self, run: str, seq: int) -> Entry:
        """One record: opened, verified, its writer trusted for the run, its store the configured one.

        `MissingRecordError` if it is not there.
        """
        found = self._histories.listed(layout.record_name(run, seq)).objects
        if not found:
            raise MissingRecordError(f"record {seq} of run {run} is not in the store")
        return self._read(run, seq, found[0])

    def _read(self, run: str, seq: int, stored: Stored) -> Entry:
        return self._open(run, seq, stored, self._sealed(run, seq, stored))

    def _sealed(self, run: str, seq: int, stored: Stored) -> Read:
        try:
            opens = opening(self._setup.identities_for(run, "record"))
            return self._histories.read(stored, records.MAX_RECORD, opens)
        except ObjectNotFoundError as error:
            raise MissingRecordError(f"record {seq} of run {run} vanished while it was read") from error

    def _open(self, run: str, seq: int, stored: Stored, read: Read) -> Entry:
        link = records.decode(read.sealed, self._setup.identities_for(run, "record"), run=run, seq=seq)
        expected = self._setup.store_id
        if expected is not None and link.record.store != expected:
            raise ContextMismatchError(
                f"record {seq} of run {run} belongs to store {link.record.store}, not to {expected}"
            )
        if self._setup.writers.distrusts(link.record.writer) and not read.pinned:
            demand_unchanged(read.info, self._setup.store)
        written = stored.written
        try:
            writer = self.notes.judge(link, replace(read.info, modified=written))
        except UntrustedWriterError as error:
            error.args = (f"record {seq}: {error}",)
            raise
        remarks = (*read.remarks, *of_the_future(link.record, read.info.name, written))
        return Entry(link.record, link.sha256, link.seal, read.info, writer, written, remarks)

    def _fetch(self, found: _Found) -> _Fetched:
        """What the threads do: waiting for the store, and for the service of a key that lies in one."""
        run, seq, stored = found
        try:
            read = self._sealed(run, seq, stored)
            return (*found, self._open(run, seq, stored, read) if self._distant_keys else read)
        except ArchiverError as error:
            # Its frames hold what was read: of many damaged runs that would be much.
            return (*found, error.with_traceback(None))

    def _take(self, fetched: _Fetched) -> Entry:
        run, seq, stored, content = fetched
        if isinstance(content, ArchiverError):
            raise content
        return content if isinstance(content, Entry) else self._open(run, seq, stored, content)

    def _head(self, fetched: _Fetched) -> Head:
        run, seq, *_ = fetched
        try:
            link = self._take(fetched)
            missing = link.seal.lacks(link.record.missing_recipients)
            return Head(run, seq, record=link.record, sha256=link.sha256, missing=missing)
        except ArchiverError as error:
            return Head(run, seq, error=error.with_traceback(None))

    def _newest_objects(self) -> Iterator[_Found]:
        """The last object of each run: names are sorted, so those of one run follow each other."""
        last = None
        for found in _named(map(Stored, self._setup.store.list(layout.RECORDS))):
            if last is not None and last[0] != found[0]:
                yield last
            last = found
        if last is not None:
            yield last

    def _records_of(self, run: str) -> _Records:
        """Hidden ones too: their numbers are taken."""
        listing = self._histories.listed(layout.records_prefix(run))
        objects = tuple((seq, stored) for _, seq, stored in _named(listing.objects))
        return _Records(objects, listing.warnings)


def _named(objects: Iterable[Stored]) -> Iterator[_Found]:
    """The records among objects; one of another name is nobody's record, `verify` reports it."""
    for stored in objects:
        try:
            name = layout.parse(stored.info.name)
        except InvalidNameError:
            continue
        if name.kind == "record" and name.run is not None and name.seq is not None:
            yield name.run, name.seq, stored


def _in_groups(fetched: Iterator[_Fetched]) -> Iterator[_Fetched]:
    """Some at a time, so that they are opened in a row: between requests that takes twice as long."""
    while group := list(islice(fetched, GROUP)):
        yield from group


def demand_unchanged(info: ObjectInfo, store: ObjectStore) -> None:
    """`RefusedError` if the object is no longer the one that was listed, whose time it is judged by.

    Who holds a stolen key could else put a forgery under an old name between the list and the reading, and
    have it judged by the time of what was there before.
    """
    try:
        found = store.head(info.name)
    except ObjectNotFoundError:
        found = None
    if found is None or (found.size, found.modified, found.etag) != (info.size, info.modified, info.etag):
        raise RefusedError(
            f"{info.name} was changed while it was looked at",
            remedy="run it again; if nobody rewrites the run with `archiver rekey` now, look who could write "
            "to the store",
        )
