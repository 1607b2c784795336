"""What a repair makes of a transcript, and what holds of every repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.repair import RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import read

from .samples import START


def checkpoint(path: Path, dialect: str) -> Checkpoint:
    transcript = read([path]).transcript
    assert transcript.dialect == dialect
    return Checkpoint(
        run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
    )


def mend(value: Checkpoint) -> tuple[list[Any], list[bytes], RepairReport, bytes]:
    """What a repair makes of it: values, lines, report and file; a second one changes nothing."""
    with Scratch() as scratch:
        after, report = repair(value, scratch)
        again, second = repair(after, scratch)
        assert again is after
        assert second.actions == ()
        assert (after is value) == (report.actions == ())
        part = after.transcript.parts[0]
        pieces: list[bytes] = []
        write_native(part, pieces.append)
        return list(part.items.values()), list(part.items.lines()), report, b"".join(pieces)


def codes(dialect: str, items: list[Any]) -> list[str]:
    return [problem.code for problem in get_dialect(dialect).problems(iter(items))]


def of_items(dialect: str, items: list[Any]) -> Checkpoint:
    """A checkpoint of items that stand in no file."""
    part = TranscriptPart(name="main", items=Items.of_lines(json.dumps(item).encode() for item in items))
    transcript = Transcript(dialect=dialect, parts=(part,))
    return Checkpoint(
        run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
    )


def mend_items(dialect: str, items: list[Any]) -> tuple[list[Any], RepairReport]:
    mended, _, report, _ = mend(of_items(dialect, items))
    return mended, report
