"""Whether one more checkpoint pays, and how often one does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from archiver.policy.costs import Costs
from archiver.policy.words import share, usd


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is at stake against what a checkpoint costs; all amounts in US dollars.

    `probability` that an interruption comes before the next checkpoint; `replay` to do again what it would
    take away; `create`, `store` and `restore` of the checkpoint.
    """

    probability: float
    replay: float
    create: float
    store: float = 0.0
    restore: float = 0.0

    @property
    def expected_loss(self) -> float:
        """What going on without it costs on average."""
        return self.probability * self.replay

    @property
    def cost(self) -> float:
        """What having it costs on average: a restore comes only after an interruption."""
        return self.create + self.store + self.probability * self.restore

    @property
    def pays(self) -> bool:
        return self.expected_loss > self.cost

    @property
    def break_even(self) -> float | None:
        """The probability from which on it pays; None: at none, for doing it again is not dearer."""
        gain = self.replay - self.restore
        least = (self.create + self.store) / gain if gain > 0 else math.inf
        return least if least < 1 else None

    def words(self) -> str:
        """The formula with its numbers, on one line."""
        p = share(self.probability)
        return (
            f"{p} × {usd(self.replay)} = {usd(self.expected_loss)} against {usd(self.create + self.store)} + "
            f"{usd(self.probability * self.restore)} ({p} × {usd(self.restore)}): "
            f"{'pays' if self.pays else 'does not pay'}"
        )


def estimate(costs: Costs, size: int, probability: float, replay: float, per_hour: float) -> Estimate:
    """The estimate for a state of `size` bytes, where an hour of the run, saving or not, costs `per_hour`."""
    second = per_hour / 3600
    return Estimate(
        probability=probability,
        replay=replay,
        create=costs.create_usd() + costs.save_seconds(size) * second,
        store=costs.store_usd(size),
        restore=costs.restore_usd() + costs.restore_seconds(size) * second,
    )


def probability(rate: float, hours: float) -> float:
    """That at least one of `rate` interruptions an hour falls into so many hours: 1 - exp(-rate × hours)."""
    return -math.expm1(-rate * hours)


def rate(probability: float, hours: float) -> float:
    """The interruptions an hour with which so many hours are interrupted with this probability."""
    if probability >= 1:
        return math.inf
    return -math.log1p(-probability) / hours


def interval(cost: float, rate: float) -> float:
    """Seconds of work between checkpoints that cost `cost` seconds each, at `rate` interruptions an hour.

    sqrt(2 × cost × mean time between interruptions): with it, what is spent on checkpoints and what
    interruptions take away are together the least, to first order, while a checkpoint is short against the
    time between interruptions. J. W. Young, A first order approximation to the optimum checkpoint interval,
    CACM 17 (1974) 530; the first term of J. T. Daly, A higher order estimate of the optimum checkpoint
    interval for restart dumps, Future Generation Computer Systems 22 (2006) 303. Infinite where nothing
    interrupts.
    """
    return math.sqrt(2 * cost * 3600 / rate) if rate > 0 else math.inf
