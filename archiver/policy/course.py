"""What the records of a run say about its work: how long, how dear, how often saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from archiver.errors import NoSuchRunError

if TYPE_CHECKING:
    from archiver.model import Record

_PRICED: Final = 60.0
"""Seconds of work from which on its spend says what an hour costs: of less, one call of a model is all."""
_SILENT: Final = 600.0
"""Seconds without a record that a run at work may have, however short its intervals were."""
_INTERVALS: Final = 3
"""Longest intervals that it may have let pass besides."""


@dataclass(frozen=True, slots=True)
class Course:
    """The work of one run up to its newest checkpoint."""

    checkpoints: int
    seconds: float
    """Of work, as the run counted it; else from its start to its newest checkpoint."""
    longest: float
    """Seconds of work that lay between two checkpoints, at most: what could have been lost."""
    per_hour: float | None
    """US dollars that an hour of it cost; None: it did not say, or has not worked for a minute."""
    since: float | None
    """Seconds of work since the newest checkpoint, or since a claim after it; None: the run has ended, or is
    silent."""
    silent: float | None
    """Seconds for which a run that has not ended has said nothing, longer than one at work would."""
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
    priced = spend.cost > 0 and spend.currency == "USD" and seconds >= _PRICED
    longest = max(0.0, *(later - before for before, later in pairwise(worked)))
    claimed = (record.recorded_at for record in records if record.kind == "claim")
    since = max(0.0, (now - max([newest.checkpoint_at, *claimed])).total_seconds())
    works = since <= max(_SILENT, _INTERVALS * longest)
    running = newest.outcome == "running"
    return Course(
        checkpoints=len(saved),
        seconds=seconds,
        longest=longest,
        per_hour=spend.cost * 3600 / seconds if priced else None,
        since=since if running and works else None,
        silent=since if running and not works else None,
        size=newest.sizes.raw,
    )


def _worked(record: Record, *, counted: bool) -> float:
    if counted:
        return record.spend.seconds
    return max(0.0, (record.checkpoint_at - record.created_at).total_seconds())
