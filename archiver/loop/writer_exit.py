"""What is open when the program ends without closing it: closed then, within its patience."""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol


class Closable(Protocol):
    """A writer."""

    patience: float

    def hurry(self) -> None:
        """Try at once what waits for a better time."""

    def end(self, timeout: float) -> None:
        """Save what is queued within so many seconds; raises nothing."""


_open: dict[Closable, None] = {}
_lock = threading.Lock()
_watched_in = 0
"""The process that has a watcher: after a fork the child has none."""


def watch(writer: Closable) -> None:
    """Have it ended at the end of the program, unless `forget` comes before.

    Its threads are daemons, for a store that hangs must not keep a program from ending; so somebody has to
    wait for them, but not for ever: a thread that is no daemon, and that the interpreter therefore waits for.
    (`atexit` would be too late: no thread can be started any more by then.)
    """
    global _watched_in  # noqa: PLW0603 - one watcher a process
    with _lock:
        if _watched_in != os.getpid():
            _open.clear()
            _watched_in = os.getpid()
            threading.Thread(target=_wait, name="archiver-exit", daemon=False).start()
        _open[writer] = None


def forget(writer: Closable) -> None:
    """It is closed."""
    with _lock:
        _open.pop(writer, None)


def _wait() -> None:
    threading.main_thread().join()
    with _lock:
        writers = list(_open)
    for writer in writers:
        writer.hurry()
    started = time.monotonic()
    for writer in writers:
        writer.end(max(0.0, started + writer.patience - time.monotonic()))


def _after_fork() -> None:
    """Another thread may have held the lock when this child was made."""
    global _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)
