"""What probes answer, and what all their answers mean together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from archiver import jsonio
from archiver.model import Frozen

State = Literal["FRESH", "STALE", "UNKNOWN"]
Action = Literal["block", "warn", "ask"]

_CAUTION: dict[State, int] = {"STALE": 0, "UNKNOWN": 1, "FRESH": 2}
_MOST_SAID = 8
"""Findings of one probe that its evidence repeats; the others are counted."""


class Verdict(Frozen):
    """The answer of one probe, what it rests on, and what to do when it is not FRESH."""

    probe: str
    state: State
    evidence: str
    remedy: str | None = None
    ask: bool = False
    """True when nobody but a person can decide whether to go on."""
    recorded: bool = True
    """False when nothing was captured for this probe."""
    accepted: bool = False
    """True when the restorer named this probe with `--accept`."""


class Finding(NamedTuple):
    """What a probe found out about one of several things it looked at."""

    state: State
    evidence: str
    remedy: str | None = None


def together(
    probe: str, findings: Iterable[Finding], *, nothing: str = "there is nothing to compare"
) -> Verdict:
    """One verdict of a probe that looked at several things: the most cautious, the worst named first.

    Without any finding the answer is FRESH with the evidence `nothing`.
    """
    ordered = sorted(findings, key=lambda finding: _CAUTION[finding.state])
    if not ordered:
        return Verdict(probe=probe, state="FRESH", evidence=nothing)
    said = [finding.evidence for finding in ordered[:_MOST_SAID]]
    if len(ordered) > _MOST_SAID:
        said.append(f"and {len(ordered) - _MOST_SAID} more")
    remedies = dict.fromkeys(finding.remedy for finding in ordered if finding.remedy)
    return Verdict(
        probe=probe,
        state=ordered[0].state,
        evidence="; ".join(said),
        remedy="; ".join(list(remedies)[:_MOST_SAID]) or None,
    )


def _actions(value: Any) -> Any:
    """A table of probe names and actions; in a variable it is one text of JSON."""
    if isinstance(value, str):
        try:
            value = jsonio.loads(value)
        except ValueError as error:
            raise ValueError("it is not JSON") from error
    if isinstance(value, dict):
        for name, action in value.items():
            if action not in get_args(Action):
                raise ValueError(f"{name}: {action!r} is none of {', '.join(get_args(Action))}")
    return value


class Policy(Frozen):
    """What a verdict does to a restore.

    `block` stops it (exit code 3), `ask` stops it for a person to decide (7), `warn` only says so.
    """

    stale: Action = Field("block", description="What a STALE probe does to a restore: block, warn or ask.")
    unknown: Action = Field("warn", description="What an UNKNOWN probe does to a restore.")
    probes: Annotated[dict[str, Action], BeforeValidator(_actions)] = Field(
        {},
        description='What a single probe does when it is not FRESH: `{ git_commit = "warn", age = "ask" }`. '
        "In a variable: JSON.",
    )

    def action(self, verdict: Verdict) -> Action | None:
        """What this verdict does to a restore; None when it does not matter."""
        if verdict.accepted or verdict.state == "FRESH":
            return None
        if verdict.probe in self.probes:
            return self.probes[verdict.probe]
        if verdict.ask:
            return "ask"
        return self.stale if verdict.state == "STALE" else self.unknown


class FreshnessReport(Frozen):
    """All verdicts by name of the probe, and what follows from them."""

    state: State
    """The most cautious of all: STALE before UNKNOWN before FRESH; UNKNOWN when nothing was asked."""
    verdicts: tuple[Verdict, ...] = ()
    blockers: tuple[str, ...] = ()
    """Names of the probes that stop a restore."""
    asks: tuple[str, ...] = ()
    """Names of those among the blockers that a person has to decide."""
    warnings: tuple[str, ...] = ()
    """Names of the other probes that are not FRESH."""

    @property
    def exit_code(self) -> int:
        """7 when a person must decide, 3 when something else stops the restore, else 0."""
        return 7 if self.asks else 3 if self.blockers else 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], policy: Policy) -> FreshnessReport:
        """The report that these verdicts make under a policy."""
        ordered = tuple(sorted(verdicts, key=lambda verdict: verdict.probe))
        states = {verdict.state for verdict in ordered}
        state: State = "STALE" if "STALE" in states else "FRESH" if states == {"FRESH"} else "UNKNOWN"
        actions = {verdict.probe: policy.action(verdict) for verdict in ordered}
        blockers = tuple(name for name, action in actions.items() if action in ("block", "ask"))
        return cls(
            state=state,
            verdicts=ordered,
            blockers=blockers,
            asks=tuple(name for name in blockers if actions[name] == "ask"),
            warnings=tuple(v.probe for v in ordered if v.state != "FRESH" and v.probe not in blockers),
        )
