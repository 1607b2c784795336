"""The order of mending files: read, repair on a copy, and write what changed somewhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from archiver.mending import placing
from archiver.mending.checking import Finding, broken, opened
from archiver.repair import Action, mended
from archiver.scratch import Scratch
from archiver.transcripts.reader import Reading


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done to the files of one transcript, what was left, and where it was written."""

    path: Path
    dialect: str
    actions: tuple[Action, ...]
    left: tuple[Action, ...]
    folder: Path | None = None
    """The new folder with the mended transcript."""
    written: tuple[Path, ...] = ()
    """Files that were written."""
    backups: tuple[Path, ...] = ()
    """Where the originals of files mended in their place lie now."""


def mend(path: Path, *, into: Path | None = None, in_place: bool = False, dry_run: bool = False) -> Mended:
    """Mend the transcript at `path`; nothing is written where there is nothing to mend.

    The mended files go into the new folder `into`, those without a change as they are; `in_place` puts them
    where the originals are, which get `.orig` behind their names. Raises as `check` does, and also
    `AlreadyExistsError` (the folder, or such a name), `RefusedError` (a file changed meanwhile).
    """
    reading = opened(path)
    with Scratch() as scratch:
        transcript, report = mended(reading.transcript, scratch)
        lines = [
            (found.name, one) for found in reading.files for one in broken(reading, found.name, found.source)
        ]
        actions = (*(_split(name, one) for name, one in lines if one.reason is None), *report.actions)
        left = (*(_left(name, one) for name, one in lines if one.reason is not None), *report.left)
        result = Mended(path, reading.transcript.dialect, actions, left)
        changed = {action.part for action in actions}
        if not changed or dry_run:
            return result
        files = [
            placing.File(found.source, part, found.name in changed)
            for found, part in zip(reading.files, transcript.parts, strict=True)
        ]
        if in_place:
            written, backups = placing.in_place(files)
            return replace(result, written=written, backups=backups)
        folder = into if into is not None else beside(reading)
        return replace(result, folder=folder, written=placing.into(files, folder))


def beside(reading: Reading) -> Path:
    """The folder for a mended transcript where none was named: beside the original, after its name."""
    main = reading.files[0].source.path
    return main.with_name(f"{main.stem}.repaired")


def _split(part: str, one: Finding) -> Action:
    """What reading alone mended: what cannot be read is not written again, and each object has its line."""
    glued = one.detail.startswith("several")
    action = "split" if glued else "dropped"
    detail = f"line {one.line}, column {one.column}: {one.detail}"
    return Action(part, (one.line or 1) - 1, one.code, action, detail)


def _left(part: str, one: Finding) -> Action:
    where = f"line {one.line}, column {one.column}: " if one.line else ""
    return Action(part, (one.line or 1) - 1, one.code, "left", f"{where}{one.detail}; {one.reason}")
