"""What stands around a list of Responses items: the body of a request or of a response, a log of both."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from archiver.transcripts import shapes
from archiver.transcripts.dialect import Facts, Path, Usage
from archiver.transcripts.moments import moment
from archiver.transcripts.places import at
from archiver.transcripts.responses_sealed import in_item

_BODIES: Final[tuple[Path, ...]] = ((), ("request",), ("body",), ("response",), ("response", "body"))
_IDS: Final = {
    "id": shapes.is_id,
    "previous_response_id": shapes.is_response_id,
    "conversation": shapes.is_id,
    "prompt_cache_key": shapes.is_uuid,
    "request_id": shapes.is_id,
}
_LISTS: Final = ("input", "output")


def facts(shell: list[Any]) -> Facts:
    """What an array of one object states: model, tokens, time, and whether a conversation begins there."""
    value = shell[0] if len(shell) == 1 else None
    if not isinstance(value, dict):
        return Facts("meta", starts=True)
    bodies = [body for path in _BODIES if isinstance(body := at(value, path), dict)]
    said = {key: body[key] for body in bodies for key in body}
    return Facts(
        "meta",
        usage=usage(said.get("usage")),
        at=moment(value.get("timestamp")) or _since_1970(said.get("created_at")),
        model=_text(said.get("model")),
        message=_text(said.get("id")) if "usage" in said else None,
        starts=not goes_on(shell),
    )


def goes_on(shell: list[Any]) -> bool:
    """True for a request or response that names the response before it."""
    value = shell[0] if len(shell) == 1 else None
    return any(_text(at(value, (*path, "previous_response_id"))) is not None for path in _BODIES)


def is_response(shell: list[Any]) -> bool:
    """True where the items are those of a response: what its calls gave is in a request that is not there."""
    value = shell[0] if len(shell) == 1 else None
    return not any(isinstance(at(value, (*path, "input")), list) for path in _BODIES)


def usage(tokens: Any) -> Usage | None:
    """Tokens of a response: `tokens_in` were not read from the cache, `tokens_cached` were."""
    if not isinstance(tokens, dict):
        return None
    cached = _count(at(tokens, ("input_tokens_details", "cached_tokens")))
    into = max(_count(tokens.get("input_tokens")) - cached, 0)
    return Usage(into, _count(tokens.get("output_tokens")), cached)


def opaque(path: Path, shell: list[Any]) -> bool:
    """True for an opaque leaf of what stands around: ids of bodies, and those of items inside."""
    inside = path[1:]
    for body in _BODIES:
        own = inside[len(body) :]
        if inside[: len(body)] != body or not own:
            continue
        if len(own) == 1 and own[0] in _IDS:
            return _IDS[str(own[0])](at(shell, path))
        if own[0] in _LISTS and len(own) > len(("input", 0)):
            place = path[: len(path) - len(own) + 2]
            return in_item(path[len(place) :], at(shell, place))
    return False


def _since_1970(value: Any) -> datetime | None:
    if type(value) not in (int, float) or not 0 < value < 1 << 36:
        return None
    return datetime.fromtimestamp(value, UTC)


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
