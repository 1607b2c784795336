"""Dialect "claude-code": items are the lines of a Claude Code session file, or of its stream-json output.

A message line wraps an Anthropic message under `message`; one response is split over several lines that share
`message.id`. Other lines (snapshots, summaries, progress, attachments) are carried as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from archiver.transcripts import blocks, sealed
from archiver.transcripts.checks import with_sound_text
from archiver.transcripts.conversations import INLINE
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Facts, Path, Problem, Results
from archiver.transcripts.moments import moment
from archiver.transcripts.places import at, put
from archiver.transcripts.session_judge import SessionJudge
from archiver.transcripts.typed import typed

_CONTENT: Path = ("message", "content")
_ID_KEYS = frozenset(
    {
        *("uuid", "parentUuid", "logicalParentUuid", "sessionId", "session_id", "leafUuid", "messageId"),
        *("requestId", "request_id", "promptId", "agentId", "toolUseID", "parentToolUseID"),
        *("sourceToolAssistantUUID", "sourceToolUseID", "parent_tool_use_id", "bridgeSessionId"),
    }
)
_ID_PLACES = frozenset({("message", "id"), ("message", "container", "id"), ("snapshot", "messageId")})
_ID_LISTS = frozenset({"compactedToolIds", "retractedMessageUuids", "clearedAttachmentUUIDs"})
_NESTED = (("data", "message"), ("data", "normalizedMessages"))
"""Lines of a sub-agent that a progress line repeats."""
_PICTURE: Path = ("toolUseResult", "file", "base64")
_COPIES = frozenset({"toolUseResult", "tool_use_result"})
_COPIED = (
    "isSidechain",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "session_id",
    "parent_tool_use_id",
    "version",
    "gitBranch",
    "slug",
    "agentId",
)
_SYNTHETIC = uuid.UUID("6f7d4a52-54c6-5d0a-9f0e-3a4f5f4f8d11")


class ClaudeCode(DialectDefaults):
    """Claude Code sessions; the order is the file's, the tree is that of `uuid` and `parentUuid`."""

    name = "claude-code"
    results: Results = "together"

    def facts(self, item: Any) -> Facts:
        if not isinstance(item, dict):
            return Facts("meta")
        message = item.get("message")
        if item.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            return _meta_facts(item)
        said = blocks.said(message.get("content"))
        stated = (
            moment(item.get("timestamp")),
            _session(item),
            _text(item.get("cwd")),
            _text(item.get("gitBranch")),
            _model(message.get("model")),
            _harness(item.get("version")),
        )
        if item["type"] == "user":
            person = said.texts and _person(item)
            instruction = typed(said.texts) if person else ""
            return Facts(
                "user",
                (),
                said.results,
                instruction,
                "",
                False,
                None,
                _branch(item),
                False,
                None,
                None,
                *stated,
            )
        return Facts(
            "assistant",
            said.calls,
            said.results,
            "",
            "\n".join(said.texts),
            said.has_reasoning,
            _text(message.get("id")),
            _branch(item),
            False,
            blocks.usage_of(message.get("usage")),
            None,
            *stated,
        )

    def opaque(self, path: Path, item: Any = None) -> bool:
        if len(path) < 2:
            return path[:1] != () and path[0] in _ID_KEYS and _id_or_unknown(item, path)
        if path[:2] == _CONTENT:
            return sealed.in_content(path[2:], sealed.UNKNOWN if item is None else at(item, _CONTENT))
        if path in _ID_PLACES or (path[-2] in _ID_LISTS and len(path) in (2, 3)):
            return _id_or_unknown(item, path)
        if path[:2] in _NESTED and item is not None:
            start = 2 if path[1] == "message" else 3
            return self.opaque(path[start:], at(item, path[:start]) or {})
        return path == _PICTURE and sealed.is_base64(at(item, path))

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        judge = SessionJudge()
        for item in items:
            judge.see(item, self.facts(item), self.link(item), blocks.blobs(at(item, _CONTENT), _CONTENT))
        return judge.problems()

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        changed = _with_content(item, blocks.stub_result(at(item, _CONTENT), call_id, text))
        return item if changed is item else self.fold(changed)

    def fold(self, item: Any) -> Any:
        if not isinstance(item, dict) or not ("toolUseResult" in item or "tool_use_result" in item):
            return item
        if not blocks.has_result(at(item, _CONTENT)):
            return item
        return {key: value for key, value in item.items() if key not in _COPIES}

    def without_reasoning(self, item: Any) -> Any | None:
        content = blocks.without_reasoning(at(item, _CONTENT))
        return None if content == [] else _with_content(item, content)

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        changes = {}
        for key in ("parentUuid", "logicalParentUuid", "leafUuid"):
            target = item.get(key) if isinstance(item, dict) else None
            seen = set()
            while isinstance(target, str) and target in removed and target not in seen:
                seen.add(target)
                target = removed[target]
            if seen:
                changes[key] = target
        return {**item, **changes} if changes else item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        if not isinstance(item, dict):
            return None, None
        return _text(item.get("uuid")), _text(item.get("parentUuid"))

    def blobs(self, item: Any) -> Iterator[Blob]:
        return chain(blocks.blobs(at(item, _CONTENT), _CONTENT), _picture(item))

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        if path[0] == "toolUseResult":
            return {**item, "toolUseResult": text}
        return blocks.replace_blob(item, path, text)

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        own, parent = self.link(after)
        name = "\n".join((own or "", *(call.id for call in calls)))
        line: dict[str, Any] = {"parentUuid": own or parent}
        line.update({key: after[key] for key in _COPIED if isinstance(after, dict) and key in after})
        line["type"] = "user"
        line["message"] = {"role": "user", "content": blocks.error_blocks(calls, text, is_error)}
        line["uuid"] = str(uuid.uuid5(_SYNTHETIC, name))
        if isinstance(after, dict) and "timestamp" in after:
            line["timestamp"] = after["timestamp"]
        line["isSynthetic"] = True
        if own is not None and after.get("type") == "assistant":
            line["sourceToolAssistantUUID"] = own
        return line

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return _with_content(item, blocks.with_results(at(item, _CONTENT), calls, text, is_error))

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        return blocks.result_content(at(item, _CONTENT), call_id, occurrence)

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        content = blocks.without_result(at(item, _CONTENT), call_id, occurrence)
        if content == []:
            return None
        changed = _with_content(item, content)
        if changed is item or blocks.has_result(content):
            return changed
        return {key: value for key, value in changed.items() if key not in _COPIES}

    def with_sound_text(self, item: Any) -> Any | None:
        content = with_sound_text(at(item, _CONTENT))
        return None if content == [] else _with_content(item, content)

    def user_note(self, text: str, before: Any) -> Any:
        own, parent = self.link(before)
        line: dict[str, Any] = {"parentUuid": parent}
        line.update({key: before[key] for key in _COPIED if isinstance(before, dict) and key in before})
        line["type"] = "user"
        line["message"] = {"role": "user", "content": text}
        line["uuid"] = str(uuid.uuid5(_SYNTHETIC, f"before {own}"))
        if isinstance(before, dict) and "timestamp" in before:
            line["timestamp"] = before["timestamp"]
        line["isSynthetic"] = True
        return line

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        content = blocks.renamed_call(at(item, _CONTENT), call_id, new_id, occurrence)
        return None if content == [] else _with_content(item, content)

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        made = _with_content(item, blocks.renamed_result(at(item, _CONTENT), call_id, new_id, occurrence))
        return {**made, "sourceToolUseID": new_id} if _source(made) == call_id and made is not item else made

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        return _with_content(item, blocks.renamed_tool(at(item, _CONTENT), names))

    def with_sound_role(self, item: Any) -> Any | None:
        """The line's own type says who spoke."""
        role = at(item, ("type",))
        known = role in ("user", "assistant") and at(item, ("message", "role")) != role
        return put(item, ("message", "role"), role) if known and isinstance(item["message"], dict) else item

    def renamed(self, item: Any, new_id: str | None) -> Any | None:
        if new_id is None:
            return None
        return {**item, "uuid": new_id} if self.link(item)[0] is not None else item


