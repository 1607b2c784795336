"""Whether one call of `checkpoint` is saved: the reasons of a moment, and the profile's answer to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from archiver.policy.breakeven import interval
from archiver.policy.costs import INTERRUPTIONS_PER_HOUR, Costs
from archiver.policy.words import counted, span
from archiver.safetext import one_line, shorten

if TYPE_CHECKING:
    from archiver.model import Evidence

Profile = Literal["every-step", "milestones", "async"]


@dataclass(frozen=True, slots=True)
class Policy:
    """When a run is saved.

    `profile`: `every-step` saves each call before it returns; `milestones` those that bring something worth
    it, and others once the interval that pays has passed; `async` each one in the background. Until a run is
    `floor` seconds old or has made `floor_calls` calls, only what must not be lost is saved. `interruptions`
    is how many the run meets in an hour.
    """

    profile: Profile = "milestones"
    floor: float = 60.0
    floor_calls: int = 10
    costs: Costs = field(default_factory=Costs)
    interruptions: float = INTERRUPTIONS_PER_HOUR

    def interval(self, size: int, last_save: float | None = None) -> float:
        """Seconds between two checkpoints without a reason of their own; infinite where nothing interrupts.

        `size` is that of the state in bytes, `last_save` what the last save took, where that was measured.
        """
        cost = self.costs.save_seconds(size) if last_save is None else last_save
        return interval(cost, self.interruptions)


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known when `checkpoint` is called."""

    seconds: float
    """Since this process began or resumed the run."""
    calls: int
    """Calls of `checkpoint` in this process, this one included."""
    since_save: float | None = None
    """Seconds since the last save; None: this process has saved nothing yet."""
    phase_changed: bool = False
    proved: bool = False
    """Whether there is new evidence that passed, as `proves` says."""
    milestone: str = ""
    """What was reached: "build", "migration", "test suite"; in the caller's words."""
    waiting: bool = False
    """Whether the run is about to wait: for an approval, a time, a long job."""
    effects: int = 0
    """Effects that cannot be done again, confirmed since the last save."""
    final: bool = False
    forced: bool = False
    size: int = 0
    """Bytes of the state."""
    last_save: float | None = None
    """Seconds that the last save took."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one call."""

    save: bool
    because: str
    """Why, or why not: a short phrase for logs."""
    plain: bool = True
    """Whether a newer one may take its place while it waits."""
    wait: bool = False
    """Whether the call returns only when it is durable."""


def proves(evidence: Iterable[Evidence]) -> bool:
    """Whether any of it passed: its command ended with exit status 0."""
    return any(one.exit_status == 0 for one in evidence)


def decide(policy: Policy, moment: Moment) -> Decision:
    """What to do with a call of `checkpoint`; the same for the same arguments, whatever the clock says."""
    must = next(_musts(moment), None)
    if must is not None:
        return Decision(save=True, because=must, plain=False, wait=True)
    if moment.seconds < policy.floor and moment.calls < policy.floor_calls:
        return Decision(save=False, because=_too_early(policy, moment))
    reason = next(_reasons(moment), None)
    wait = policy.profile == "every-step" or (policy.profile == "milestones" and moment.waiting)
    if reason is not None:
        return Decision(save=True, because=reason, plain=False, wait=wait)
    if policy.profile != "milestones":
        return Decision(save=True, because=f"profile {policy.profile}", wait=wait)
    return _at_intervals(policy, moment)


def _musts(moment: Moment) -> Iterator[str]:
    """Why it is saved whatever the policy says."""
    if moment.final:
        yield "the run ends"
    if moment.effects:
        yield f"{counted(moment.effects, 'effect')} that cannot be done again"
    if moment.forced:
        yield "asked for"


def _reasons(moment: Moment) -> Iterator[str]:
    """Why it is worth more than the call before it, the strongest first."""
    if moment.waiting:
        yield "before a wait"
    if moment.milestone:
        yield f"milestone: {one_line(shorten(moment.milestone, 60))}"
    if moment.proved:
        yield "evidence passed"
    if moment.phase_changed:
        yield "phase change"


def _too_early(policy: Policy, moment: Moment) -> str:
    return (
        f"too early: {_passed(moment.seconds)} and {counted(moment.calls, 'call')}; "
        f"from {span(policy.floor)} or {counted(policy.floor_calls, 'call')} on"
    )


def _passed(seconds: float) -> str:
    """As exact as a person would look at a clock."""
    return span(round(seconds, 1))


def _at_intervals(policy: Policy, moment: Moment) -> Decision:
    """A call that brings nothing new but its work: saved once what would be lost is worth a save."""
    passed = moment.seconds if moment.since_save is None else moment.since_save
    due = policy.interval(moment.size, moment.last_save)
    if math.isinf(due):
        return Decision(save=False, because="nothing new, and nothing interrupts the run")
    since = "of work" if moment.since_save is None else "since the last save"
    enough = passed >= due
    because = f"{_passed(passed)} {since}, and one every {span(due)} pays"
    return Decision(save=enough, because=because if enough else f"nothing new: {because}")
