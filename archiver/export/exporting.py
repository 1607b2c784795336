"""List → write down → copy → verify the copy → name what is there → give the folder its name."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import __version__, audit, jsonio, layout, noting, target
from archiver.errors import AlreadyExistsError, DamagedError, InvalidNameError, NoSuchRunError, StoreFullError
from archiver.export.copying import Copying
from archiver.export.verifying import Judged, judged
from archiver.history import Histories, Stored
from archiver.model.export import Export, ExportedObject
from archiver.notes import Notes
from archiver.progress import Progress, Silent
from archiver.scratch import fsync_folder
from archiver.setup.copying import at_copy
from archiver.shellwords import run_word

if TYPE_CHECKING:
    from archiver.setup import Setup

_SPARE = 1 << 20
"""Bytes of disk beyond those of the objects."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder that was written, and what it says of itself."""

    folder: Path
    export: Export
    warnings: tuple[str, ...]
    exit_code: int
    """0 if all holds, 4 if anything is damaged or missing, else what was refused."""


def export(
    run: str,
    setup: Setup,
    *,
    into: Path,
    at: int | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Exported:
    """Copy everything of a run (or up to a checkpoint) into the new folder `into`, which appears whole.

    Damaged objects are copied too, and marked. Without an identity nothing is verified. Raises
    `NoSuchRunError`, `AlreadyExistsError`, `UsageError` for a folder in the store, `StoreFullError`,
    `AuditError` and the store's errors.
    """
    progress = progress or Silent()
    try:
        target.check(into, store=setup.store.url)
    except AlreadyExistsError as error:
        error.remedy = "choose another folder with --into"
        raise
    noting.refuse_erased(run, Notes(setup))
    found, remarks = _listed(run, setup, at)
    with target.beside(into) as scratch:
        size = sum(max(stored.info.size, sum(body.size for body in stored.bodies)) for stored in found)
        _demand_room(scratch.path, size)
        # The name of the folder is not told: it may hold anything.
        detail = {"objects": len(found), "bytes": size}
        warnings = audit.note(setup, "export", run=run, seq=at, detail=detail)
        progress.stage("copy", size)
        try:
            out = scratch.path / "export"
            out.mkdir(mode=0o700)
            copying = Copying(setup, out, progress)
            copying.name_store()
            objects = tuple(one for stored in found for one in copying.copied(stored))
            verdict = _verdict(run, setup, out, copying.target, objects, at)
            remarks = (*remarks, *verdict.remarks, *noting.said(run, Notes(setup)))
            made = _described(run, setup, at, verdict, remarks, now or datetime.now(UTC))
            _write(out / layout.EXPORT, jsonio.pretty(made.document()))
            target.appear(out, into, scratch)
        except OSError as error:
            raise target.failed(into, error) from error
    return Exported(into, made, warnings, _exit_code(verdict, objects))


def _listed(run: str, setup: Setup, at: int | None) -> tuple[list[Stored], tuple[str, ...]]:
    histories = Histories(setup.store)
    prefixes = (
        *(layout.records_prefix, layout.bundles_prefix, layout.effects_prefix),
        *(layout.notes_prefix, layout.audit_prefix),
    )
    found: list[Stored] = []
    remarks: dict[str, None] = {}
    for prefix in prefixes:
        listing = histories.listed(prefix(run))
        found += [one for one in listing.objects if _is_asked_for(one.info.name, at)]
        remarks |= dict.fromkeys(listing.warnings)
    if not any(one.info.name.startswith((layout.RECORDS, layout.BUNDLES)) for one in found):
        raise NoSuchRunError(
            f"the store has no run {run!r}", remedy="`archiver list` shows the runs that are there"
        )
    if at is not None and layout.record_name(run, at) not in {one.info.name for one in found}:
        raise NoSuchRunError(
            f"run {run} has no checkpoint {at}", remedy=f"see `archiver show {run_word(run)}`"
        )
    return found, tuple(remarks)


def _is_asked_for(name: str, at: int | None) -> bool:
    """Whether it is no checkpoint after `at`; what has no number, or is a stranger, is evidence too."""
    if at is None:
        return True
    try:
        seq = layout.parse(name).seq
    except InvalidNameError:
        return True
    return seq is None or seq <= at


def _demand_room(folder: Path, size: int) -> None:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return  # the copy itself will say
    if free < size + _SPARE:
        raise StoreFullError(
            f"the export needs {size} bytes, and the disk of {folder.parent} has {free} left",
            remedy="free some space there, or choose another --into",
        )


def _verdict(
    run: str,
    setup: Setup,
    out: Path,
    address: str,
    objects: tuple[ExportedObject, ...],
    at: int | None,
) -> Judged:
    if not setup.identities:
        return Judged(objects, "not verified", "there is no identity that opens the records")
    return judged(run, at_copy(setup, address), out, objects, at)


def _described(
    run: str, setup: Setup, at: int | None, verdict: Judged, remarks: tuple[str, ...], now: datetime
) -> Export:
    who, why = audit.who_and_why(setup)
    return Export(
        run=run,
        at=at,
        store=setup.store_id,
        url=setup.store.url,
        exported=now,
        who=who,
        why=why,
        software=f"checkpoint-archiver {__version__}",
        chain=verdict.chain,
        chain_said=verdict.said,
        remarks=remarks,
        objects=verdict.objects,
    )


def _exit_code(verdict: Judged, objects: tuple[ExportedObject, ...]) -> int:
    uncopied = any(one.file is None and not one.deleted for one in objects)
    if uncopied or DamagedError.exit_code in verdict.codes:
        return DamagedError.exit_code
    return max(verdict.codes, default=0)


def _write(path: Path, data: bytes) -> None:
    with target.new_file(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fsync_folder(path.parent)