def _source(item: Any) -> Any:
    return item.get("sourceToolUseID") if isinstance(item, dict) else None


def _picture(item: Any) -> Iterator[Blob]:
    """The copy of an image that a result line carries."""
    copy = item.get("toolUseResult") if isinstance(item, dict) else None
    picture = copy.get("file") if isinstance(copy, dict) else None
    if isinstance(picture, dict) and isinstance(picture.get("base64"), str):
        media = _text(picture.get("type")) or "application/octet-stream"
        yield Blob(_PICTURE, media, picture["base64"])


def _meta_facts(item: dict[str, Any]) -> Facts:
    return Facts(
        "meta",
        instruction=typed(_queued(item)),
        branch=_branch(item),
        boundary=item.get("type") == "system" and item.get("subtype") == "compact_boundary",
        cost=_cost(item),
        at=moment(item.get("timestamp")),
        session=_session(item),
        cwd=_text(item.get("cwd")),
        git_branch=_text(item.get("gitBranch")),
        model=_model(item.get("model")),
        harness=_harness(item.get("version") or item.get("claude_code_version")),
    )


def _queued(item: dict[str, Any]) -> tuple[str, ...]:
    """What a person typed while the model was at work; the harness hands it over as an attachment."""
    attachment = item.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command" or not _person(item):
        return ()
    if attachment.get("commandMode", "prompt") != "prompt" or attachment.get("isMeta") is True:
        return ()
    return (blocks.joined_text(attachment.get("prompt")),)


def _cost(item: dict[str, Any]) -> float | None:
    cost = item.get("total_cost_usd")
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None


def _person(item: dict[str, Any]) -> bool:
    """True for a line whose text a person may have typed."""
    origin = item.get("origin")
    if isinstance(origin, dict) and origin.get("kind") not in ("human", "cli", None):
        return False
    hidden = item.get("isMeta") or item.get("isCompactSummary") or item.get("isVisibleInTranscriptOnly")
    return not hidden and not item.get("isSynthetic") and _branch(item) is None


def _branch(item: dict[str, Any]) -> str | None:
    if item.get("isSidechain") is True:
        return _text(item.get("agentId")) or INLINE
    return _text(item.get("parent_tool_use_id"))


def _session(item: dict[str, Any]) -> str | None:
    return _text(item.get("sessionId")) or _text(item.get("session_id"))


def _model(value: Any) -> str | None:
    return None if value == "<synthetic>" else _text(value)


def _harness(version: Any) -> str | None:
    return f"claude-code {version}" if isinstance(version, str) and version else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _id_or_unknown(item: Any, path: Path) -> bool:
    return item is None or sealed.is_id(at(item, path))


def _with_content(item: Any, content: Any) -> Any:
    return item if content is at(item, _CONTENT) else put(item, _CONTENT, content)
