"""Probe `age`: how long ago the checkpoint was taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from archiver.freshness.probe import Context
from archiver.freshness.verdict import Verdict
from archiver.model import JsonValue, utc_text

CLOCK_SKEW = timedelta(minutes=10)
"""How far two honest clocks may differ."""


class AgeProbe:
    """FRESH within the limit, STALE beyond it, UNKNOWN when the two clocks contradict each other."""

    name = "age"

    def capture(self, context: Context) -> JsonValue:
        return {"at": utc_text(context.checkpoint_at)}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        at = _moment(captured)
        age = context.now.astimezone(UTC) - at
        if age < -CLOCK_SKEW:
            return Verdict(
                probe=self.name,
                state="UNKNOWN",
                evidence=f"taken {span(-age)} in the future ({utc_text(at)}): one of two clocks is wrong",
                remedy="compare this machine's clock with the one that saved the checkpoint",
            )
        limit = span(context.max_age)
        if age > context.max_age:
            return Verdict(
                probe=self.name,
                state="STALE",
                evidence=f"taken {span(age)} ago ({utc_text(at)}); the limit is {limit}",
                remedy="look at what changed since; `--accept age` goes on anyway",
            )
        return Verdict(
            probe=self.name,
            state="FRESH",
            evidence=f"taken {span(max(age, timedelta()))} ago ({utc_text(at)}); the limit is {limit}",
        )


def _moment(captured: JsonValue) -> datetime:
    text = captured.get("at") if isinstance(captured, dict) else None
    if not isinstance(text, str):
        raise TypeError("the record holds no time")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the time in the record has no zone")
    return moment


def span(length: timedelta) -> str:
    """A length of time in its largest fitting unit: `36 hours`, `9 days`."""
    seconds = int(length.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
