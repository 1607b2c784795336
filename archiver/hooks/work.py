"""What is done about an event, in a process that nobody waits for: one save of the session."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, sources
from archiver.config import load
from archiver.config.homes import state_home
from archiver.errors import ArchiverError, UsageError
from archiver.hooks import event as events
from archiver.hooks import log, turns
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


def work(arguments: list[str], data: bytes, at: float) -> None:
    """Save the session of an event; what goes wrong is a line of the log, and raised is nothing."""
    name = session = "-"
    try:
        event = events.read(data, at)
        name, session = event.name, str(event.transcript)
        settings = load(_config(arguments))
        home = state_home() / "hooks"
        turns.Turns(home, event.transcript).take(event, settings.run.floor, partial(_save, settings))
        if event.final:
            turns.forget_old(home)
    except events.NothingThereError as error:  # a session in which nothing was said has no file
        log.write(name, session, "nothing", message=str(error))
    except Exception as error:  # there is nobody else to hear of it
        log.failed(name, session, error)


def _config(arguments: list[str]) -> Path | None:
    """The file that the hook's command names."""
    match arguments:
        case []:
            return None
        case ["--config", file]:
            return Path(file)
        case [option] if option.startswith("--config="):
            return Path(option.removeprefix("--config="))
    raise UsageError("the command of the hook has words that are not known", remedy="install the hooks again")


def _save(settings: Settings, event: Event) -> None:
    """One save, and its line in the log; an error of this one does not keep the next from being tried."""
    try:
        _settled(event.transcript)
        found = sources.of_session(event.transcript)
        setup = open_setup(settings, "write", interactive=False)
        setup.session.command = "archiver hook claude-code run"
        _tell(event, save(found, _outcome(event, found), setup))
        audit.finish(setup)
    except Exception as error:  # as above
        log.failed(event.name, str(event.transcript), error)


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
        remedy=error.remedy if isinstance(error, ArchiverError) else None,
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
