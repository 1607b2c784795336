"""What a probe is and what it may look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from archiver.freshness.verdict import Verdict
from archiver.model import JsonValue


@dataclass(frozen=True, slots=True)
class Context:
    """The world as the caller gives it to the probes; the clock is an argument."""

    now: datetime
    checkpoint_at: datetime
    workspace: Path | None = None
    """Where the run worked, or where its work lies on this machine."""
    max_age: timedelta = timedelta(days=7)
    timeout: float = 10.0
    """Seconds that one probe may take."""


class Probe(Protocol):
    """One question about the world; what `capture` returns is stored in the sealed record."""

    @property
    def name(self) -> str:
        """The word in records, reports and `--accept`; it never changes its meaning."""

    def capture(self, context: Context) -> JsonValue | None:
        """What to remember at save time; None when there is nothing to compare with later."""

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        """Compare what was remembered with the world now; raising counts as UNKNOWN."""
