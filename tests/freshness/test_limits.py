"""The probes `budget` and `approvals`."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.freshness import Policy, Verdict, judge_all, stated
from archiver.freshness.limits import ApprovalsProbe, BudgetProbe
from archiver.model import Budget, JsonValue, Spend
from archiver.model.checkpoint import Approval

from .repos import context

BUDGET, APPROVALS = BudgetProbe(), ApprovalsProbe()


def judged(budget: Budget | None, **spend: Any) -> Verdict:
    world = context(budget=budget, spend=Spend(**spend))
    return judge_all({"budget": BUDGET.capture(world)}, context(), probes=[BUDGET]).verdicts[0]


@pytest.mark.parametrize(
    ("budget", "spend", "state", "words"),
    [
        (None, {"tokens_in": 9}, "FRESH", "the run has no budget"),
        (Budget(), {}, "FRESH", "limits nothing"),
        (Budget(tokens=100), {"tokens_in": 60, "tokens_out": 39}, "FRESH", "tokens: 99 of 100 spent"),
        (
            Budget(tokens=100),
            {"tokens_in": 60, "tokens_out": 40},
            "STALE",
            "tokens: all is spent, 100 of 100",
        ),
        (Budget(cost=5), {"cost": 4.99}, "FRESH", "cost: 4.99 USD of 5.00 USD spent"),
        (Budget(cost=5), {"cost": 5}, "STALE", "cost: all is spent"),
        (Budget(cost=5), {"cost": 1, "currency": "EUR"}, "UNKNOWN", "two currencies"),
        (Budget(cost=5), {"currency": "EUR"}, "FRESH", "0.00 EUR of 5.00 USD"),
        (Budget(cost=0), {}, "STALE", "cost: all is spent"),
        (Budget(seconds=3600), {"seconds": 1800}, "FRESH", "time: 30 minutes of 1 hour spent"),
        (Budget(seconds=3600), {"seconds": 7200}, "STALE", "time: all is spent, 2 hours of 1 hour"),
        (Budget(seconds=1e300), {"seconds": 1e299}, "FRESH", "1e+299 seconds of 1e+300 seconds"),
        (Budget(iterations=3), {"iterations": 2}, "FRESH", "iterations: 2 of 3 spent"),
        (Budget(iterations=3), {"iterations": 3}, "STALE", "iterations: all is spent"),
        (Budget(iterations=3, tokens=10), {"iterations": 3, "tokens_in": 1}, "STALE", "iterations: all"),
        (Budget(cost=5, tokens=1), {"cost": 1, "currency": "EUR", "tokens_in": 2}, "STALE", "tokens: all"),
    ],
)
def test_budget(budget: Budget | None, spend: dict[str, Any], state: str, words: str) -> None:
    verdict = judged(budget, **spend)
    assert verdict.state == state
    assert words in verdict.evidence
    assert verdict.ask == (state == "STALE")
    if state == "STALE":
        assert verdict.evidence.startswith(words)  # the worst first


def test_a_spent_budget_asks_a_person_unless_the_policy_says_otherwise() -> None:
    captured = {"budget": BUDGET.capture(context(budget=Budget(tokens=1), spend=Spend(tokens_in=1)))}
    for policy, code in (
        (Policy(), 7),
        (Policy(stale="warn"), 7),
        (Policy(probes={"budget": "block"}), 3),
        (Policy(probes={"budget": "warn"}), 0),
    ):
        assert judge_all(captured, context(), policy=policy, probes=[BUDGET]).exit_code == code
    assert judge_all(captured, context(), ["budget"], probes=[BUDGET]).exit_code == 0


@pytest.mark.parametrize(
    "captured",
    [None, {}, {"budget": None}, {"budget": 1, "spend": {}}, {"budget": {"tokens": -1}, "spend": {}}],
)
def test_a_record_without_a_budget_is_unknown(captured: JsonValue) -> None:
    assert judge_all({"budget": captured}, context(), probes=[BUDGET]).state == "UNKNOWN"


def test_approvals() -> None:
    captured = APPROVALS.capture(context())
    assert APPROVALS.judge(captured, context()).state == "FRESH"
    pending = tuple(Approval(id=f"a{n}", question=f"Deploy {n}?\x1b[31m") for n in range(7))
    captured = APPROVALS.capture(context(pending=pending[:1]))
    (verdict,) = judge_all({"approvals": captured}, context(), probes=[APPROVALS]).verdicts
    assert verdict.state == "UNKNOWN"
    assert verdict.evidence == "1 question for a person: a0: Deploy 0?\\x1b[31m"
    assert verdict.remedy
    captured = APPROVALS.capture(context(pending=pending))
    assert "and 2 more" in APPROVALS.judge(captured, context()).evidence


@pytest.mark.parametrize(
    "captured", [None, {}, {"waiting": "1"}, {"waiting": True}, {"waiting": -1}, {"waiting": 1}]
)
def test_a_record_that_does_not_say_what_waits_is_unknown(captured: JsonValue) -> None:
    assert judge_all({"approvals": captured}, context(), probes=[APPROVALS]).state == "UNKNOWN"


def test_records_say_it_also_without_a_capture() -> None:
    world = context(
        budget=Budget(tokens=1), spend=Spend(tokens_in=1), pending=(Approval(id="a", question="?"),)
    )
    report = judge_all(stated(world), world, probes=[BUDGET, APPROVALS])
    assert (report.asks, report.warnings) == (("budget",), ("approvals",))
