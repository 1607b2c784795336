"""The sessions of Codex that were started in a folder, and what the first line of each says.

Codex keeps them by date, whatever folder they were started in; the first line names that, and the session.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.config.paths import lookup
from archiver.errors import InputNotFoundError
from archiver.sources import places
from archiver.transcripts.places import at

_LONGEST_HEAD: Final = 1 << 20
"""Bytes of a first line, which holds the instructions of the model as well."""

_PARENTS: Final = (
    ("source", "subagent", "thread_spawn", "parent_thread_id"),
    ("parent_thread_id",),
    ("session_id",),
    ("forked_from_id",),
)
"""Where a sub-agent's head names the session it works for, by version."""


def newest_rollout(folders: Collection[str], since: int) -> Path | None:
    """The newest session of one of `folders` that was written after `since` (ns); sub-agents' are none."""
    found = sorted(_rollouts(places.codex_sessions(), since), reverse=True)
    return next((path for _, _, path in found if _started_in(path) in folders), None)


def _rollouts(root: Path, since: int) -> Iterator[tuple[int, str, Path]]:
    """When each session was written last, its name and its path."""
    for year in _numbered(root):
        for month in _numbered(year):
            for day in _numbered(month):
                for path in _listing(day):
                    if places.is_rollout(path.name):
                        status = lookup(path)
                        if status is not None and stat.S_ISREG(status.st_mode) and status.st_mtime_ns > since:
                            yield status.st_mtime_ns, path.name, path


def _numbered(folder: Path) -> list[Path]:
    return [path for path in _listing(folder) if path.name.isdigit()]


def _listing(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputNotFoundError(
            f"{folder}, where Codex keeps its sessions, cannot be read: {error.strerror}",
            remedy="name a transcript: `archiver archive PATH`",
        ) from error


def _started_in(path: Path) -> str | None:
    payload = head(path)
    folder = payload.get("cwd")
    return folder if isinstance(folder, str) and not is_side(payload) else None


def is_side(payload: Mapping[str, Any]) -> bool:
    """Whether a session's head is that of a sub-agent."""
    source = payload.get("source")
    return payload.get("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source)


def own_id(payload: Mapping[str, Any]) -> str | None:
    """The id of the session that a head is of."""
    return _text(payload.get("id"))


def parent_id(payload: Mapping[str, Any]) -> str | None:
    """The session that a sub-agent's session works for; None for one that is no sub-agent's."""
    if not is_side(payload):
        return None
    stated = (_text(at(payload, path)) for path in _PARENTS)
    return next((one for one in stated if one is not None and one != own_id(payload)), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def head(path: Path) -> dict[str, Any]:
    """What the first line of a session states of it; empty where it states nothing, or cannot be read."""
    try:
        with path.open("rb") as file:
            line = jsonio.loads(file.readline(_LONGEST_HEAD))
    except (OSError, ValueError):
        return {}
    payload = line.get("payload") if isinstance(line, dict) and line.get("type") == "session_meta" else None
    return payload if isinstance(payload, dict) else {}
