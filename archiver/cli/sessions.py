"""Which transcript is meant when none is named: the newest Claude Code session of this folder.

Claude Code keeps the sessions of a folder in `<configuration>/projects/<slug>/<session>.jsonl`; the slug is
the folder's path with every character but ASCII letters and digits as `-`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from archiver.errors import InputNotFoundError

_MAX_SLUG = 200
"""Longer slugs are cut there and followed by `-` and a hash."""


def newest_session(folder: Path) -> Path:
    """The newest session file of Claude Code for `folder`; `InputNotFoundError` when there is none."""
    places = list(_places(folder))
    sessions = [path for place in places for path in place.glob("*.jsonl") if _is_session(path)]
    if not sessions:
        raise InputNotFoundError(
            f"there is no Claude Code session of {folder} (looked in {', '.join(map(str, places))})",
            remedy="name a transcript: `archiver archive PATH`",
        )
    return max(sessions, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _is_session(path: Path) -> bool:
    return not path.name.startswith("agent-") and path.is_file() and path.stat().st_size > 0


def _places(folder: Path) -> Iterator[Path]:
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    projects = (Path(configured).expanduser() if configured else Path.home() / ".claude") / "projects"
    logical = os.environ.get("PWD", "")
    seen = {str(folder): None, str(folder.resolve()): None}
    if logical.startswith("/") and Path(logical).resolve() == folder.resolve():
        seen[logical] = None
    for slug in dict.fromkeys(re.sub(r"[^A-Za-z0-9]", "-", path) for path in seen):
        if len(slug) <= _MAX_SLUG:
            yield projects / slug
        else:
            yield from projects.glob(f"{slug[:_MAX_SLUG]}-*")
