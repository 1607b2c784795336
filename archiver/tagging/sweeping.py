"""Give all objects of a store the classes they should have: lists first, records only where lists changed."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import __version__, clock, layout
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, InvalidNameError, StoreUnreachableError
from archiver.parallel import in_order
from archiver.progress import Progress, Silent
from archiver.store import ObjectInfo, ObjectStore
from archiver.tagging.memory import Memory, Remembered
from archiver.tagging.settling import Settled, settle

if TYPE_CHECKING:
    from archiver.setup import Setup

LISTED: Final = (layout.RECORDS, layout.BUNDLES, layout.NOTES)
OUTAGE: Final = 20
"""Runs in a row that cannot be reached before the store itself counts as unreachable."""
PORTION: Final = 100
"""Runs after which what was seen is written down."""


@dataclass(frozen=True, slots=True)
class _Due:
    run: str
    seen: str


def sweep(
    setup: Setup,
    *,
    memory: Path | None,
    dry_run: bool = False,
    progress: Progress | None = None,
    now: datetime,
) -> Iterator[Settled]:
    """Look at every run to which something came, or for which a time has come; several at the same time.

    `memory` is the folder that remembers what was seen; it may be lost. Answers come in the order of the
    store's names, one for each run that was looked at; what keeps a run from being looked at is part of its
    answer. Raises the store's errors where they concern no single run.
    """
    remembered = Memory(memory, setup.require_store_id(), read_only=dry_run)
    try:
        yield from _swept(setup, remembered, dry_run, progress or Silent(), now)
    finally:
        remembered.close()


def _swept(
    setup: Setup, memory: Memory, dry_run: bool, progress: Progress, now: datetime
) -> Iterator[Settled]:
    catalog, in_a_row, done = Catalog(setup), 0, list[Remembered]()
    progress.stage("retention", None)
    sure = clock.latest_sure(now, setup.store)
    due = _due(setup, memory, sure, progress)
    work = partial(_settled, setup, dry_run, now)
    try:
        with closing(in_order(work, due, workers=catalog.workers)) as answers:
            for one, settled in answers:
                away = isinstance(settled.error, StoreUnreachableError)
                in_a_row = in_a_row + 1 if away else 0
                if settled.error is not None and in_a_row == OUTAGE:
                    raise settled.error
                if not (dry_run or settled.open or settled.error):
                    done.append(Remembered(one.run, one.seen, settled.due, settled.held))
                if len(done) == PORTION:
                    memory.put(done)
                    done.clear()
                yield settled
    finally:
        memory.put(done)


def _settled(setup: Setup, dry_run: bool, now: datetime, due: _Due) -> tuple[_Due, Settled]:
    try:
        return due, settle(setup, due.run, now=now, dry_run=dry_run, look_for_merge=True)
    except ArchiverError as error:
        return due, Settled(due.run, error=error.with_traceback(None), open=True)


def _due(setup: Setup, memory: Memory, now: datetime, progress: Progress) -> Iterator[_Due]:
    """The runs to be looked at: those whose lists or settings changed, and those whose time has come."""
    settings = f"{__version__} {setup.settings.run.ring}"
    for run, objects in _runs(setup.store):
        progress.advance(1)
        before = memory.of(run)
        others = _others(setup.store, run) if before is not None and before.held else ()
        seen = _digest(settings, (*objects, *others))
        if before is None or before.seen != seen or (before.due is not None and before.due <= now):
            yield _Due(run, seen)


def _runs(store: ObjectStore) -> Iterator[tuple[str, tuple[ObjectInfo, ...]]]:
    """Every run with its objects, from all lists at once: names are sorted, so each run comes once."""
    lists = [_named(store.list(prefix)) for prefix in LISTED]
    merged = heapq.merge(*lists, key=lambda one: one[0])
    for place, objects in groupby(merged, key=lambda one: one[0]):
        try:
            run = layout.decode_run(place[:-1])
        except InvalidNameError:
            continue
        yield run, tuple(info for _, info in objects)


def _named(objects: Iterable[ObjectInfo]) -> Iterator[tuple[str, ObjectInfo]]:
    """Objects with the place of their run, which ends with a slash, as it does where names are sorted."""
    for info in objects:
        _, _, rest = info.name.partition("/")
        place, slash, _ = rest.partition("/")
        if slash:
            yield f"{place}/", info


def _others(store: ObjectStore, run: str) -> Iterator[ObjectInfo]:
    """What of a run on hold is in no list of all runs: it has to be held too."""
    prefixes: tuple[Callable[[str], str], ...] = (layout.effects_prefix, layout.audit_prefix)
    for prefix in prefixes:
        yield from store.list(prefix(run))


def _digest(settings: str, objects: Iterable[ObjectInfo]) -> str:
    digest = hashlib.sha256(settings.encode())
    for one in objects:
        digest.update(f"\n{one.name} {one.size} {one.modified.timestamp()}".encode())
    return digest.hexdigest()[:32]
