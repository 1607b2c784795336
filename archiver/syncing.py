"""Bring what waits in the spool into the store, run after run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver.errors import AWAY, ArchiverError
from archiver.progress import Progress, Silent
from archiver.spool import listing, open_spool
from archiver.spool.listing import Listed
from archiver.spool.spool import place

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(slots=True)
class Delivered:
    """What came of one run."""

    run: str
    delivered: int = 0
    left: int = 0
    forks: int = 0
    warnings: tuple[str, ...] = ()
    error: ArchiverError | None = None


def by_run(found: Iterable[Listed]) -> list[tuple[str, list[Listed]]]:
    """What lies in the spool, put together by run, in the order in which runs come first."""
    groups: dict[str, list[Listed]] = {}
    for one in found:
        groups.setdefault(one.run, []).append(one)
    return list(groups.items())


def waiting(setup: Setup) -> list[Listed]:
    """What waits for the configured store; the store is not asked."""
    found = listing.listed(place(setup.settings), setup.require_store_id())
    return [one for one in found if one.waits]


def deliver(
    setup: Setup, found: Sequence[Listed], *, progress: Progress | None = None
) -> Iterator[Delivered]:
    """Run after run, each as soon as it is done; once the store is away for one it is for the others."""
    spool = open_spool(setup)
    away = False
    for name, of in by_run(one for one in found if one.store == setup.store_id):
        row = Delivered(name, left=len(of))
        if not away:
            before = len(spool.of(name).forks())
            try:
                row.warnings = spool.of(name).deliver(progress=progress or Silent()).warnings
            except ArchiverError as error:
                row.error = error
                away = isinstance(error, AWAY)
            after = spool.of(name)
            row.forks = len(after.forks()) - before
            row.left = len(after.entries()) + len(after.effects())
            row.delivered = max(0, len(of) - row.left - row.forks)
        yield row
