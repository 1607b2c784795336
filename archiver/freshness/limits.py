"""Probes of what the run states of itself: `budget`, whether anything is left of it, and `approvals`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from archiver.freshness.age import span
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import Budget, JsonValue, Spend
from archiver.safetext import shorten

_MAX_QUESTION = 200
_MAX_LISTED = 5


class BudgetProbe:
    """FRESH while something is left, STALE when it is spent (a person decides), UNKNOWN across currencies."""

    name = "budget"

    def capture(self, context: Context) -> JsonValue:
        """`{budget, spend}`; a run without a budget has `budget: null`."""
        budget = context.budget
        return {
            "budget": None if budget is None else budget.document(),
            "spend": context.spend.document(),
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:  # noqa: ARG002 - the record says it all
        if not isinstance(captured, dict) or captured.keys() != {"budget", "spend"}:
            raise ValueError("the record holds no budget")
        spend = Spend.model_validate(captured["spend"])
        if captured["budget"] is None:
            return Verdict(probe=self.name, state="FRESH", evidence="the run has no budget")
        findings = _compared(Budget.model_validate(captured["budget"]), spend)
        verdict = together(self.name, findings, nothing="the budget of the run limits nothing")
        return verdict.model_copy(update={"ask": verdict.state == "STALE"})


def _compared(budget: Budget, spend: Spend) -> Iterator[Finding]:
    if budget.tokens is not None:
        used = spend.tokens_in + spend.tokens_out
        yield _left("tokens", used, budget.tokens, f"{used:,}", f"{budget.tokens:,}")
    if budget.cost is not None:
        yield _cost(budget, spend)
    if budget.seconds is not None:
        spent, limit = _time(spend.seconds), _time(budget.seconds)
        yield _left("time", spend.seconds, budget.seconds, spent, limit)
    if budget.iterations is not None:
        used = spend.iterations
        yield _left("iterations", used, budget.iterations, f"{used:,}", f"{budget.iterations:,}")


def _cost(budget: Budget, spend: Spend) -> Finding:
    limit, spent = f"{budget.cost:.2f} {budget.currency}", f"{spend.cost:.2f} {spend.currency}"
    if spend.currency != budget.currency and spend.cost > 0:
        return Finding(
            "UNKNOWN",
            f"cost: {spent} spent of {limit}: two currencies cannot be compared",
            "compare them at today's rate",
        )
    return _left("cost", spend.cost, budget.cost or 0.0, spent, limit)


def _left(what: str, used: float, limit: float, used_text: str, limit_text: str) -> Finding:
    if used >= limit:
        return Finding(
            "STALE",
            f"{what}: all is spent, {used_text} of {limit_text}",
            "give the run a larger budget; `--accept budget` goes on without",
        )
    return Finding("FRESH", f"{what}: {used_text} of {limit_text} spent")


def _time(seconds: float) -> str:
    """A length of time; one that is longer than the clock can count is given in seconds."""
    try:
        return span(timedelta(seconds=seconds))
    except OverflowError:
        return f"{seconds:g} seconds"


class ApprovalsProbe:
    """FRESH when no question waits for a person, else UNKNOWN: nobody knows what the answer will be."""

    name = "approvals"

    def capture(self, context: Context) -> JsonValue:
        """`{waiting, questions}`: how many, and the first of them."""
        questions = [
            {"id": shorten(one.id, _MAX_QUESTION), "question": shorten(one.question, _MAX_QUESTION)}
            for one in context.pending[:_MAX_LISTED]
        ]
        return {"waiting": len(context.pending), "questions": questions}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:  # noqa: ARG002 - the record says it all
        waiting = captured.get("waiting") if isinstance(captured, dict) else None
        if not isinstance(waiting, int) or isinstance(waiting, bool) or waiting < 0:
            raise ValueError("the record does not hold how many approvals wait")
        if waiting == 0:
            return Verdict(probe=self.name, state="FRESH", evidence="no question waits for a person")
        named = [f"{one['id']}: {one['question']}" for one in captured["questions"]]
        if waiting > len(named):
            named.append(f"and {waiting - len(named)} more")
        return Verdict(
            probe=self.name,
            state="UNKNOWN",
            evidence=f"{waiting} question{'' if waiting == 1 else 's'} for a person: {'; '.join(named)}",
            remedy="answer before the run goes on; it was not allowed to do this by itself",
        )


def stated(context: Context) -> dict[str, JsonValue]:
    """What these probes would have captured: records say it in fields of their own, also the oldest."""
    probes: tuple[BudgetProbe, ApprovalsProbe] = (BudgetProbe(), ApprovalsProbe())
    return {probe.name: probe.capture(context) for probe in probes}
