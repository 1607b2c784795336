"""What a run has left of its budget, and the question that one which has none left asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from archiver.errors import BudgetExhaustedError
from archiver.model import Budget, Spend

_UNITS: Final = {"usd": "USD", "tokens": "tokens", "seconds": "seconds", "iterations": "iterations"}


@dataclass(frozen=True, slots=True)
class Left:
    """What may still be used; None where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    iterations: int | None = None

    @property
    def nothing(self) -> tuple[str, ...]:
        """The limits that are used up; empty while there is something left of each."""
        return tuple(name for name in _UNITS if (left := getattr(self, name)) is not None and left <= 0)


def left_of(budget: Budget | None, spend: Spend) -> Left:
    """What is left; below nothing where more was used. Money counts in the currency of the budget."""
    if budget is None:
        return Left()
    return Left(
        usd=None if budget.cost is None else budget.cost - spend.cost,
        tokens=None if budget.tokens is None else budget.tokens - spend.tokens_in - spend.tokens_out,
        seconds=None if budget.seconds is None else budget.seconds - spend.seconds,
        iterations=None if budget.iterations is None else budget.iterations - spend.iterations,
    )


def demand_left(run: str, budget: Budget | None, spend: Spend) -> None:
    """Raise `BudgetExhaustedError` for a run that is to go on and has used all that it may use."""
    gone = left_of(budget, spend).nothing
    if not gone:
        return
    used = {
        "usd": f"{spend.cost:.2f}",
        "tokens": f"{spend.tokens_in + spend.tokens_out:,}",
        "seconds": f"{spend.seconds:.0f}",
        "iterations": f"{spend.iterations:,}",
    }
    error = BudgetExhaustedError(
        f"run {run} has used its budget: {', '.join(f'{used[name]} {_UNITS[name]}' for name in gone)}",
        remedy="decide whether it may use more, and give archiver.run a larger budget",
    )
    error.details = {"run": run, "exhausted": list(gone), "spend": spend.document()}
    raise error
