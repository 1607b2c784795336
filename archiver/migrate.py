"""Old documents to the current schema: pure functions on a copy, one step a version.

Version 1 is the flat row that teams keep in a database table; version 2 is `model.Checkpoint`. Only the
newest version has a model; older ones are frozen JSON Schemas under `schemas/` and one function here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from archiver import jsonio
from archiver.errors import InvalidDocumentError, UnsupportedSchemaError
from archiver.model.base import utc_text
from archiver.model.checkpoint import SCHEMA_VERSION
from archiver.transcripts import detect

Document = dict[str, Any]
_CALLS = frozenset({"tool_calls", "function_call", "tool_call_id"})

V1_REQUIRED = frozenset({"task_id", "goal", "messages", "created_at", "updated_at"})
V1_OPTIONAL = frozenset({"schema_version", "run_id", "user_id", "completed_tasks", "iteration"})


def version_of(document: Any) -> int:
    """The schema version a document claims; a flat row without one is version 1."""
    if not isinstance(document, dict):
        raise InvalidDocumentError(f"a checkpoint is a JSON object, not {type(document).__name__}")
    version = document.get("schema_version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidDocumentError("schema_version is not a whole number from 1")
    return version


def migrate(document: Document) -> tuple[Document, tuple[str, ...]]:
    """A copy of the document in the current version, and the names of the steps taken.

    Raises `UnsupportedSchemaError` for a newer version and `InvalidDocumentError` for a row that is not one.
    """
    version = version_of(document)
    if version > SCHEMA_VERSION:
        raise UnsupportedSchemaError(
            f"this checkpoint has schema version {version}; this release reads up to {SCHEMA_VERSION}",
            remedy=f"install a checkpoint-archiver release that reads schema version {version}",
        )
    try:
        current = deepcopy(document)
    except RecursionError:
        raise InvalidDocumentError("the document is nested too deeply") from None
    steps = []
    while version < SCHEMA_VERSION:
        step = _STEPS[version]
        current = step(current)
        steps.append(step.__name__)
        version += 1
    return current, tuple(steps)


def v1_to_v2(row: Document) -> Document:
    """A flat table row (task_id, goal, messages, completed_tasks, iteration and two times) as version 2."""
    _check_columns(row)
    messages = _json_list(row["messages"], "messages")
    updated = _moment(row["updated_at"], "updated_at")
    iteration = _count(row.get("iteration", 0), "iteration")
    task = _text(row["task_id"], "task_id")
    return {
        "schema_version": 2,
        "run_id": _text(row.get("run_id") or task, "run_id"),
        "task_id": task,
        "user_id": None if row.get("user_id") is None else _text(row["user_id"], "user_id"),
        "objective": _text(row["goal"], "goal"),
        "iteration": iteration,
        "turn": sum(1 for message in messages if _role(message) == "assistant"),
        "outcome": "running",
        "created_at": _moment(row["created_at"], "created_at"),
        "checkpoint_at": updated,
        "spend": {"iterations": iteration},
        "results": [_result(task) for task in _json_list(row.get("completed_tasks"), "completed_tasks")],
        "transcript": _transcript(messages),
    }


_STEPS: dict[int, Callable[[Document], Document]] = {1: v1_to_v2}


def _check_columns(row: Document) -> None:
    if missing := sorted(V1_REQUIRED - row.keys()):
        raise InvalidDocumentError(
            f"a version 1 row needs {', '.join(missing)}",
            remedy="name the columns as `archiver schema v1/checkpoint` does",
        )
    if unknown := sorted(row.keys() - V1_REQUIRED - V1_OPTIONAL):
        raise InvalidDocumentError(
            f"a version 1 row has no column {', '.join(map(_shown, unknown))}",
            remedy="leave the column out of the export, so that nothing is lost in silence",
        )


def _shown(column: str) -> str:
    """A name that may stand in a message; a value that slipped into its place may not."""
    return repr(column) if re.fullmatch(r"[A-Za-z_]{1,40}", column) else "with an odd name"


def _text(value: Any, column: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # an id column is often a number
    if not isinstance(value, str):
        raise InvalidDocumentError(f"{column} is {type(value).__name__}, not text")
    return value


def _count(value: Any, column: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidDocumentError(f"{column} is not a whole number from 0")
    return value


def _json_list(value: Any, column: str) -> list[Any]:
    """A JSON column arrives as a list or, from a text column, as its JSON text."""
    if value is None:
        return []
    if isinstance(value, str):
        try:
            value = jsonio.loads(value)
        except ValueError as error:
            raise InvalidDocumentError(f"{column} is text that is not JSON: {error}") from error
    if not isinstance(value, list):
        raise InvalidDocumentError(f"{column} is {type(value).__name__}, not a list")
    return value


def _moment(value: Any, column: str) -> str:
    """ISO 8601 text (without a zone: UTC) or seconds since 1970 become RFC 3339 text in UTC."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return utc_text(datetime.fromtimestamp(value, UTC))
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InvalidDocumentError(f"{column} is not a time: ISO 8601 text or seconds since 1970") from error
    return utc_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _result(task: Any) -> Document:
    if isinstance(task, str):
        return {"key": task}
    if isinstance(task, dict):
        for name in ("key", "id", "name"):
            if isinstance(task.get(name), str):
                return {"key": task[name], "output": task}
    return {"key": jsonio.canonical(task).decode(), "output": task}


def _transcript(messages: list[Any]) -> Document:
    """Messages with calls are of the dialect they show; others of only user and assistant are Anthropic's.

    Any other list is kept as found.
    """
    dialect = detect.OPAQUE
    if any(isinstance(message, dict) and not _CALLS.isdisjoint(message) for message in messages):
        dialect = detect.of_messages(messages, None)
    if dialect == detect.OPAQUE and messages and all(map(_plain, messages)):
        dialect = detect.ANTHROPIC
    return {"dialect": dialect, "parts": [{"name": "messages.jsonl", "items": messages}]}


def _plain(message: Any) -> bool:
    return _role(message) in ("user", "assistant") and isinstance(message.get("content"), str | list)
