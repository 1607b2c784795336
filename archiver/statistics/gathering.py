"""Goes through the records of all runs, several at a time, and through what was written down about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from archiver.audit import journal, seen
from archiver.catalog import OUTAGE, Catalog, Head
from archiver.errors import ArchiverError, InputNotFoundError, StoreDeniedError, StoreUnreachableError
from archiver.parallel import in_order
from archiver.spool import Depth, open_spool
from archiver.statistics.sums import ACTIONS, Audited, Sums, sums_of
from archiver.witnessed import Witnessed

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(slots=True)
class Statistics:
    """What a store came to, the runs that could not be counted whole, and what of it is not known."""

    sums: Sums = field(default_factory=Sums)
    audited: Audited = field(default_factory=Audited)
    broken: list[Head] = field(default_factory=list)
    waiting: Depth | None = None
    """What this machine's spool has for the store, of all runs; None where that is not known."""
    warnings: tuple[str, ...] = ()


def gather(
    setup: Setup,
    runs: Collection[str] = (),
    *,
    since: datetime | None = None,
    told: Callable[[], None] = lambda: None,
    now: datetime | None = None,
) -> Statistics:
    """Add up all runs of the store, or these; with `since`, those that were saved since then.

    `told` hears of each run and each audit entry. A run that is damaged, missing or behind what was seen of
    it is counted as that and named. Raises what keeps the store from being read at all.
    """
    found = Statistics()
    look = _Look(setup, runs, since, now or datetime.now(UTC))
    in_a_row = 0
    with closing(look.runs()) as each:
        for sums, broken in each:
            told()
            found.sums.add(sums)
            in_a_row = in_a_row + 1 if broken and isinstance(broken.error, StoreUnreachableError) else 0
            if broken is not None:
                found.broken.append(broken)
                if broken.error is not None and in_a_row == OUTAGE:
                    raise broken.error
    said = tuple(_audit(setup, runs, since, found.audited, told))
    found.waiting, not_known = _spool(setup)
    found.warnings = (*look.warnings, *said, *not_known)
    return found


_OfRun = tuple[Sums, Head | None]


class _Look:
    """One look at the runs of a store."""

    def __init__(self, setup: Setup, runs: Collection[str], since: datetime | None, now: datetime) -> None:
        self._setup, self._named, self._since = setup, tuple(dict.fromkeys(runs)), since
        self._catalog = Catalog(setup)
        self._one = self._catalog if len(self._named) == 1 else Catalog(setup, workers=1)
        self._witnessed = Witnessed(setup, now)
        self._known: set[str] = set()

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._witnessed.warnings

    def runs(self) -> Generator[_OfRun]:
        """What each run came to, and its newest record with the error of one that is not whole."""
        workers = 1 if len(self._named) == 1 else self._catalog.workers
        with closing(in_order(self._run, self._wanted(), workers=workers)) as found:
            yield from found
        if not self._named:
            for head in self._witnessed.vanished(self._known):
                yield self._run(head.run) if head.error is None else (_none(), head)

    def _wanted(self) -> Iterator[str]:
        if self._named:
            yield from self._named
            return
        if self._since is None:
            for run in self._catalog.runs():
                self._known.add(run)
                yield run
            return
        for head in self._catalog.heads():
            self._known.add(head.run)
            if head.record is None or head.record.recorded_at >= self._since:
                yield head.run

    def _run(self, run: str) -> _OfRun:
        try:
            found = self._one.beginning(run)
        except ArchiverError as error:
            if isinstance(error, StoreUnreachableError | StoreDeniedError):
                raise  # a list that is refused is refused for every run
            return _none(), Head(run, 0, error=error.with_traceback(None))
        head = Head(run, found.newest, error=found.error)
        if found.error is None:
            last = found.links[-1]
            head = Head(run, found.newest, record=last.record, sha256=last.sha256)
            (head,) = self._witnessed.heads([head])
        else:
            found.error.with_traceback(None)
        records = (link.record for link in found.links)
        sums = sums_of(records, whole=head.error is None, since=self._since)
        return sums, head if head.error is not None else None


def _none() -> Sums:
    return sums_of((), whole=False, since=None)


def _audit(
    setup: Setup,
    runs: Collection[str],
    since: datetime | None,
    audited: Audited,
    told: Callable[[], None],
) -> Iterator[str]:
    """Count what was written down; gives what keeps it from being known."""
    file = journal.place(setup.settings)
    for run in dict.fromkeys(runs) or (None,):
        try:
            for one in seen.everything(setup, file, actions=ACTIONS, since=since, run=run):
                told()
                if isinstance(one, seen.Said):
                    audited.unread += 1
                elif one.object is not None and one.signer is None:
                    audited.unknown += 1
                else:
                    audited.add(one.act)
        except (InputNotFoundError, StoreDeniedError) as error:
            yield f"what was written down about runs is not all known: {error}"
            return


def _spool(setup: Setup) -> tuple[Depth | None, tuple[str, ...]]:
    if setup.store_id is None:
        return None, ()
    try:
        return open_spool(setup).depth(), ()
    except ArchiverError as error:
        return None, (f"what waits on this machine for the store is not known: {error}",)
