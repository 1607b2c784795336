"""What probes answer, and what all their answers mean together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from archiver.model import Frozen

State = Literal["FRESH", "STALE", "UNKNOWN"]


class Verdict(Frozen):
    """The answer of one probe, what it rests on, and what to do when it is not FRESH."""

    probe: str
    state: State
    evidence: str
    remedy: str | None = None
    accepted: bool = False
    """True when the restorer named this probe with `--accept`."""


class Policy(Frozen):
    """What a verdict does to a restore: `block` stops it, `warn` lets it go on and says so."""

    stale: Literal["block", "warn"] = Field("block", description="What a STALE probe does to a restore.")
    unknown: Literal["block", "warn"] = Field("warn", description="What an UNKNOWN probe does to a restore.")

    def blocks(self, verdict: Verdict) -> bool:
        """Whether this verdict stops a restore."""
        if verdict.accepted or verdict.state == "FRESH":
            return False
        return (self.stale if verdict.state == "STALE" else self.unknown) == "block"


class FreshnessReport(Frozen):
    """All verdicts by name of the probe, and what follows from them."""

    state: State
    """The most cautious of all: STALE before UNKNOWN before FRESH; UNKNOWN when nothing was asked."""
    verdicts: tuple[Verdict, ...] = ()
    blockers: tuple[str, ...] = ()
    """Names of the probes that stop a restore."""
    warnings: tuple[str, ...] = ()
    """Names of the other probes that are not FRESH."""

    @property
    def exit_code(self) -> int:
        """3 when something stops the restore, else 0."""
        return 3 if self.blockers else 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], policy: Policy) -> FreshnessReport:
        """The report that these verdicts make under a policy."""
        ordered = tuple(sorted(verdicts, key=lambda verdict: verdict.probe))
        states = {verdict.state for verdict in ordered}
        state: State = "STALE" if "STALE" in states else "FRESH" if states == {"FRESH"} else "UNKNOWN"
        blockers = tuple(verdict.probe for verdict in ordered if policy.blocks(verdict))
        return cls(
            state=state,
            verdicts=ordered,
            blockers=blockers,
            warnings=tuple(v.probe for v in ordered if v.state != "FRESH" and v.probe not in blockers),
        )
