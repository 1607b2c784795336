"""Whose a sub-agent of Claude Code is, by the first lines of its file, and what it is called alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from archiver.errors import ArchiverError
from archiver.transcripts.sessions import session_ids
from archiver.transcripts.source import FileSource

_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SESSION: Final = re.compile(rb'"sessionId" ?: ?"([A-Za-z0-9_-]{1,100})"')
_HEAD: Final = 8 << 10
"""Bytes that nearly always hold the first line of a sub-agent, which names the session."""
_ORPHAN: Final = "a sub-agent whose session is gone"


def session_of(agent: Path) -> str | None:
    """The session that a sub-agent's file names."""
    try:
        source = FileSource.of(agent, follow=False)
        if (seen := _SESSION.search(source.head(_HEAD))) is not None:
            return os.fsdecode(seen[1])
    except ArchiverError:
        return None
    return min(ids_in(agent), default=None)


def ids_in(path: Path) -> set[str]:
    """The sessions that the first lines of a file name."""
    try:
        return session_ids(FileSource.of(path)) or set() if path.is_file() else set()
    except (ArchiverError, OSError):
        return set()


def alone(session: str | None, agent: Path) -> dict[str, str | None]:
    """What is said of a sub-agent that goes alone: it must not take the place of its session's run."""
    known = session is not None and _SAFE.fullmatch(agent.stem) is not None
    return {"run_id": f"{session}-{agent.stem}" if known else None, "task": session, "note": _ORPHAN}
