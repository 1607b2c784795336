"""What `archiver advise` works out: numbers that were given, and for the rest the measured ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from archiver.errors import UsageError
from archiver.policy.breakeven import Estimate, estimate, interval, probability, rate
from archiver.policy.costs import INTERRUPTIONS_PER_HOUR, Costs
from archiver.policy.words import share, span, usd

USD_PER_HOUR: Final = 9.25
"""What an hour of a run costs where nobody says: that of the worked example, $37 in four hours."""
SIZE: Final = 1_000_000
"""Bytes of a state where nobody says: a transcript of some hundred turns."""


_FROM: Final = {
    "probability": "",
    "interruptions": "",
    "create": "",
    "restore": "",
    "size": "",
    "replay": "above 0",
    "hours": "above 0",
    "per_hour": "above 0",
}
"""The numbers of a question, and what each has to be where 0 makes no sense."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is known; None is worked out from the rest, or assumed.

    `replay`, `create` and `restore` in US dollars, `create` with what keeping it costs; `hours` of work that
    an interruption takes away and `per_hour` what one of them costs; `interruptions` an hour; `size` of the
    state in bytes.
    """

    probability: float | None = None
    replay: float | None = None
    hours: float | None = None
    per_hour: float | None = None
    interruptions: float | None = None
    create: float | None = None
    restore: float | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a checkpoint pays now, and how often one does."""

    estimate: Estimate
    hours: float
    per_hour: float
    interruptions: float
    """An hour, on average."""
    assumed: tuple[str, ...] = ()
    """What nobody said, in words."""

    @property
    def interval(self) -> float:
        """Seconds of work between checkpoints, as Young has it; infinite where nothing interrupts."""
        cost = (self.estimate.create + self.estimate.store) / self.per_hour * 3600
        return interval(cost, self.interruptions)


def advise(question: Question, costs: Costs | None = None) -> Advice:
    """Answer the question; `UsageError` where its numbers say the same twice, too little, or no sense."""
    _check(question)
    assumed: list[str] = []
    replay, hours, per_hour = _work(question, assumed)
    p, per = _chance(question, hours, assumed)
    size = SIZE if question.size is None else question.size
    usual = estimate(costs or Costs(), size, p, replay, per_hour)
    if question.create is None:
        assumed.append(f"create and store {usd(usual.create + usual.store)}, as measured and priced")
    if question.restore is None:
        assumed.append(f"restore {usd(usual.restore)}, as measured and priced")
    answer = Estimate(
        probability=p,
        replay=replay,
        create=usual.create if question.create is None else question.create,
        store=usual.store if question.create is None else 0.0,
        restore=usual.restore if question.restore is None else question.restore,
    )
    return Advice(answer, hours, per_hour, per, tuple(assumed))


def _check(question: Question) -> None:
    for name, least in _FROM.items():
        value = getattr(question, name)
        if value is not None and not (math.isfinite(value) and value >= 0 and (value or not least)):
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be {value:g}",
                remedy=f"give a number {least or 'from 0 on'}",
            )
    if question.probability is not None and question.probability >= 1:
        raise UsageError(
            f"--probability cannot be {share(question.probability)}",
            remedy="give less than 100%: what is certain needs no estimate",
        )


def _work(question: Question, assumed: list[str]) -> tuple[float, float, float]:
    """What is at stake in US dollars, in hours, and what an hour costs: two of them make the third."""
    replay, hours, per_hour = question.replay, question.hours, question.per_hour
    if replay is None and hours is None:
        raise UsageError(
            "nothing says what an interruption would take away",
            remedy="give --replay or --hours, or name a run; --examples shows how",
        )
    if replay is not None and hours is not None:
        if per_hour is not None:
            raise UsageError(
                "--replay, --hours and --per-hour say the same twice", remedy="leave out one of the three"
            )
        return replay, hours, replay / hours
    if per_hour is None:
        per_hour = USD_PER_HOUR
        assumed.append(f"an hour of the run costs {usd(per_hour)}")
    if hours is None:
        hours = (replay or 0.0) / per_hour
    return hours * per_hour if replay is None else replay, hours, per_hour


def _chance(question: Question, hours: float, assumed: list[str]) -> tuple[float, float]:
    """The probability of an interruption in these hours, and the interruptions an hour that it comes from."""
    p, per = question.probability, question.interruptions
    if p is not None:
        return p, rate(p, hours) if per is None else per
    if per is None:
        per = INTERRUPTIONS_PER_HOUR
        assumed.append(f"an interruption every {span(3600 / per)} of work: of four hours {share(0.05)}")
    return probability(per, hours), per


EXAMPLES: Final = (
    (
        "A step that costs $8 to do again, interrupted one time in ten:",
        Question(probability=0.1, replay=8, create=0.12, restore=0.5),
    ),
    (
        "A migration of four hours at $9.25 an hour, interrupted one time in twenty:",
        Question(probability=0.05, hours=4, per_hour=9.25, create=0.12, restore=0.5),
    ),
    (
        "A lint fix of two minutes, as dear an hour, and interrupted as often:",
        Question(interruptions=rate(0.05, 4), hours=2 / 60, per_hour=9.25, create=0.12, restore=0.5),
    ),
)
"""Worked examples; a checkpoint costs the same in all of them."""
