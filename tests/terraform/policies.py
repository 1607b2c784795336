"""What policies of AWS allow, evaluated as AWS documents it: for conditions that no emulator knows.

A request is an action on a resource, in a context of condition keys. An explicit Deny wins; without an Allow
nothing is allowed. What this file does not know is an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """What somebody asks for."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, str | list[str]]


def allowed(statements: Sequence[Statement], request: Request) -> bool:
    """Whether an Allow is for it, and no Deny."""
    return not denied(statements, request) and any(
        one["Effect"] == "Allow" and applies(one, request) for one in statements
    )


def denied(statements: Sequence[Statement], request: Request) -> bool:
    """Whether a Deny is for it."""
    return any(one["Effect"] == "Deny" and applies(one, request) for one in statements)


def applies(statement: Statement, request: Request) -> bool:
    """Whether the statement is about the request; one without a principal is about whose policy it is."""
    unknown = set(statement) - {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
    assert not unknown, unknown
    principal = statement.get("Principal", "*")
    if principal != "*" and request.principal not in listed(principal["AWS"]):
        return False
    return (
        any(like(one, request.action, ignore_case=True) for one in listed(statement["Action"]))
        and any(like(one, request.resource) for one in listed(statement["Resource"]))
        and all(
            _holds(operator, key, listed(values), request.context)
            for operator, pairs in statement.get("Condition", {}).items()
            for key, values in pairs.items()
        )
    )


def _holds(operator: str, key: str, values: Sequence[str], context: Mapping[str, str | list[str]]) -> bool:
    found = next((value for name, value in context.items() if name.lower() == key.lower()), None)
    if operator.startswith("ForAllValues:"):  # also of none
        operator = operator.removeprefix("ForAllValues:")
        return all(_holds(operator, key, values, {key: one}) for one in listed(found or []))
    assert not isinstance(found, list), key
    if operator == "Null":
        return (found is None) == (values[0] == "true")
    if operator.endswith("IfExists"):
        return found is None or _holds(operator.removesuffix("IfExists"), key, values, context)
    if operator == "StringNotEquals":
        return found is None or found not in values
    if found is None:
        return False
    match operator:
        case "StringEquals" | "Bool":
            return found in values
        case "StringLike":
            return any(like(one, found) for one in values)
        case "NumericLessThan":
            return any(float(found) < float(one) for one in values)
    raise AssertionError(operator)


def like(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether the text fits a pattern with `*` and `?`."""
    parts = {"*": ".*", "?": "."}
    expression = "".join(parts.get(one) or re.escape(one) for one in pattern)
    return re.fullmatch(expression, text, re.IGNORECASE if ignore_case else 0) is not None


def listed(value: Any) -> list[str]:
    """One word, or several, as a list."""
    return [value] if isinstance(value, str) else list(value)
