"""Which run the code that asks is in: the one that was opened around it."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from archiver.errors import UsageError

if TYPE_CHECKING:
    from archiver.loop.face import Run

_current: ContextVar[Run | None] = ContextVar("archiver_run", default=None)
_open: list[tuple[int, Run]] = []
"""Runs that are open in this process, with its id, which a child of a fork does not have."""
_lock = threading.Lock()


def enter(run: Run) -> Token[Run | None]:
    """From now on the code that follows is in this run; give what is returned to `leave`."""
    with _lock:
        _open.append((os.getpid(), run))
    return _current.set(run)


def leave(run: Run, token: Token[Run | None]) -> None:
    """The code that follows is where it was before `enter`."""
    with _lock:
        _open[:] = [one for one in _open if one[1] is not run]
    try:
        _current.reset(token)
    except ValueError:
        _current.set(None)  # left in another context than it was entered in, as in a task of its own


def current_run() -> Run:
    """The run around the caller; in a thread that knows of none, the only one that is open in the process.

    `UsageError` where there is none, or where it could be several.
    """
    here = os.getpid()
    with _lock:
        open_here = [one for process, one in _open if process == here]
    found = _current.get()
    if found is not None and found in open_here:
        return found
    if len(open_here) == 1:
        return open_here[0]
    if not open_here:
        raise UsageError(
            "no run is open, so there is nothing that an effect could be recorded in",
            remedy="call it inside `with archiver.run(...)`",
        )
    raise UsageError(
        f"{len(open_here)} runs are open, and this thread is in none of them",
        remedy="start the thread with contextvars.copy_context().run, or use the `effect` of the run itself",
    )
