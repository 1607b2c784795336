"""Until when each object of a store is promised to be there: by verified records, or by tags alone.

A bundle is promised what its run promises it by now (`archiver.retention`), whatever its tag says: a tag that
is wrong is just what a rule would follow. All of a run on hold is promised without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Final

from archiver import layout, retention
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, InvalidNameError, NoSuchRunError
from archiver.lifecycle.bucket import Seen
from archiver.model.record import RetentionClass
from archiver.retention import NONCURRENT_DAYS, NOTHING, Committed, Standing

if TYPE_CHECKING:
    from archiver.layout import ParsedName
    from archiver.setup import Setup

Days = Mapping[RetentionClass, int | None]

_OF_KIND: Final[Mapping[str, RetentionClass]] = {
    "store": "hold",
    "note": "hold",
    "record": "record",
    "effect": "record",
    "audit": "record",
}
"""The class of what is no bundle; a hint of the index is promised nothing, for nobody believes one."""


@dataclass(frozen=True, slots=True)
class Promise:
    """How long an object is promised to be there."""

    until: datetime | None
    """None: without end."""
    why: str
    """The class that promises it, or the hold."""


@dataclass(slots=True)
class Promises:
    """Asks the records of a run once for each of its folders; several folders at the same time."""

    setup: Setup | None
    """None where no identity is here: then tags count."""
    days: Days
    remarks: list[str] = field(default_factory=list)
    _noted: set[str] | None = None
    _recorded: set[str] | None = None
    _standings: dict[str, Standing] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _catalog: Catalog | None = field(init=False)

    def __post_init__(self) -> None:
        # Most runs have few records, and many runs are asked at once.
        self._catalog = None if self.setup is None else Catalog(self.setup, workers=2)

    def of(self, folder: Iterable[Seen]) -> list[tuple[Seen, Promise | None]]:
        """What each of the objects of one folder is promised; None: nothing."""
        found = list(folder)
        parsed = [_parsed(one.name) for one in found]
        bundles = self._of_bundles(found, parsed)
        return [(one, self._promise(one, name, bundles)) for one, name in zip(found, parsed, strict=True)]

    def _promise(
        self, one: Seen, name: ParsedName | None, bundles: Mapping[str, Promise | None]
    ) -> Promise | None:
        """Of an old version: no longer than old versions of its class are kept, unless a hold has no end."""
        if name is None or name.kind == "index" or one.version.marker:
            return None
        if name.run is not None and self._standing(name.run).held is not None:
            return Promise(None, "the run is on hold")
        if one.retention == "hold":
            return Promise(None, "on hold by its tag")
        own = bundles[one.name] if one.name in bundles else self._by_class(one, name)
        since = one.version.noncurrent_since
        if own is None or since is None:
            return own
        days = NONCURRENT_DAYS.get(one.retention or "record") or 0
        end = since + timedelta(days=days)
        return Promise(end if own.until is None else min(own.until, end), f"old version, {own.why}")

    def _by_class(self, one: Seen, name: ParsedName) -> Promise:
        word = _OF_KIND.get(name.kind, one.retention)
        if word is None:
            return Promise(None, "it has no class, so nothing says that it may go")
        days = self.days[word]
        until = None if days is None else one.version.created + timedelta(days=days)
        return Promise(until, f"class {word}")

    def _of_bundles(self, found: list[Seen], parsed: list[ParsedName | None]) -> dict[str, Promise | None]:
        """What the records of the runs say of bundles among the objects."""
        runs = {name.run: None for name in parsed if name is not None and name.kind == "bundle" and name.run}
        bodies = (one for one in reversed(found) if not one.version.marker)
        stored = {one.name: one.version.created for one in bodies}  # of the newest version, which rules see
        said: dict[str, Promise | None] = {}
        for run in runs:
            said |= self._of_run(run, stored)
        return said

    def _of_run(self, run: str, stored: Mapping[str, datetime]) -> dict[str, Promise | None]:
        if self.setup is None:
            return {}
        committed = self._records(run, stored)
        standing = self._standing(run)
        if standing.removed is not None or standing.erased is not None:
            return dict.fromkeys((one.record.bundle.name for one in committed if one.record.bundle), None)
        having = retention.classes(committed, keep=self.setup.settings.run.ring, standing=standing)
        until = retention.promised(committed, having, self.days)
        return {
            one.record.bundle.name: Promise(until[one.record.seq], f"class {having[one.record.seq]}")
            for one in committed
            if one.record.bundle is not None
        }

    def _records(self, run: str, stored: Mapping[str, datetime]) -> list[Committed]:
        try:
            if run not in self._with_records() and not self._read().numbers(run):
                return []  # bundles that no record names: their tag is all that there is
            begun = self._read().beginning(run)
        except NoSuchRunError:
            return []
        except ArchiverError as error:
            self.remarks.append(f"run {run} cannot be read, so its tags count: {error}")
            return []
        if begun.error is not None:
            self.remarks.append(
                f"run {run} is verified up to {len(begun.links)} of {begun.newest}, then its tags count: "
                f"{begun.error}"
            )
        return [
            Committed(
                link.record,
                link.written,
                stored.get(link.record.bundle.name) if link.record.bundle is not None else None,
            )
            for link in begun.links
        ]

    def _standing(self, run: str) -> Standing:
        """By the notes of the run; those of all runs are listed once, for most have none."""
        if self.setup is None or run not in self._with_notes(self.setup):
            return NOTHING
        if run not in self._standings:
            try:
                self._standings[run] = self._read().notes.standing(run)
            except ArchiverError as error:
                self.remarks.append(f"the notes of run {run} cannot be read, so a hold is not known: {error}")
                self._standings[run] = NOTHING
        return self._standings[run]

    def _with_notes(self, setup: Setup) -> set[str]:
        with self._lock:
            if self._noted is None:
                names = (_parsed(info.name) for info in setup.store.list(layout.NOTES))
                self._noted = {name.run for name in names if name is not None and name.run is not None}
            return self._noted

    def _with_records(self) -> set[str]:
        """Listed once: to be told that there is no such run takes a list of all of them each time."""
        with self._lock:
            if self._recorded is None:
                self._recorded = set(self._read().runs())
            return self._recorded

    def _read(self) -> Catalog:
        assert self._catalog is not None  # noqa: S101 - asked for with a set-up alone
        return self._catalog


def _parsed(name: str) -> ParsedName | None:
    """None for what is none of the store's objects: nothing is promised to it."""
    try:
        return layout.parse(name)
    except InvalidNameError:
        return None
