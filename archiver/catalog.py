"""What the records of a store say: the newest of each run, and the verified chain of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from archiver import layout, records
from archiver.errors import (
    ArchiverError,
    ChainError,
    ContextMismatchError,
    InvalidNameError,
    MissingRecordError,
    NoSuchRunError,
    ObjectNotFoundError,
)
from archiver.model.record import Record
from archiver.records import Link

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.store.base import ObjectInfo


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a run, or the error that keeps it from being read."""

    run: str
    seq: int
    record: Record | None = None
    error: ArchiverError | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """Records of a run from the first on, each checked against the one before."""

    run: str
    links: tuple[Link, ...]
    writer: str
    """Name of the writer of the last of them, from the list of trusted writers."""
    newest: int
    """The highest number that has a record, whether or not it was looked at."""

    @property
    def head(self) -> Link:
        return self.links[-1]


class Catalog:
    """Reads records; every one is opened, its signature verified and its writer judged before it is used."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def runs(self) -> list[str]:
        """Every run that has a record, sorted."""
        return sorted({run for run, _, _ in self._objects(layout.RECORDS)})

    def numbers(self, run: str) -> list[int]:
        """The sequence numbers that have a record, ascending; empty when there is no such run."""
        return [seq for seq, _ in self._run_objects(run)]

    def heads(self) -> Iterator[Head]:
        """The newest record of each run, by name of the run; a damaged one comes with its error."""
        newest: dict[str, tuple[int, ObjectInfo]] = {}
        for run, seq, info in self._objects(layout.RECORDS):
            if run not in newest or newest[run][0] < seq:
                newest[run] = (seq, info)
        for run, (seq, info) in newest.items():
            try:
                yield Head(run, seq, record=self.read(run, seq, info).record)
            except ArchiverError as error:
                yield Head(run, seq, error=error)

    def head(self, run: str) -> Link | None:
        """The newest record of the run, or None when there is none."""
        objects = self._run_objects(run)
        return self.read(run, *objects[-1]) if objects else None

    def chain(self, run: str, upto: int | None = None) -> Chain:
        """Every record of the run (or those up to a number), verified as one unbroken chain.

        What comes after `upto` is not looked at: so one gets past a damaged or distrusted end. Raises
        `NoSuchRunError`, `MissingRecordError` (a gap), `ChainError` (a link does not fit, or another writer
        without a claim), `ContextMismatchError`, and what `records.decode` raises.
        """
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
        _check_gaps(run, [seq for seq, _ in objects], newest if upto is None else upto)
        links: list[Link] = []
        for seq, info in objects:
            link = self.read(run, seq, info)
            _check_link(link, links[-1] if links else None)
            links.append(link)
        writer = self._setup.writers.judge(links[-1].record.writer, run, objects[-1][1].modified)
        return Chain(run, tuple(links), writer, newest)

    def _near(self, run: str) -> str:
        runs = self.runs()
        near = [name for name in runs if run and name.startswith(run)] or get_close_matches(run, runs)
        if near:
            return f"did you mean {' or '.join(map(repr, near[:3]))}?"
        return "`archiver list` shows the runs that are there"

    def read(self, run: str, seq: int, info: ObjectInfo | None = None) -> Link:
        """One record: opened, verified, its writer trusted for the run, its store the configured one."""
        name = layout.record_name(run, seq)
        info = info or self._setup.store.head(name)
        try:
            sealed = self._setup.store.read(name, limit=records.MAX_RECORD)
        except ObjectNotFoundError as error:
            raise MissingRecordError(f"record {seq} of run {run} vanished while it was read") from error
        link = records.decode(sealed, self._setup.identities_for(run, "record"), run=run, seq=seq)
        self._setup.writers.judge(link.record.writer, run, info.modified)
        expected = self._setup.store_id
        if expected is not None and link.record.store != expected:
            raise ContextMismatchError(
                f"record {seq} of run {run} belongs to store {link.record.store}, not to {expected}"
            )
        return link

    def _run_objects(self, run: str) -> list[tuple[int, ObjectInfo]]:
        found = self._objects(layout.records_prefix(run))
        return sorted(((seq, info) for _, seq, info in found), key=lambda pair: pair[0])

    def _objects(self, prefix: str) -> Iterator[tuple[str, int, ObjectInfo]]:
        """Records under a prefix; an object of another name is nobody's record, `verify` reports it."""
        for info in self._setup.store.list(prefix):
            try:
                name = layout.parse(info.name)
            except InvalidNameError:
                continue
            if name.kind == "record" and name.run is not None and name.seq is not None:
                yield name.run, name.seq, info


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
