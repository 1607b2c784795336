"""Lines of a Codex rollout: envelopes `{timestamp, type, payload}`, and the flat lines of versions before.

A flat file begins with `{id, timestamp, instructions, git}`, then has bare items and `record_type` lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from archiver.transcripts import codex_events, codex_text, sealed, shapes
from archiver.transcripts.dialect import Facts, Path
from archiver.transcripts.moments import moment
from archiver.transcripts.places import at
from archiver.transcripts.responses_items import KINDS, facts_of, kind_of
from archiver.transcripts.responses_sealed import in_item

LINES: Final = frozenset({"session_meta", "turn_context", "event_msg", "response_item", "compacted"})
_PAYLOAD: Path = ("payload",)
_HISTORY: Path = ("payload", "replacement_history")
_META = Facts("meta")
_SESSIONS: Final = ("id", "session_id", "thread_id", "parent_thread_id", "forked_from_id")
_WINDOWS: Final = ("window_id", "first_window_id", "previous_window_id")
_IDS: Final = {
    "session_meta": frozenset({*_SESSIONS, *_WINDOWS}),
    "turn_context": frozenset({"turn_id", "thread_id", *_WINDOWS}),
    "compacted": frozenset({"turn_id", *_WINDOWS}),
    "event_msg": frozenset(
        {
            *(*_SESSIONS, *_WINDOWS, "turn_id", "call_id", "item_id", "approval_id", "connector_id"),
            *("link_id", "sender_thread_id", "receiver_thread_id", "new_thread_id"),
        }
    ),
}
"""The ids of Codex itself, right in the payload of a line of that type."""
_COMMIT: Path = ("git", "commit_hash")
_ITEM_ID: Path = ("payload", "item", "id")


def payload_of(item: Any) -> dict[str, Any] | None:
    """What an enveloped line holds; None for a flat line."""
    payload = item.get("payload") if isinstance(item, dict) else None
    return payload if isinstance(payload, dict) and isinstance(item.get("type"), str) else None


def is_start(item: Any) -> bool:
    """True for the first line of a flat file."""
    if not isinstance(item, dict) or "type" in item or "role" in item:
        return False
    known = isinstance(item.get("id"), str) and isinstance(item.get("timestamp"), str)
    return known and ("instructions" in item or "git" in item)


def places(item: Any) -> tuple[Path, ...]:
    """Where Responses items stand in a line: none, one, or those that a compaction leaves to the model."""
    payload = payload_of(item)
    if payload is None:
        return ((),) if kind_of(item) in KINDS else ()
    if item["type"] == "response_item":
        return (_PAYLOAD,)
    if item["type"] == "compacted":
        history = payload.get("replacement_history")
        return tuple((*_HISTORY, index) for index in range(len(history) if isinstance(history, list) else 0))
    return ()


def facts(item: Any) -> Facts:
    """What a line says."""
    payload = payload_of(item)
    if payload is None:
        return _flat(item)
    at_time = moment(item.get("timestamp"))
    kind = item["type"]
    if kind == "response_item":
        return _item(payload)._replace(at=at_time)
    if kind == "event_msg":
        return (codex_events.usage_facts(payload) or _META)._replace(at=at_time)
    if kind == "compacted":
        return _compacted(item)._replace(at=at_time)
    if kind in ("session_meta", "turn_context"):
        return _stated(payload)._replace(at=at_time)
    return Facts("meta", at=at_time)


def _flat(item: Any) -> Facts:
    if kind_of(item) in KINDS:
        return _item(item)
    return _stated(item)._replace(at=moment(item["timestamp"])) if is_start(item) else _META


def _item(item: Mapping[str, Any]) -> Facts:
    said = facts_of(item, codex_text.typed)
    if said.role == "user" and not said.instruction:
        where = codex_text.folder(item.get("content"))
        return said if where is None else said._replace(cwd=where)
    return said


def _stated(payload: Mapping[str, Any]) -> Facts:
    """What the head of a session, or the context of a turn, states."""
    version = _text(payload.get("cli_version"))
    return Facts(
        "meta",
        session=_text(payload.get("id")),
        cwd=_text(payload.get("cwd")),
        git_branch=_text(at(payload, ("git", "branch"))),
        model=_text(payload.get("model")),
        harness=f"codex {version}" if version else None,
    )


def _compacted(item: Any) -> Facts:
    """A compaction: the calls and results that it leaves to the model are the first ones of what follows."""
    inner = [facts_of(at(item, place), codex_text.typed) for place in places(item)]
    return Facts(
        "meta",
        tuple(call for one in inner for call in one.calls),
        tuple(result for one in inner for result in one.results),
        boundary=True,
    )


def is_compaction(item: Any) -> bool:
    """True for a line behind which what the model sees starts anew."""
    return payload_of(item) is not None and item["type"] == "compacted"


def provider(item: Any) -> str | None:
    """The provider that a session's head names."""
    payload = payload_of(item)
    if payload is None or item["type"] != "session_meta":
        return None
    return _text(payload.get("model_provider"))


def event_of(item: Any) -> dict[str, Any] | None:
    """The event that a line holds."""
    payload = payload_of(item)
    return payload if payload is not None and item["type"] == "event_msg" else None


def opaque(path: Path, item: Any) -> bool:
    """True for an opaque leaf of a line: as in Responses items, and the ids of Codex itself."""
    if item is None:
        return any(in_item(rest, sealed.UNKNOWN) for rest in _inside(path))
    for place in places(item):
        if path[: len(place)] == place:
            return in_item(path[len(place) :], at(item, place))
    value = at(item, path)
    event = event_of(item)
    if event is not None and any((*_PAYLOAD, *blob.path) == path for blob in codex_events.blobs(event)):
        return shapes.is_media(value)
    if is_start(item):
        return (path == ("id",) and shapes.is_id(value)) or (path == _COMMIT and shapes.is_commit(value))
    return payload_of(item) is not None and _is_own(path, item["type"], value)


def _is_own(path: Path, kind: str, value: Any) -> bool:
    """True for an id of Codex itself, and the commit of a session's head."""
    if path == (*_PAYLOAD, *_COMMIT):
        return kind == "session_meta" and shapes.is_commit(value)
    known = (
        path == _ITEM_ID
        if kind == "event_msg" and len(path) > len(_PAYLOAD) + 1
        else (len(path) == len(_PAYLOAD) + 1 and path[-1] in _IDS.get(kind, ()))
    )
    return known and path[:1] == _PAYLOAD and shapes.is_id(value)


def _inside(path: Path) -> Iterator[Path]:
    """What a path may be inside a Responses item, when the line is not known."""
    yield path
    if path[:1] == _PAYLOAD:
        yield path[1:]
    if path[:2] == _HISTORY:
        yield path[3:]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
