"""The event that a harness tells a hook, as JSON of unknown origin."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.errors import ArchiverError, InputNotFoundError, RefusedError, UsageError
from archiver.hooks.calling import MAX_INPUT
from archiver.hooks.settings_file import config_folder

FINAL: Final = "SessionEnd"
UNHURRIED: Final = ("Stop", "SubagentStop")
"""Events that come with every turn: what they would save may wait for the next one."""
_KNOWN: Final = (*UNHURRIED, "PreCompact", FINAL)
_MAX_PATH: Final = 4096


class NothingThereError(InputNotFoundError):
    """The session has no file."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to which session, and when (seconds since the epoch)."""

    name: str
    transcript: Path
    """The file of the session, absolute and without links."""
    at: float

    @property
    def final(self) -> bool:
        return self.name == FINAL

    @property
    def unhurried(self) -> bool:
        return self.name in UNHURRIED


def read(data: bytes, at: float) -> Event:
    """The event; raises an `ArchiverError` that repeats nothing of what was said but names of fields."""
    if len(data) > MAX_INPUT:
        raise UsageError(f"the event has more than {MAX_INPUT} bytes")
    try:
        value: Any = jsonio.loads(data)
    except (ArchiverError, ValueError, RecursionError) as error:
        raise UsageError("the event is not JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the event is no JSON object")
    name = value.get("hook_event_name")
    if name not in _KNOWN:
        raise UsageError(f"hook_event_name is none of {', '.join(_KNOWN)}")
    return Event(name, _transcript(value.get("transcript_path")), at)


def said(data: bytes) -> tuple[str | None, str | None]:
    """Name and path of an event that cannot be read, as far as there are any; of unknown origin, and cut.

    Raises as `jsonio.loads`.
    """
    value: Any = jsonio.loads(data) if len(data) <= MAX_INPUT else None
    if not isinstance(value, dict):
        return None, None
    name, path = value.get("hook_event_name"), value.get("transcript_path")
    known = name if isinstance(name, str) and name in _KNOWN else None
    return known, path[:_MAX_PATH] if isinstance(path, str) else None


def _transcript(path: Any) -> Path:
    """The session's file: below a folder of Claude Code's projects, or this user's own."""
    if not isinstance(path, str) or not 0 < len(path) <= _MAX_PATH or "\0" in path:
        raise UsageError("transcript_path is no path")
    named = Path(os.path.expanduser(path)) if path.startswith("~/") else Path(path)  # noqa: PTH111
    if not named.is_absolute():
        raise UsageError("transcript_path is not absolute")
    try:
        real = named.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError, ValueError) as error:
        raise NothingThereError("there is no file at transcript_path") from error
    if not stat.S_ISREG(status.st_mode) or real.suffix != ".jsonl":
        raise RefusedError("transcript_path is no file of a session")
    if status.st_uid != os.geteuid() and not real.is_relative_to(_projects()):
        raise RefusedError("the file at transcript_path is another user's")
    return real


def _projects() -> Path:
    return (config_folder() / "projects").resolve()
