"""Bundles that are not in the store any more: expired, as their class says, or damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from archiver import clock, layout, noting, retention
from archiver.age.header import MAX_HEADER
from archiver.catalog import Catalog, Entry
from archiver.errors import (
    ArchiverError,
    BundleExpiredError,
    BundleMissingError,
    BundleRemovedError,
    NoSuchRunError,
)
from archiver.model import utc_text
from archiver.model.record import BundleRef, Record
from archiver.notes import Notes
from archiver.retention import Committed, Ending, Standing
from archiver.shellwords import run_word
from archiver.store import ObjectVersion, Remote, Versioned

if TYPE_CHECKING:
    from archiver.setup import Setup


def fits(bundle: BundleRef, size: int | None) -> bool:
    """Whether an object of that many bytes can be the bundle."""
    return size is not None and bundle.payload_length < size <= bundle.payload_length + MAX_HEADER


def newest_whole(records: Sequence[Record], setup: Setup, *, without: int | None = None) -> Record | None:
    """The last of the records of one run whose bundle is there and has a size that fits: one list.

    So have all that it is based on, which must be among the records. None that needs number `without`.
    """
    sizes: dict[str, int] = {}
    if records:
        sizes = {info.name: info.size for info in setup.store.list(layout.bundles_prefix(records[0].run))}
    there = {
        one.seq: one.bundle
        for one in records
        if one.bundle and one.seq != without and fits(one.bundle, sizes.get(one.bundle.name))
    }
    whole = (one for one in reversed(records) if one.seq in there and there.keys() >= {*there[one.seq].bases})
    return next(whole, None)


class Gone:
    """Says of the bundles of one run, of which `links` are the records, why they may be gone.

    Nothing is called expired that could have been removed before its time: where later records cannot be
    read, the class at creation counts, and where the record itself cannot, it is damage.
    """

    def __init__(
        self, links: Sequence[Entry], setup: Setup, notes: Notes | None = None, now: datetime | None = None
    ) -> None:
        self._links = links
        self._setup = setup
        self._notes = notes or Notes(setup)
        self._now = now or datetime.now(UTC)

    @classmethod
    def of_run(cls, run: str, setup: Setup) -> Gone:
        """The same for a run whose records are read now, as far as they form a chain."""
        catalog = Catalog(setup)
        try:
            return cls(catalog.beginning(run, near=False).links, setup, catalog.notes)
        except ArchiverError:
            return cls((), setup, catalog.notes)

    def error(self, record: Record) -> NoSuchRunError | BundleMissingError:
        """What is to be raised for the bundle of that record: `RunErasedError`, `BundleRemovedError`,
        `BundleExpiredError` or `BundleMissingError`.
        """
        return self._taken_away(record) or self._lost(record)

    def _taken_away(self, record: Record) -> NoSuchRunError | None:
        """What an administrator signed explains it, if it is a verified record's."""
        tombstone = self._notes.tombstone(record.run)
        if tombstone is not None:
            return noting.erased(record.run, tombstone)
        try:
            note = self._notes.newest(record.run, "remove", record.seq)
        except ArchiverError:
            return None
        if note is None or self._known.get(record.seq) != record.bundle:
            return None
        error: BundleRemovedError = noting.removed(record.run, record.seq, note)
        hints = "; ".join(self._hints(record.bundle.name if record.bundle else ""))
        error.remedy = f"{error.remedy}; {hints}" if hints else error.remedy
        return error

    def _lost(self, record: Record) -> BundleExpiredError | BundleMissingError:
        where, end = f"the bundle of checkpoint {record.seq} of run {record.run}", self._ending(record)
        name = record.bundle.name if record.bundle else ""
        hints = "; ".join(self._hints(name))
        if end is not None and end.at <= self._now and end.at <= self._sure:
            days = f"{retention.DAYS[end.retention]} days"
            by = (
                ""
                if isinstance(self._setup.store, Remote)
                else f", by this machine's clock: {utc_text(self._now)}"
            )
            return BundleExpiredError(
                f"{where} is EXPIRED since {utc_text(end.at)} (class {end.retention}, {days}{by}): {name}",
                remedy=hints or "no checkpoint of the run has its bundle any more: only its records are left",
            )
        until = f"; its class keeps it until {utc_text(end.at)}" if end else ""
        return BundleMissingError(f"{where} is gone: {name}{until}", remedy=hints or None)

    def _ending(self, record: Record) -> Ending | None:
        """None where the record is none of the verified ones."""
        known = self._known.get(record.seq) == record.bundle
        return self._endings.get(record.seq) if known else None

    @cached_property
    def _sure(self) -> datetime:
        return clock.latest_sure(self._now, self._setup.store)

    @cached_property
    def _known(self) -> dict[int, BundleRef | None]:
        return {link.record.seq: link.record.bundle for link in self._links}

    @cached_property
    def _endings(self) -> dict[int, Ending | None]:
        return retention.endings([self._committed(link) for link in self._links], self._standing)

    @property
    def _standing(self) -> Standing:
        """Where notes cannot be read, the run may be on hold, and nothing of it counts as expired."""
        if not self._links:
            return retention.NOTHING
        run = self._links[0].record.run
        try:
            known = self._notes.unread(run) is None
            return self._notes.standing(run) if known else Standing(held=retention.BEGINNING)
        except ArchiverError:
            return Standing(held=retention.BEGINNING)

    def _committed(self, link: Entry) -> Committed:
        """A rewritten header makes an old record look new; the notes of administrators know better."""
        written, record = link.written, link.record
        if record.missing_recipients or not link.seal.is_for(record.recipients):
            try:
                written = self._notes.written(record.run, link.info.name, link.seal.payload_sha256, written)
            except ArchiverError:  # then it counts as new, and nothing expires the earlier for it
                return Committed(record, written)
        return Committed(record, written)

    def _hints(self, name: str) -> Iterator[str]:
        hidden = next((one for one in self._versions if one.name == name and not one.deleted), None)
        if hidden is not None:
            marker = next((one.version for one in self._versions if one.name == name and one.latest), "")
            yield (
                f"version {hidden.version} of {self._setup.store.url}/{name} is still there, hidden by the "
                f"delete marker {marker}: who removes that marker (`aws s3api delete-object`, --version-id) "
                "has it back"
            )
        if self._whole is not None:
            seq, run = self._whole.seq, run_word(self._whole.run)
            words = " ".join((f"--at {seq}", *self._setup.session.words()))
            yield f"checkpoint {seq} is the newest that is still whole: `archiver restore {words} {run}`"

    @cached_property
    def _versions(self) -> tuple[ObjectVersion, ...]:
        store = self._setup.store
        if not isinstance(store, Versioned) or not self._links:
            return ()
        try:
            return tuple(store.versions(layout.bundles_prefix(self._links[0].record.run)))
        except ArchiverError:  # it is only looked whether there is more to say
            return ()

    @cached_property
    def _whole(self) -> Record | None:
        try:
            return newest_whole([link.record for link in self._links], self._setup)
        except ArchiverError:
            return None
