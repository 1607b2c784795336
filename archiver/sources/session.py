"""One session or transcript that is named by its file."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from archiver.sources import places, rollouts
from archiver.sources.agents import alone, session_of
from archiver.sources.found import IDLE, FileStamp, Found, Kind, newest
from archiver.transcripts.detect import CLAUDE_CODE, CODEX, of_lines
from archiver.transcripts.sessions import gather
from archiver.transcripts.sniff import first_lines
from archiver.transcripts.source import FileSource

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GLANCE: Final = 1 << 16


def files_of(paths: tuple[Path, ...]) -> tuple[FileStamp, ...]:
    """All files of the transcript that these are the main ones of; raises as `transcripts.reader.read`."""
    return tuple(
        FileStamp(one.source.path, one.source.size, one.source.mtime_ns, one.source.inode, one.source.device)
        for one in gather(paths)
    )


def dialect_of(source: FileSource) -> str:
    """The dialect of a file of lines, by the first ones; `opaque` for what is no session of a harness."""
    return of_lines(first_lines(source, _GLANCE) or first_lines(source) or [])


def named_id(path: Path) -> str | None:
    """The id of a session of Claude Code by its file's name, where that is one.

    A session that goes on from another begins with that one's lines, so its name is what tells them apart.
    """
    return path.stem if _ID.fullmatch(path.stem) else None


def said_of(path: Path, dialect: str) -> dict[str, Any]:
    """What the file of a session says of its run."""
    if dialect == CLAUDE_CODE:
        return alone(session_of(path), path) if places.is_agent(path.name) else {"run_id": named_id(path)}
    if dialect == CODEX:
        head = rollouts.head(path)
        return {"run_id": rollouts.own_id(head), "task": rollouts.parent_id(head)}
    return {}


def of_session(path: Path, idle: timedelta = IDLE) -> Found:
    """One session by its file, with its sub-agents; `InputNotFoundError` if no regular file lies there."""
    dialect = dialect_of(FileSource.of(path))
    files = files_of((path,))
    kinds: dict[str, Kind] = {CLAUDE_CODE: "claude-code", CODEX: "codex"}
    kind = kinds.get(dialect, "messages")
    return Found(kind, str(path), (path,), files, newest(files), idle=idle, **said_of(path, dialect))
