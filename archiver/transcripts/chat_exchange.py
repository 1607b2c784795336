"""What stands around the messages of one conversation: a request, its response, what a log adds to them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from archiver.transcripts import sealed
from archiver.transcripts.dialect import Facts, Usage
from archiver.transcripts.places import at


def facts(shell: list[Any]) -> Facts:
    """What an array of one object states: model, tokens and cost of its response, session and time."""
    value = shell[0] if len(shell) == 1 else None
    if not isinstance(value, dict):
        return Facts("meta", starts=True)
    response = value["response"] if isinstance(value.get("response"), dict) else value
    return Facts(
        "meta",
        usage=usage(response.get("usage"), value.get("cost")),
        at=_moment(value.get("timestamp")) or _moment(response.get("created")),
        session=_id(value.get("session_id")),
        model=_first(value.get("model"), at(value, ("request", "model")), response.get("model")),
        starts=True,
    )


def usage(tokens: Any, cost: Any = None) -> Usage | None:
    """Tokens of a response: `tokens_in` were not read from the cache, `tokens_cached` were."""
    if not isinstance(tokens, dict):
        return None
    cached = _count(at(tokens, ("prompt_tokens_details", "cached_tokens")))
    return Usage(
        max(_count(tokens.get("prompt_tokens")) - cached, 0),
        _count(tokens.get("completion_tokens")),
        cached,
        float(cost) if type(cost) in (int, float) and cost > 0 else 0.0,
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _id(value: Any) -> str | None:
    return value if sealed.is_id(value) else None


def _first(*values: Any) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _moment(value: Any) -> datetime | None:
    """A time in seconds since 1970; a number that is none gives None."""
    if type(value) not in (int, float) or not 0 < value < 1 << 36:
        return None
    return datetime.fromtimestamp(value, UTC)
