"""The files of one transcript: what the caller named, and the sub-agent files beside a Claude Code session.

<folder>/<session>.jsonl                        the session
<folder>/<session>/subagents/agent-<id>.jsonl   its sub-agents, since version 2.1.33
<folder>/agent-<id>.jsonl                       its sub-agents before; the session id is inside
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from archiver.errors import InputNotFoundError, UsageError
from archiver.transcripts import get_dialect, sniff
from archiver.transcripts.detect import CLAUDE_CODE, CODEX, of_lines
from archiver.transcripts.names import safe_name, shown, unique
from archiver.transcripts.source import FileSource

MAX_FILES: Final = 10_000
_LISTED: Final = 20
_GLANCE: Final = 1 << 16
"""Bytes that mostly tell what a file is; a folder may hold thousands of them."""
_FOLDER: Final = "subagents"
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""Ids that may name a folder; they come out of the file."""


@dataclass(frozen=True, slots=True)
class Found:
    """One file of a transcript: its name as a part, and where it lies."""

    name: str
    source: FileSource


def gather(paths: Sequence[Path]) -> list[Found]:
    """The files of the transcript that `paths` name, the main one first.

    A folder stands for the one session in it, of Claude Code or Codex; `UsageError` for none or several.
    """
    if not paths:
        raise UsageError("no transcript was named", remedy="name a transcript file or a session's folder")
    found = [one for path in paths for one in _one_path(path)]
    if len(found) > MAX_FILES:
        raise UsageError(f"{len(found)} files are too many for one transcript", remedy="name fewer files")
    names = unique(one.name for one in found)
    return [Found(name, one.source) for name, one in zip(names, found, strict=True)]


def _one_path(path: Path) -> list[Found]:
    if _is_folder(path):
        path = _only_session(path)
    main = Found(safe_name(path.name), FileSource.of(path))
    sessions = session_ids(main.source)
    if sessions is None:
        return [main]
    return [main, *_agents(path, sessions)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _only_session(folder: Path) -> Path:
    sessions = [
        path
        for path in _listing(folder, lambda name: name.endswith(".jsonl") and not name.startswith("agent-"))
        if _is_session(path)
    ]
    if len(sessions) == 1:
        return sessions[0]
    if not sessions:
        raise UsageError(
            f"{shown(folder)} holds no Claude Code session and none of Codex",
            remedy="name the transcript's file",
        )
    listed = ", ".join(shown(path.name) for path in sessions[:_LISTED])
    more = f" and {len(sessions) - _LISTED} more" if len(sessions) > _LISTED else ""
    raise UsageError(
        f"{shown(folder)} holds {len(sessions)} sessions: {listed}{more}", remedy="name one of them"
    )


def _is_session(path: Path) -> bool:
    try:
        return _dialect_of(FileSource.of(path, follow=False))[0] in (CLAUDE_CODE, CODEX)
    except InputNotFoundError:  # a link, a pipe or a folder of that name is nobody's session
        return False


def session_ids(source: FileSource) -> set[str] | None:
    """The session ids that the first lines state; None when it is not a Claude Code file."""
    name, values = _dialect_of(source)
    if name != CLAUDE_CODE:
        return None
    dialect = get_dialect(CLAUDE_CODE)
    return {session for value in values if (session := dialect.facts(value).session)}


def _dialect_of(source: FileSource) -> tuple[str, list[Any]]:
    """The dialect of the first lines, and those."""
    values = sniff.first_lines(source, _GLANCE) or sniff.first_lines(source) or []
    return of_lines(values), values


def _agents(session: Path, ids: set[str]) -> Iterator[Found]:
    """Sub-agent files of a session, by name; a session's sub-agent has none of its own."""
    if session.name.startswith("agent-"):
        return
    own = session.name.removesuffix(".jsonl")
    folders = {own, *filter(_SESSION_ID.fullmatch, ids)}
    for name in sorted(folders, key=os.fsencode):
        folder = session.parent / name / _FOLDER
        if folder.is_symlink() or folder.parent.is_symlink():
            continue  # whoever can put a link there must not decide what else is read
        for path in _agent_files(folder):
            yield Found(safe_name(f"{name}/{_FOLDER}/{path.name}"), FileSource.of(path, follow=False))
    for path in _agent_files(session.parent):
        source = FileSource.of(path, follow=False)
        if ids & (session_ids(source) or set()):
            yield Found(safe_name(path.name), source)


def _agent_files(folder: Path) -> list[Path]:
    return _listing(folder, lambda name: name.startswith("agent-") and name.endswith(".jsonl"))


def _listing(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """What lies in a folder under wanted names, sorted; of thousands of sessions few are wanted for one."""
    try:
        with os.scandir(folder) as entries:
            return sorted((Path(one.path) for one in entries if wanted(one.name)), key=os.fsencode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
    except OSError as error:
        raise InputNotFoundError(
            f"{shown(folder)} cannot be listed: {error.strerror}", remedy="check who may read it"
        ) from error
