"""The order of mending files: read, repair on a copy, and write what changed somewhere else."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver.mending import placing
from archiver.mending.checking import Finding, broken, opened
from archiver.model import Items, TranscriptPart
from archiver.repair import Action, mended
from archiver.scratch import Scratch
from archiver.transcripts.detect import OPAQUE
from archiver.transcripts.jsonl import JsonLines
from archiver.transcripts.reader import Reading


@dataclass(frozen=True, slots=True)
class Change:
    """One problem, what became of it, and where the original has it: line (1-based), item (0-based)."""

    part: str
    code: str
    action: str
    detail: str
    line: int | None = None
    column: int | None = None
    item: int | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done to the files of one transcript, what was left, and where it was written."""

    path: Path
    dialect: str
    actions: tuple[Change, ...]
    left: tuple[Change, ...]
    folder: Path | None = None
    """The new folder with the mended transcript."""
    written: tuple[Path, ...] = ()
    """Files that were written."""
    backups: tuple[Path, ...] = ()
    """Where the originals of files mended in their place lie now."""

    @property
    def valid(self) -> bool | None:
        """False where something is left; None where nothing could be looked for, as of no known format."""
        if self.left:
            return False
        return None if self.dialect == OPAQUE else True


def mend(path: Path, *, into: Path | None = None, in_place: bool = False, dry_run: bool = False) -> Mended:
    """Mend the transcript at `path`; nothing is written where there is nothing to mend.

    The mended files go into the new folder `into`, those without a change as they are; `in_place` puts them
    where the originals are, which get `.orig` behind their names. Raises as `check` does, and also
    `AlreadyExistsError` (the folder, or such a name), `RefusedError` (a file changed meanwhile).
    """
    reading = opened(path)
    with Scratch() as scratch:
        numbers = {name: array("Q") for name in reading.lines}
        parts = tuple(
            _numbered(part, reading.lines[part.name], numbers[part.name]) if part.name in numbers else part
            for part in reading.transcript.parts
        )
        original = reading.transcript.model_copy(update={"parts": parts})
        transcript, report = mended(original, scratch)
        lines = [
            (found.name, one) for found in reading.files for one in broken(reading, found.name, found.source)
        ]
        actions = (
            *(_split(name, one) for name, one in lines if one.reason is None),
            *(_change(one, numbers) for one in report.actions),
        )
        left = (
            *(_left(name, one) for name, one in lines if one.reason is not None),
            *(_change(one, numbers) for one in report.left),
        )
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


def _numbered(part: TranscriptPart, lines: JsonLines, numbers: array[int]) -> TranscriptPart:
    """The part; each pass over its items notes their lines."""

    def pairs() -> Iterator[tuple[bytes, Any]]:
        del numbers[:]
        for pair in part.items.pairs():
            numbers.append(lines.number)
            yield pair

    return part.model_copy(update={"items": Items.of_pairs(pairs, size=part.items.size)})


def _change(one: Action, numbers: dict[str, array[int]]) -> Change:
    """What a repair did, with the line of the original where that has lines."""
    lines = numbers.get(one.part, ())
    line = lines[one.item] if one.item < len(lines) else None
    return Change(one.part, one.code, one.action, one.detail, line, None, one.item, one.call_id)


def _split(part: str, one: Finding) -> Change:
    """What reading alone mended: what cannot be read is not written again, and each object has its line."""
    glued = one.detail.startswith("several")
    action = "split" if glued else "dropped"
    return Change(part, one.code, action, one.detail, one.line, one.column)


def _left(part: str, one: Finding) -> Change:
    return Change(part, one.code, "left", f"{one.detail}; {one.reason}", one.line, one.column)
