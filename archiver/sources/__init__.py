"""Where runs lie on disk, which of them are complete, and how each ended. Nothing is changed there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from archiver.sources.found import Ending, FileStamp, Found, Source, Unusable
from archiver.sources.opened import OpenFiles

if TYPE_CHECKING:
    from archiver.config.settings import Settings

__all__ = ["Ending", "FileStamp", "Found", "OpenFiles", "Source", "Unusable", "configured", "of_session"]


def configured(settings: Settings) -> tuple[Source, ...]:
    """The sources of `[sweep]`; with none there: Claude Code and Codex, where they keep sessions."""
    raise NotImplementedError


def of_session(path: Path) -> Found:
    """One session by its file, with its sub-agents; `InputNotFoundError` if no regular file lies there."""
    raise NotImplementedError
