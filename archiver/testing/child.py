"""`python -m archiver.testing.child`: lives one life of an agent after another, each in a process of its own.

    stdin    one order a line, as JSON (`lives.Order`)
    stdout   how each ended, a line each

The library is loaded once and each life is a fork of that, so that a life costs no second of imports; the
module of the agent is imported anew each time. With the end of stdin the life that goes on is killed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import sys
import time
from typing import Any, Final

from archiver import jsonio

_LIBRARY: Final = (
    "archiver.loop.entry",
    "archiver.redact.secretfiles.forms",
    "archiver.testing.life",
    "archiver.testing.standing",
)
_GRACE: Final = 2.0
"""Seconds before the limit at which a life that hangs says where."""


def main() -> None:
    """Serve until stdin ends."""
    _load()
    woken, waker = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waker, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the harness, and its end ends this
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    while line := sys.stdin.buffer.readline():
        order = jsonio.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            os.close(woken)
            _live(order, waker)
            return  # the interpreter ends as that of any program does
        answers.write(jsonio.dumps(_until_dead(child, order, woken)).decode() + "\n")
        answers.flush()


def _load() -> None:
    """What every life needs, so that no life spends time on it: modules and compiled rules."""
    for name in _LIBRARY:
        importlib.import_module(name)
    from archiver.redact import Redactor, new_key

    Redactor.load(new_key())
    gc.freeze()  # a fork then shares what lies in memory, also when its own garbage is collected


def _live(order: dict[str, Any], waker: int) -> None:
    """In the fork: become the process that the order asks for, and live its life."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.close(waker)
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for handle, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(handle, standard)
    os.close(nothing)
    os.close(log)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    from archiver.testing.life import live

    live(order, grace=_GRACE)


def _until_dead(child: int, order: dict[str, Any], woken: int) -> dict[str, Any]:
    """Wait for the end of that process, or bring it about; all that it started ends with it."""
    begun = time.monotonic()
    limit, kill_after = order["timeout"], order["kill_after"]
    end = begun + (limit if kill_after is None else min(limit, kill_after))
    killed = False
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        left = end - time.monotonic()
        ready = select.select([0, woken], [], [], max(left, 0))[0]
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 512)
        if 0 in ready:
            _end(child)
            raise SystemExit(1)  # nobody is there any more
        if time.monotonic() >= end and not killed:
            killed = True
            os.kill(child, signal.SIGKILL)
            end += limit
    seconds = time.monotonic() - begun
    status = _end(child)
    return {"status": status, "seconds": seconds, "killed": killed and status == -signal.SIGKILL}


def _end(child: int) -> int:
    """Kill its process group, of which it is the leader until it is waited for; how it ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
