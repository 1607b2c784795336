"""One save of a session, and its line in the log."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, sources
from archiver.hooks import log
from archiver.hooks.event import Event
from archiver.model.checkpoint import Outcome
from archiver.setup import open_setup
from archiver.sources import Found, OpenFiles
from archiver.sources.ending import ending
from archiver.sweep.saving import Saved, save

if TYPE_CHECKING:
    from archiver.config import Settings

_STILL: Final = 0.3
"""Seconds without a change after which the harness is believed to have written what it had to."""
_PATIENCE: Final = 3.0
_AHEAD: Final = timedelta(days=1)


def save_session(settings: Settings, event: Event) -> None:
    """Save what the file of the session holds now; raises what keeps it from being tried."""
    _settled(event.transcript)
    found = sources.of_session(event.transcript)
    setup = open_setup(settings, "write", interactive=False)
    setup.session.command = "archiver hook claude-code run"
    try:
        _tell(event, save(found, _outcome(event, found), setup))
    finally:
        audit.finish(setup)


def _tell(event: Event, saved: Saved) -> None:
    error = saved.error
    log.write(
        event.name,
        str(event.transcript),
        saved.what,
        run=saved.run,
        seq=saved.seq,
        bytes=saved.size,
        seconds=round(saved.seconds, 2),
        error=type(error).__name__ if error else None,
        message=str(error) if error else None,
        remedy=error.remedy or log.USUAL if error else None,
    )


def _outcome(event: Event, found: Found) -> Outcome:
    """The session goes on until the harness says that it is over; then the transcript tells how."""
    if not event.final:
        return "running"
    over = max(found.written, datetime.now(UTC)) + found.idle + _AHEAD
    return ending(found, over, OpenFiles()).outcome or "crashed"


def _settled(path: Path) -> None:
    """Wait until the file stands still: the harness calls before its last lines are written."""
    until = time.monotonic() + _PATIENCE
    seen = path.stat()
    while time.monotonic() < until:
        time.sleep(_STILL)
        before, seen = seen, path.stat()
        if (seen.st_size, seen.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
            return
