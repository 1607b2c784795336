"""Marks by which Responses items and the rollouts of Codex are known, and logs that hold lists of items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from archiver.transcripts import codex_lines
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at
from archiver.transcripts.responses_checks import ROLES
from archiver.transcripts.responses_items import ANSWERS, HOSTED, KINDS, RESULTS, SEALED, TEXT_PARTS, kind_of

_OWN_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})
_PARTS: Final = _OWN_PARTS | {
    *TEXT_PARTS,
    *("refusal", "input_audio", "output_audio", "computer_screenshot"),
}
_NEW_KIND = re.compile(r"[a-z][a-z_]{2,60}")
_OBJECTS: Final = frozenset({"response", "response.compaction"})
_PLACES: Final[tuple[Path, ...]] = (
    *(("request", "input"), ("body", "input"), ("input",)),
    *(("output",), ("response", "output")),
)
"""Where the lines of a log keep items: of an exchange the request, which has what was said before as well."""


def is_rollout(values: Sequence[Any]) -> bool:
    """True for lines of Codex: most are envelopes of its kinds, or a flat file's head comes first."""
    if values and codex_lines.is_start(values[0]):
        return all(map(_flat, values[1:]))
    return sum(map(_enveloped, values)) * 2 > len(values)


def _enveloped(value: Any) -> bool:
    known = codex_lines.payload_of(value) is not None and value["type"] in codex_lines.LINES
    return known and isinstance(value.get("timestamp"), str)


def _flat(value: Any) -> bool:
    return isinstance(value, dict) and ("record_type" in value or _item(value) or codex_lines.is_start(value))


def shown(values: Sequence[Any], container: Any) -> bool:
    """True for items of the Responses API that show it, or whose container does."""
    if not values or not all(map(_item, values)) or sum(map(_is_known, values)) * 2 <= len(values):
        return False
    asks = isinstance(container, Mapping) and _asks(container)
    if isinstance(container, Mapping) and container.get("output") == [] and not asks:
        return False  # the state of some other program that keeps such items
    return asks or any(map(_marked, values))


def nested(values: Sequence[Any]) -> Path | None:
    """Where each of these values holds a list of items of its own; None unless most do and show it."""
    if not all(isinstance(value, dict) for value in values):
        return None
    for path in _PLACES:
        lists = [(value, at(value, path)) for value in values]
        held = [(value, found) for value, found in lists if isinstance(found, list)]
        if len(held) * 2 < len(values) or not all(_item(one) for _, found in held for one in found):
            continue
        if any(found and shown(found, _emptied(at(value, path[:-1]), path[-1])) for value, found in held):
            return path
    return None


def _emptied(container: Any, key: Any) -> Any:
    return {**container, key: []}


def _asks(container: Mapping[str, Any]) -> bool:
    """True for the body of a request to the Responses API, or of its answer."""
    kind = container.get("object")
    if isinstance(kind, str) and kind in _OBJECTS:
        return True
    return isinstance(container.get("input"), list) and isinstance(container.get("model"), str)


def _item(value: Any) -> bool:
    """True for what could be an item; one of a kind that is not known yet has to have an id."""
    kind = kind_of(value)
    if kind == "message":
        return isinstance(value.get("role"), str) and _content(value.get("content"))
    if kind in KINDS:
        return "message" not in value and "callId" not in value
    return bool(_NEW_KIND.fullmatch(kind)) and isinstance(value.get("id"), str) and "message" not in value


def _is_known(value: Any) -> bool:
    return kind_of(value) != "message" or value["role"] in ROLES


def _content(content: Any) -> bool:
    if isinstance(content, str | None):
        return True
    return isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in _PARTS
        for part in content
    )


def _marked(value: Any) -> bool:
    """True for an item that no other provider's API has in this form."""
    kind = kind_of(value)
    if kind == "message":
        content = value["content"]
        return isinstance(content, list) and any(part["type"] in _OWN_PARTS for part in content)
    if kind in ANSWERS or kind in HOSTED:
        return isinstance(value.get("call_id") or value.get("id"), str)
    if kind in RESULTS:
        return isinstance(value.get("call_id") or value.get("id"), str) and (
            "output" in value or "tools" in value
        )
    return kind in SEALED and ("encrypted_content" in value or isinstance(value.get("summary"), list))
