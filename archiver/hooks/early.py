"""What a call needs before anything of the archiver is loaded: few at work at once, and a last word."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Final

AT_WORK: Final = 4
"""Processes at a time that have more than an interpreter in memory; the others wait for their turn."""
_PATIENCE: Final = 600.0
"""Seconds after which a call that still waits gives up: the next event, or a sweep, saves as much."""
_STEP: Final = 0.2


def state() -> str:
    """`state_home()`, which needs the settings to be loaded; pathlib would be one more module to load."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118 - as said above
    return os.path.join(base, "checkpoint-archiver")  # noqa: PTH118 - likewise


def wait_for_turn(patience: float = _PATIENCE) -> int | None:
    """A handle that means a turn for as long as it is open; None where there was none in time."""
    folder = state()
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    until = time.monotonic() + patience
    while True:
        for number in range(AT_WORK):
            name = f"{folder}/hooks.turn-{number}"
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
            else:
                return handle
        if time.monotonic() >= until:
            return None
        time.sleep(_STEP)


def last_words(kind: str, message: str) -> None:
    """A line for the log of a call whose own way to it could not be loaded; nothing where that fails too."""
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "event": "failed",
        "run": None,
        "source": "claude-code",
        "path": None,
        "hook": None,
        "error": kind,
        "message": message,
        "remedy": "run `archiver doctor`; if that fails as well, install the program again",
    }
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        os.makedirs(state(), mode=0o700, exist_ok=True)  # noqa: PTH103
        handle = os.open(f"{state()}/hooks.jsonl", flags, 0o600)
        os.write(handle, json.dumps(line).encode("ascii") + b"\n")
        os.close(handle)
    except OSError:
        return
