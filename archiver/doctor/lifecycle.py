"""The rules of the bucket against those that the classes need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from archiver.doctor.check import Check, failure, ok, warning
from archiver.errors import UnsafeLifecycleError
from archiver.lifecycle.judge import judge
from archiver.lifecycle.parse import parse
from archiver.lifecycle.rules import Drift, RawRule, Wanted, drift

NAME: Final = "lifecycle"


def checks(present: Sequence[RawRule], wanted: Wanted, unknown: Sequence[str] = ()) -> list[Check]:
    """A line for each thing that is not as it should be, or one that says that all is.

    `unknown` are parts of rules that only this server has.
    """
    rules = parse(present)
    found = [
        failure(NAME, one.text, one.remedy, UnsafeLifecycleError)
        if one.verdict == "failure"
        else warning(NAME, one.text, one.remedy)
        for one in judge(rules, wanted)
    ]
    # That a class has no rule, whatever its name, is said above; others may have put one that does as well.
    found += [_drifted(one) for one in drift(present, wanted) if one.kind != "missing"]
    if unknown:
        found.append(
            warning(
                NAME,
                f"rules have parts of which only this server knows what they delete: {', '.join(unknown)}",
                "look them up in its documentation; `archiver lifecycle` cannot foresee what they do",
            )
        )
    if found:
        return found
    here = sum(rule.meets(wanted.prefix) for rule in rules)
    return [ok(NAME, f"{here} rules: each class expires by one of them alone, and uploads are aborted")]


def _drifted(one: Drift) -> Check:
    return warning(
        NAME,
        f"not as it should be: {one.text}",
        "`archiver lifecycle apply --dry-run` shows what `archiver lifecycle apply` makes of it",
    )
