"""Is what the store holds whole, authentic and complete?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from archiver import bundles, layout
from archiver.catalog import Catalog, Entry
from archiver.errors import (
    ArchiverError,
    InvalidNameError,
    KeyUnavailableError,
    RecipientMismatchError,
)
from archiver.model import utc_text
from archiver.model.record import Record
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.progress import Progress, Silent
from archiver.recipients import fits
from archiver.scratch import Scratch
from archiver.signed import Seal

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
    advice: Literal["rekey"] | None = None
    """The command that should be run on this run although nothing is wrong; such a finding is no object."""

    @property
    def ok(self) -> bool:
        return self.error is None


def verify(
    setup: Setup, run: str | None = None, *, deep: bool = False, progress: Progress | None = None
) -> Iterator[Finding]:
    """Check every run (or one): the chain, and that each bundle is there with the length that was signed.

    `deep` opens every bundle and checks payload digest, members and manifest. Each header that is opened must
    be for those who were signed, or for those whom the note of an administrator names. One finding an object,
    good or bad; damage in one run does not keep the others from being looked at. Raises `NoSuchRunError` for
    a run that is not there, and what keeps the store from being read at all. Of many runs several are looked
    at at the same time; `progress` is told of one run's bundles only.
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
    yield from _others(setup, newest, catalog.notes)


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
    seals: list[Seal] = []
    sizes = {info.name: info.size for info in setup.store.list(layout.bundles_prefix(run))}
    for link in chain.links:
        seals.append(link.seal)
        yield _compared(link, link.info.name, link.seal, catalog.notes, f"signed by {link.writer}")
        bundle = link.record.bundle
        if bundle is not None:
            try:
                bundles.check_size(link.record, sizes.pop(bundle.name, None))
                if not deep:
                    yield Finding(bundle.name, run, link.record.seq, note="present")
                    continue
                seals.append(_open(link.record, setup, progress))
                yield _compared(link, bundle.name, seals[-1], catalog.notes, "opened")
            except ArchiverError as error:
                yield Finding(bundle.name, run, link.record.seq, error=error)
    for name in sizes:
        yield Finding(name, run, note=_UNCOMMITTED)
    if only:
        yield from _notes(run, catalog.notes)
    yield from _advice(run, seals, setup)


def _compared(entry: Entry, name: str, seal: Seal, notes: Notes, note: str) -> Finding:
    """The finding of an object that is whole: is it sealed to those to whom its writer sealed it?"""
    record = entry.record
    if seal.is_for(record.recipients):
        return Finding(name, record.run, record.seq, note=note)
    try:
        by = notes.explains(record.run, name, seal)
        doubtful = any(one.error for one in notes.examined(record.run))
    except ArchiverError as error:
        return Finding(name, record.run, record.seq, error=error)
    if by is not None:
        note += f"; rekeyed at {utc_text(by.note.at)} by {by.administrator}"
        return Finding(name, record.run, record.seq, note=note)
    return Finding(name, record.run, record.seq, error=_mismatch(name, seal, record, doubtful))


def _mismatch(name: str, seal: Seal, record: Record, doubtful: bool) -> RecipientMismatchError:
    said = (
        "there is none" if not doubtful else "there are notes that are not believed, see what is said of them"
    )
    more = f" and {seal.unnamed} more that its header does not name" if seal.unnamed else ""
    return RecipientMismatchError(
        f"{name} opens with the keys {', '.join(seal.recipients) or '(none named)'}{more}, but was sealed to "
        f"{', '.join(record.recipients)}; no note of a trusted administrator says why ({said})",
        remedy="if the signer of those notes did a rekey, add them as administrator to writers.toml, as is "
        "said of the notes"
        if doubtful
        else "somebody who can open it has rewritten its header: look who could write to the store; "
        "`archiver rekey` seals it to the configured recipients again",
    )


def _notes(run: str, notes: Notes) -> Iterator[Finding]:
    """The notes about a run; one that is sealed to other keys was replaced by what a later rekey wrote."""
    try:
        examined = notes.examined(run)
    except ArchiverError as error:
        yield Finding(layout.notes_prefix(run), run, error=error)
        return
    for one in examined:
        if one.believed is not None:
            note = one.believed.note
            said = f": {note.reason}" if note.reason else ""
            count = len(note.objects)
            objects = f"{count} object{'' if count == 1 else 's'}"
            yield Finding(
                one.name, run, note=f"{one.believed.administrator} signed a rekey of {objects}{said}"
            )
        elif isinstance(one.error, KeyUnavailableError):
            yield Finding(one.name, run, note="sealed to keys that are not here: not opened")
        else:
            yield Finding(one.name, run, error=one.error)


def _advice(run: str, seals: list[Seal], setup: Setup) -> Iterator[Finding]:
    misfits = sum(not fits(seal, setup) for seal in seals)
    if misfits:
        yield Finding(
            layout.records_prefix(run),
            run,
            note=f"sealed to other recipients than the configured ones: {misfits} of {len(seals)} objects",
            advice="rekey",
        )


def _open(record: Record, setup: Setup, progress: Progress) -> Seal:
    with Scratch() as scratch:
        bundles.fetch(record, setup, scratch.path / "bundle", progress)
    return bundles.seal(record, setup)


def _others(setup: Setup, newest: dict[str, int], notes: Notes) -> Iterator[Finding]:
    """Objects that no part of this product makes, notes, bundles of runs without records, hints to none."""
    noted = None
    for info in setup.store.list():
        try:
            name = layout.parse(info.name)
        except InvalidNameError as error:
            yield Finding(info.name, error=error)
            continue
        if name.kind == "note" and name.run is not None and name.run != noted:
            noted = name.run
            yield from _notes(noted, notes)
        known = newest.get(name.run or "", 0)
        if name.kind == "bundle" and not known:
            yield Finding(info.name, name.run, note=_UNCOMMITTED)
        if name.kind == "index" and (name.seq or 0) > known:
            yield Finding(info.name, name.run, name.seq, note="no record is behind this hint")
