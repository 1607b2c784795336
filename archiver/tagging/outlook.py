"""Until when the newest checkpoint of each run is there, for lists: by its record, and by notes on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

from archiver import layout, noting, retention
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, InvalidNameError, StoreDeniedError
from archiver.model.record import Record, RetentionClass
from archiver.retention import Committed, Standing

if TYPE_CHECKING:
    from archiver.setup import Setup

BACK: Final = 8
"""Records before the newest that are read to find one with a bundle: a claim has none."""
EPOCH: Final = timedelta(days=1)
"""How much older than a bundle what it is based on can be."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """How long a run is kept, by what is known now."""

    retention: RetentionClass | None = None
    """The class that its newest bundle should have by now; None where that cannot be told."""
    expires_on: datetime | None = None
    """Until when that bundle is there at least; None without an end, or where nothing is known."""
    held: bool = False
    removed: bool = False
    """Whether an administrator has taken its bundles away."""
    erased: bool = False
    """Whether he has erased all of it, and what is there was put there since."""


UNKNOWN: Final = Outlook()


class Outlooks:
    """Asks the store for one list of notes, and reads those of the runs that have any."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._catalog = Catalog(setup)
        self.warnings: list[str] = []

    def of(self, newest: Record) -> Outlook:
        """What the newest record of a run lets one expect."""
        noted = newest.run in self._noted
        tombstone = self._catalog.notes.tombstone(newest.run) if noted else None
        if tombstone is not None:
            self.warnings.append(noting.with_leavings(noting.erased(newest.run, tombstone), newest.run))
            return Outlook(removed=True, erased=True)
        record = self._with_bundle(newest)
        if record is None:
            return UNKNOWN
        try:
            standing = self._catalog.notes.standing(newest.run) if noted else retention.NOTHING
            removed = noted and self._catalog.notes.newest(newest.run, "remove", record.seq) is not None
        except ArchiverError as error:
            self.warnings.append(f"how long run {newest.run} is kept is not known: {error}")
            return UNKNOWN
        if removed:
            return Outlook(removed=True, held=standing.held is not None)
        return _outlook(record, newest, standing, self._setup)

    @cached_property
    def _noted(self) -> frozenset[str]:
        """The runs that have notes."""
        found = set()
        try:
            for info in self._setup.store.list(layout.NOTES):
                try:
                    run = layout.parse(info.name).run
                except InvalidNameError:
                    continue
                if run is not None:
                    found.add(run)
        except StoreDeniedError as error:
            self.warnings.append(f"which runs are on hold is not known: {error}")
        return frozenset(found)

    def _with_bundle(self, newest: Record) -> Record | None:
        record = newest
        try:
            for _ in range(BACK):
                if record.bundle is not None or record.seq == 1:
                    break
                record = self._catalog.read(record.run, record.seq - 1).record
        except ArchiverError:  # `verify` says what is wrong with it
            return None
        return record if record.bundle is not None else None


def _outlook(record: Record, newest: Record, standing: Standing, setup: Setup) -> Outlook:
    """By the writer's clock alone, which the store's may only lengthen; bases have their age too."""
    run = [Committed(record, record.recorded_at)]
    if newest.seq != record.seq:
        run.append(Committed(newest, newest.recorded_at))
    keep, days = setup.settings.run.ring, setup.settings.retention.days
    having = retention.classes(run, keep=keep, standing=standing)
    end = retention.promised(run[:1], having, days)[record.seq]
    if end is not None and record.bundle is not None and record.bundle.bases:
        end -= EPOCH
    return Outlook(having[record.seq], end, held=standing.held is not None)
