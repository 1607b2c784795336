"""Is what the store holds whole, authentic and complete?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver import bundles, layout
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, InvalidNameError
from archiver.model.record import Record
from archiver.progress import Progress, Silent
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.setup import Setup


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
    that is not there, and what keeps the store from being read at all.
    """
    catalog = Catalog(setup)
    progress = progress or Silent()
    for name in [run] if run is not None else catalog.runs():
        yield from _run(catalog, name, setup, deep, progress, only=run is not None)
    if run is None:
        yield from _strangers(setup)


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
    for link in chain.links:
        record = link.record
        yield Finding(layout.record_name(run, record.seq), run, record.seq, note=f"signed by {chain.writer}")
        if record.bundle is not None:
            try:
                _bundle(record, setup, deep, progress)
                yield Finding(record.bundle.name, run, record.seq, note="opened" if deep else "present")
            except ArchiverError as error:
                yield Finding(record.bundle.name, run, record.seq, error=error)
    committed = {link.record.bundle.name for link in chain.links if link.record.bundle}
    for info in setup.store.list(layout.bundles_prefix(run)):
        if info.name not in committed:
            yield Finding(info.name, run, note="no record commits it: an interrupted or lost save")


def _bundle(record: Record, setup: Setup, deep: bool, progress: Progress) -> None:
    if not deep:
        bundles.check_present(record, setup)
        return
    with Scratch() as scratch:
        bundles.fetch(record, setup, scratch.path / "bundle", progress)


def _strangers(setup: Setup) -> Iterator[Finding]:
    """Objects that no part of this product makes."""
    for info in setup.store.list():
        try:
            layout.parse(info.name)
        except InvalidNameError as error:
            yield Finding(info.name, error=error)
