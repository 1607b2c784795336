"""The sessions of Codex that were started in a folder.

Codex keeps them all in `<CODEX_HOME>/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl`; the first
line of each says in which folder it was started.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.config.paths import absolute, home, lookup
from archiver.errors import InputNotFoundError

_LONGEST_HEAD: Final = 1 << 20
"""Bytes of a first line, which holds the instructions of the model as well."""


def place() -> Path:
    """Where Codex keeps its sessions."""
    configured = os.environ.get("CODEX_HOME")
    return (absolute(configured) if configured else home() / ".codex") / "sessions"


def newest_rollout(folders: Collection[str], since: int) -> Path | None:
    """The newest session of one of `folders` that was written after `since` (ns); sub-agents' are none."""
    found = sorted(_rollouts(place(), since), reverse=True)
    return next((path for _, _, path in found if _started_in(path) in folders), None)


def _rollouts(root: Path, since: int) -> Iterator[tuple[int, str, Path]]:
    """When each session was written last, its name and its path."""
    for year in _numbered(root):
        for month in _numbered(year):
            for day in _numbered(month):
                for path in _listing(day):
                    if path.name.startswith("rollout-") and path.name.endswith(".jsonl"):
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
    head = _head(path)
    payload = head.get("payload") if isinstance(head, dict) and head.get("type") == "session_meta" else None
    if not isinstance(payload, dict) or payload.get("thread_source") == "subagent":
        return None
    source, folder = payload.get("source"), payload.get("cwd")
    side = isinstance(source, dict) and "subagent" in source
    return folder if isinstance(folder, str) and not side else None


def _head(path: Path) -> Any:
    """The value of a file's first line; None where there is none to be read."""
    try:
        with path.open("rb") as file:
            return jsonio.loads(file.readline(_LONGEST_HEAD))
    except (OSError, ValueError):
        return None
