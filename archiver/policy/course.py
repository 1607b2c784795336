"""What the records of a run say about its work: how long, how dear, how often saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from archiver.errors import NoSuchRunError

if TYPE_CHECKING:
    from archiver.model import Record


@dataclass(frozen=True, slots=True)
class Course:
    """The work of one run up to its newest checkpoint."""

    checkpoints: int
    seconds: float
    """Of work, as the run counted it; else from its start to its newest checkpoint."""
    longest: float
    """Seconds of work that lay between two checkpoints, at most: what could have been lost."""
    per_hour: float | None
    """US dollars that an hour of it cost; None: it did not say."""
    since: float | None
    """Seconds from the newest checkpoint until now; None: the run has ended."""
    size: int
    """Bytes of the newest state before compaction."""

    @property
    def mean(self) -> float:
        """Seconds of work for each checkpoint."""
        return self.seconds / self.checkpoints


def course(records: Sequence[Record], now: datetime) -> Course:
    """Read the records of one run, in the order of their numbers; `NoSuchRunError` without a checkpoint."""
    saved = [record for record in records if record.kind == "checkpoint"]
    if not saved:
        raise NoSuchRunError(
            f"run {records[-1].run} has no checkpoint yet" if records else "a run without records",
            remedy="give --hours or --replay instead of a run",
        )
    newest = saved[-1]
    counted = newest.spend.seconds > 0
    worked = [0.0, *(_worked(record, counted=counted) for record in saved)]
    seconds, spend = worked[-1], newest.spend
    priced = spend.cost > 0 and spend.currency == "USD" and seconds > 0
    return Course(
        checkpoints=len(saved),
        seconds=seconds,
        longest=max(0.0, *(later - before for before, later in pairwise(worked))),
        per_hour=spend.cost * 3600 / seconds if priced else None,
        since=max(0.0, (now - newest.checkpoint_at).total_seconds()) if newest.outcome == "running" else None,
        size=newest.sizes.raw,
    )


def _worked(record: Record, *, counted: bool) -> float:
    if counted:
        return record.spend.seconds
    return max(0.0, (record.checkpoint_at - record.created_at).total_seconds())
