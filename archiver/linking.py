"""What must hold between the records of a run, and what is said of them although they are read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from archiver.errors import ChainError, MissingRecordError
from archiver.model import utc_text
from archiver.model.record import Record
from archiver.records import Link

TOLERANCE = timedelta(minutes=10)
"""How far the clock of a writer may be ahead of the store's before that is said."""


def check_link(link: Link, before: Link | None) -> None:
    record = link.record
    where = f"run {record.run}: record {record.seq}"
    if before is None:
        if record.previous is not None:
            raise ChainError(f"{where} is the first but names a record before it")
        return
    if record.previous != before.sha256:
        raise ChainError(f"{where} does not follow the record {before.record.seq} that is in the store")
    if record.task != before.record.task:
        raise ChainError(f"{where} belongs to another task than the record before it")
    if record.writer != before.record.writer and record.kind != "claim":
        raise ChainError(f"{where} was written by another key than the record before it, without a claim")


def check_gaps(run: str, present: list[int], last: int) -> None:
    """Refuse a chain in which numbers up to `last` are missing; a far number costs nothing to refuse."""
    missing = []
    before = 0
    for seq in (*present, last + 1):
        if seq > before + 1:
            missing.append(f"{before + 1}" if seq == before + 2 else f"{before + 1} to {seq - 1}")
        before = seq
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        whole = next(at - 1 for at, seq in enumerate((*present, 0), 1) if seq != at)
        left = (
            f"a checkpoint up to number {whole} can be restored with --at"
            if whole
            else "without its first record nothing of the run can be believed"
        )
        raise MissingRecordError(
            f"run {run}: record {shown} is missing before the newest, {last}",
            remedy="somebody or something removed records, or added one: look in a copy of the store; "
            f"{left}",
        )


def of_the_future(record: Record, name: str, written: datetime) -> Iterator[str]:
    claimed = max(record.created_at, record.checkpoint_at, record.recorded_at)
    if claimed - written > TOLERANCE:
        yield (
            f"{name} says that it is of {utc_text(claimed)}, and the store got it at {utc_text(written)}: "
            "one of the clocks is wrong"
        )
