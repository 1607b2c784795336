"""Stored checkpoints, opened one after the other: what those who look into many bundles share."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from archiver import bundles, layout, members, rollback
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, NoSuchRunError
from archiver.gone import Gone
from archiver.model import Member, Receipt, Record
from archiver.parallel import in_order
from archiver.progress import Silent
from archiver.scratch import Scratch
from archiver.witnessed import Witnessed

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.redact import FileRedactor
    from archiver.setup import Setup

WORKERS: Final = 4
"""Bundles that are opened at the same time; each needs room on disk for what it holds."""

T = TypeVar("T")
_Known = tuple[Record, Sequence[Record]]
"""A record, and those of its run that have a bundle."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A bundle that was proved to be what its record signed, unpacked for the time of one look."""

    record: Record
    manifest: Manifest
    scratch: Scratch

    @property
    def redaction_key(self) -> bytes:
        """The key of the run's placeholders and fingerprints."""
        return base64.b64decode(self.manifest.redaction_key)


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """What a look at one checkpoint gave, or the error that kept it from being looked at."""

    run: str
    seq: int | None
    answer: T | None = None
    error: ArchiverError | None = None


def receipt_of_today(opened: Opened, load: Callable[[bytes], FileRedactor]) -> Receipt:
    """What is found in the members of a bundle now, although it was stored.

    `load` makes a redactor with the key of a run, so that fingerprints are those of its placeholders.
    """
    folder = opened.scratch.path / "bundle"
    found = tuple(
        Member(entry.path, folder / entry.path, entry.size, entry.sha256, entry.mode)
        for entry in opened.manifest.members
    )
    transcript = members.document_in(folder).get("transcript")
    dialect = str(transcript.get("dialect")) if isinstance(transcript, dict) else ""
    return load(opened.redaction_key).stored(found, dialect, opened.scratch)


def look(
    setup: Setup, runs: Iterable[str], work: Callable[[Opened], T], *, newest: bool
) -> Iterator[Seen[T]]:
    """`work` on every checkpoint of the runs, or of all runs where none is named; of each the newest alone.

    Several are opened at the same time; answers come in the order of runs and numbers. What is wrong with one
    is part of its answer. Raises `NoSuchRunError` for a named run that is not there, and what keeps the store
    from being read at all.
    """
    catalog = Catalog(setup)
    found = _records(catalog, setup, tuple(runs), newest)

    def one(given: Seen[_Known]) -> Seen[T]:
        if given.answer is None:
            return Seen(given.run, given.seq, error=given.error)
        try:
            with Scratch() as scratch:
                record, known = given.answer
                manifest = bundles.fetch(record, setup, scratch.path / "bundle", Silent(), known)
                return Seen(given.run, given.seq, work(Opened(record, manifest, scratch)))
        except ArchiverError as error:
            return Seen(given.run, given.seq, error=error.with_traceback(None))

    with closing(in_order(one, found, workers=WORKERS, ahead=WORKERS)) as answers:
        yield from answers


def _records(catalog: Catalog, setup: Setup, runs: tuple[str, ...], newest: bool) -> Iterator[Seen[_Known]]:
    """The records whose bundles are to be opened; a chain that does not hold is one error.

    So is a run of which more was seen than the store has: what is missing may be what is looked for.
    Of an old run most bundles have expired. That is seen in one list, for each that is asked for in vain has
    the whole chain read to say why it is gone.
    """
    known, now = set(), datetime.now(UTC)
    for run in runs or catalog.runs():
        known.add(run)
        try:
            sight = rollback.look(run, setup)
            chain = catalog.chain(run)
        except ArchiverError as error:
            if runs and isinstance(error, NoSuchRunError):
                raise
            yield Seen(run, None, error=error.with_traceback(None))
            continue
        try:
            sight.judge(chain, remember=False, now=now)
        except ArchiverError as error:
            yield Seen(run, None, error=error.with_traceback(None))
        links = chain.links
        records: Sequence[Record] = [link.record for link in links if link.record.bundle is not None]
        if newest:
            yield from (Seen(run, record.seq, (record, records)) for record in records[-1:])
            continue
        there = {info.name for info in setup.store.list(layout.bundles_prefix(run))}
        gone = Gone(links, setup, catalog.notes)
        for record in records:
            if record.bundle and record.bundle.name in there:
                yield Seen(run, record.seq, (record, records))
            else:
                yield Seen(run, record.seq, error=gone.error(record))
    if not runs:
        gone_runs = Witnessed(setup, now).vanished(known)
        yield from (Seen(head.run, None, error=head.error) for head in gone_runs if head.error)
