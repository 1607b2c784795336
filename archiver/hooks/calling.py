"""What a harness calls: it is answered at once, and the work goes on in a process of its own.

Nothing is imported here that takes long: the harness waits for this.
"""

from __future__ import annotations

import os
import select
import time
from typing import Final

MAX_INPUT: Final = 8 << 20
"""Bytes of an event; one that has more is not an event."""
_PATIENCE: Final = 0.7
"""Seconds for what is said on standard input; a harness that ends gives hooks 1.5 seconds for everything."""
_SLICE: Final = 1 << 16
_NICE: Final = 10


def call(arguments: list[str]) -> int:
    """Take the event from standard input and go; whatever happens the answer is 0, without a word.

    Any other code is a word to the harness: 2 would keep it from ending its turn.
    """
    at = time.time()
    try:
        data = _event()
        if _detached():
            return 0
    except Exception:  # nothing that happens here is the business of the harness
        return 0
    try:
        from archiver.hooks.work import work

        work(arguments, data, at)
    finally:
        os._exit(0)  # nothing of the program that was called must run twice


def _event() -> bytes:
    """Standard input as far as it comes in time, one byte more than an event may have at most."""
    taken = bytearray()
    until = time.monotonic() + _PATIENCE
    while len(taken) <= MAX_INPUT:
        ready, _, _ = select.select([0], [], [], max(0.0, until - time.monotonic()))
        data = os.read(0, _SLICE) if ready else b""
        if not data:
            break
        taken += data
    return bytes(taken)


def _detached() -> bool:
    """True in the process that was called, False in the one that goes on.

    That one has no terminal and no open file of the harness, is no child of it, keeps no folder busy, and is
    out of the way of whatever else runs.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return True
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
        os.nice(_NICE)
    except OSError:
        os._exit(0)
    return False
