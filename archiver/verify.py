"""Is what the store holds whole, authentic and complete?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver import bundles, layout
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, InvalidNameError
from archiver.model.record import Record
from archiver.parallel import in_order
from archiver.progress import Progress, Silent
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.setup import Setup

DEEP_WORKERS = 4
"""Runs whose bundles are opened at the same time; each needs room on disk for one of them."""

_UNCOMMITTED = "no record commits it: an interrupted or lost save"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and, when something is wrong, the error."""

    object: str
    run: str | None = None
    seq: int | None = None
    error: ArchiverError | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.error is None


def verify(
    setup: Setup, run: str | None = None, *, deep: bool = False, progress: Progress | None = None
) -> Iterator[Finding]:
    """Check every run (or one): the chain, and that each bundle is there with the length that was signed.

    `deep` opens every bundle and checks payload digest, members and manifest. One finding an object, good or
    bad; damage in one run does not keep the others from being looked at. Raises `NoSuchRunError` for a run
    that is not there, and what keeps the store from being read at all. Of many runs several are looked at at
    the same time; `progress` is told of one run's bundles only.
    """
    if run is not None:
        yield from _run(Catalog(setup), run, setup, deep, progress or Silent(), only=True)
        return
    newest: dict[str, int] = {}
    catalog = Catalog(setup)
    one_by_one = Catalog(setup, workers=1)

    def numbered() -> Iterator[str]:
        for name, seq in catalog.newest_numbers():
            newest[name] = seq
            yield name

    def look(name: str) -> list[Finding]:
        return list(_run(one_by_one, name, setup, deep, Silent(), only=False))

    workers = min(catalog.workers, DEEP_WORKERS) if deep else catalog.workers
    for findings in in_order(look, numbered(), workers=workers):
        yield from findings
    yield from _others(setup, newest)


def _run(
    catalog: Catalog, run: str, setup: Setup, deep: bool, progress: Progress, only: bool
) -> Iterator[Finding]:
    try:
        chain = catalog.chain(run)
    except ArchiverError as error:
        if only and error.exit_code == 9:
            raise
        yield Finding(layout.records_prefix(run), run, error=error)
        return
    sizes = {info.name: info.size for info in setup.store.list(layout.bundles_prefix(run))}
    for link in chain.links:
        record = link.record
        yield Finding(layout.record_name(run, record.seq), run, record.seq, note=f"signed by {chain.writer}")
        if record.bundle is not None:
            try:
                bundles.check_size(record, sizes.pop(record.bundle.name, None))
                if deep:
                    _open(record, setup, progress)
                yield Finding(record.bundle.name, run, record.seq, note="opened" if deep else "present")
            except ArchiverError as error:
                yield Finding(record.bundle.name, run, record.seq, error=error)
    for name in sizes:
        yield Finding(name, run, note=_UNCOMMITTED)


def _open(record: Record, setup: Setup, progress: Progress) -> None:
    with Scratch() as scratch:
        bundles.fetch(record, setup, scratch.path / "bundle", progress)


def _others(setup: Setup, newest: dict[str, int]) -> Iterator[Finding]:
    """Objects that no part of this product makes, bundles of runs without records, hints to no record."""
    for info in setup.store.list():
        try:
            name = layout.parse(info.name)
        except InvalidNameError as error:
            yield Finding(info.name, error=error)
            continue
        known = newest.get(name.run or "", 0)
        if name.kind == "bundle" and not known:
            yield Finding(info.name, name.run, note=_UNCOMMITTED)
        if name.kind == "index" and (name.seq or 0) > known:
            yield Finding(info.name, name.run, name.seq, note="no record is behind this hint")
