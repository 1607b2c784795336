"""Which transcript is meant when none is named: the newest session of this folder, of Claude Code or Codex.

Claude Code keeps the sessions of a folder in `<configuration>/projects/<slug>/<session>.jsonl`; the slug is
the folder's path with every character but ASCII letters and digits as `-`. See `rollouts` for Codex.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from archiver.config.paths import lookup
from archiver.errors import InputNotFoundError
from archiver.sources import places, rollouts

_MAX_SLUG = 200
"""Longer slugs are cut there and followed by `-` and a hash."""


def newest_session(folder: Path) -> Path:
    """The newest session file of Claude Code or Codex for `folder`; `InputNotFoundError` if there is none."""
    spellings = _spellings(folder)
    folders = list(_folders(spellings))
    written, _, session = max(
        (found for place in folders for found in _sessions(place)), default=(0, "", None)
    )
    newest = rollouts.newest_rollout(spellings, written) or session
    if newest is None:
        looked = ", ".join(map(str, (*folders, places.codex_sessions())))
        raise InputNotFoundError(
            f"there is no Claude Code session and no Codex session of {folder} (looked in {looked})",
            remedy="name a transcript: `archiver archive PATH`",
        )
    return newest


def _sessions(place: Path) -> Iterator[tuple[int, str, Path]]:
    """When each session of a folder was written last, its name and its path."""
    try:
        names = [path.name for path in place.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(place, error) from error
    for name in names:
        status = lookup(place / name) if places.is_session(name) else None
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_size > 0:
            yield status.st_mtime_ns, name, place / name


def _spellings(folder: Path) -> list[str]:
    """The paths by which a harness may know the folder."""
    seen = {str(folder): None, str(_real(folder)): None}
    logical = os.environ.get("PWD", "")
    if logical.startswith("/") and _real(Path(logical)) == _real(folder):
        seen[logical] = None
    return list(seen)


def _folders(spellings: list[str]) -> Iterator[Path]:
    projects = places.claude_projects()
    for slug in dict.fromkeys(re.sub(r"[^A-Za-z0-9]", "-", path) for path in spellings):
        if len(slug) <= _MAX_SLUG:
            yield projects / slug
        else:
            yield from _beginning(projects, f"{slug[:_MAX_SLUG]}-")


def _beginning(projects: Path, start: str) -> Iterator[Path]:
    try:
        yield from (path for path in projects.iterdir() if path.name.startswith(start))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(projects, error) from error


def _real(path: Path) -> Path:
    """The path without links, or as it is where a folder on the way cannot be looked at."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _unreadable(folder: Path, error: OSError) -> InputNotFoundError:
    return InputNotFoundError(
        f"{folder}, where Claude Code keeps its sessions, cannot be read: {error.strerror}",
        remedy="name a transcript: `archiver archive PATH`",
    )
