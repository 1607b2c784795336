"""What an agent hands over, in the forms in which agents have it, as the words of a checkpoint."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from subprocess import CompletedProcess
from typing import Any

from pydantic import ValidationError

from archiver import jsonio
from archiver.errors import UsageError
from archiver.model import Budget as BudgetModel
from archiver.model import Evidence, Plan, Spend, Step
from archiver.safetext import shorten

MAX_SUMMARY = 300
"""Characters of the last line of an output that say how a command ended."""

PlanLike = Plan | Mapping[str, Any] | Iterable[str]
"""A plan, its document, or the titles of what is left to do."""
EvidenceLike = Evidence | Mapping[str, Any] | CompletedProcess[Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use in all; a missing limit is no limit. `usd` is money, `seconds` wall-clock time."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    iterations: int | None = None

    def model(self) -> BudgetModel:
        """The same as a part of the checkpoint; `UsageError` for a limit below nothing."""
        try:
            return BudgetModel(
                tokens=self.tokens, cost=self.usd, seconds=self.seconds, iterations=self.iterations
            )
        except ValidationError as error:
            raise _not_a("budget", error) from error


def plan_of(given: PlanLike) -> Plan:
    """The plan; `UsageError` for what is none."""
    if isinstance(given, Plan):
        return given
    try:
        if isinstance(given, Mapping):
            return Plan.model_validate(dict(given))
        if isinstance(given, str):
            raise UsageError("a plan is not one text", remedy="give the titles of its steps as a list")
        if not isinstance(given, Iterable):
            raise UsageError(
                f"a plan is not of type {type(given).__name__}",
                remedy="give the titles of its steps as a list",
            )
        steps = enumerate(given, 1)
        return Plan(remaining=tuple(Step(id=str(number), title=title) for number, title in steps))
    except ValidationError as error:
        raise _not_a("plan", error) from error


def evidence_of(given: EvidenceLike | Iterable[EvidenceLike]) -> tuple[Evidence, ...]:
    """The evidence; `UsageError` for what is none."""
    if isinstance(given, Evidence | Mapping | CompletedProcess) or not isinstance(given, Iterable):
        return (_evidence(given),)
    return tuple(map(_evidence, given))


def spend_of(**used: float) -> Spend:
    """What was used; `UsageError` for what cannot be counted."""
    try:
        return Spend(**used)
    except ValidationError as error:
        raise _not_a("spend", error) from error


def _evidence(given: EvidenceLike) -> Evidence:
    if isinstance(given, Evidence):
        return given
    try:
        if isinstance(given, CompletedProcess):
            return Evidence(
                command=_command(given.args),
                exit_status=given.returncode,
                at=datetime.now(UTC),
                summary=_last_line(given.stdout) or _last_line(given.stderr),
            )
        return Evidence.model_validate(given)
    except ValidationError as error:
        raise _not_a("evidence", error) from error


def _command(args: Any) -> str:
    if isinstance(args, str | bytes | os.PathLike):
        return os.fsdecode(args)
    return shlex.join(os.fsdecode(one) if isinstance(one, bytes | os.PathLike) else str(one) for one in args)


def _last_line(output: Any) -> str:
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
    lines = text.strip().splitlines()
    return shorten(lines[-1], MAX_SUMMARY) if lines else ""


def messages_of(given: Iterable[Any]) -> bytes:
    """The conversation in one pass over native code, which nothing of the loop can change any more."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise UsageError(
            f"messages are a list, and this is of type {type(given).__name__}",
            remedy="give the whole conversation as a list of what you send to the API",
        )
    return jsonio.taken(given if isinstance(given, list) else list(given))


def json_of(value: Any) -> Any:
    """A copy as a resume will give it back: tuples are lists, objects of SDKs what they would send.

    Raises `NotSerialisableError` with the place of what has no JSON form.
    """
    return jsonio.exact(jsonio.taken(value))


def _not_a(what: str, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return UsageError(f"the {what} has no such form: {place}: {first['msg']}", remedy="see docs/LOOP.md")
