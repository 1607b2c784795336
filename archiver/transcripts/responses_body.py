"""What stands around a list of Responses items: the body of a request or of a response, a log of both."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from archiver.transcripts import sealed
from archiver.transcripts.dialect import Facts, Path, Usage
from archiver.transcripts.moments import moment
from archiver.transcripts.places import at
from archiver.transcripts.responses_items import kind_of
from archiver.transcripts.responses_sealed import in_item

_BODIES: Final[tuple[Path, ...]] = ((), ("request",), ("body",), ("response",), ("response", "body"))
_IDS: Final = frozenset({"id", "previous_response_id", "conversation", "prompt_cache_key", "request_id"})
_DEEPEST_ITEM: Final = 8


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
    if path[-1] in _IDS and any(path == (0, *body, path[-1]) for body in _BODIES):
        return sealed.is_id(at(shell, path))
    for depth in range(1, min(len(path), _DEEPEST_ITEM)):
        inner = at(shell, path[:depth])
        if isinstance(path[depth - 1], int) and depth > 1 and kind_of(inner):
            return in_item(path[depth:], inner)
    return False


def _since_1970(value: Any) -> datetime | None:
    if type(value) not in (int, float) or not 0 < value < 1 << 36:
        return None
    return datetime.fromtimestamp(value, UTC)


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
