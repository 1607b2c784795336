"""Where runs lie on disk, which of them are complete, and how each ended. Nothing is changed there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from archiver.sources import places
from archiver.sources.claude_code import ClaudeCode
from archiver.sources.codex import Codex
from archiver.sources.folder import Folder
from archiver.sources.found import Ending, FileStamp, Found, Kind, Source, Unusable
from archiver.sources.messages import Messages
from archiver.sources.opened import OpenFiles
from archiver.sources.session import of_session

if TYPE_CHECKING:
    from archiver.config.settings import Settings
    from archiver.config.sweeping import SourceSettings

__all__ = ["Ending", "FileStamp", "Found", "OpenFiles", "Source", "Unusable", "configured", "of_session"]

Configured = ClaudeCode | Codex | Messages | Folder
_KINDS: Final[dict[Kind, type[Configured]]] = {
    "claude-code": ClaudeCode,
    "codex": Codex,
    "messages": Messages,
    "folder": Folder,
}


def configured(settings: Settings) -> tuple[Configured, ...]:
    """The sources of `[sweep]`; with none there: Claude Code and Codex, where they keep sessions."""
    sweep = settings.sweep
    if sweep.sources:
        return tuple(_source(one, sweep.idle) for one in sweep.sources)
    harnesses = (
        ClaudeCode("claude-code", places.claude_projects(), idle=sweep.idle, named=False),
        Codex("codex", places.codex_home(), idle=sweep.idle, named=False),
    )
    return tuple(place for place in harnesses if (gone := place.missing()) is None or gone.broken)


def _source(source: SourceSettings, idle: timedelta) -> Configured:
    path = source.path or (places.codex_home() if source.kind == "codex" else places.claude_projects())
    return _KINDS[source.kind](
        source.kind, path, source.match, source.idle or idle, source.task, named=source.path is not None
    )
