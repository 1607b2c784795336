"""What a harness calls: it is answered at once, and the work goes on in a process of its own.

Nothing is imported here that takes long: the harness waits for this.
"""

from __future__ import annotations

import os
import select
import time
from typing import Final

from archiver.hooks.early import last_words, wait_for_turn

MAX_INPUT: Final = 8 << 20
"""Bytes of an event; one that has more is not an event."""
_PATIENCE: Final = 0.7
"""Seconds for what is said on standard input; a harness that ends gives hooks 1.5 seconds for everything."""
_SLICE: Final = 1 << 16
_NICE: Final = 10
_MOST_FILES: Final = 1 << 20


def call(arguments: list[str]) -> int:
    """Take the event from standard input and go; whatever happens the answer is 0, without a word.

    Any other code is a word to the harness: 2 would keep it from ending its turn.
    """
    at = time.time()
    try:
        data = _event()
        if _detached():
            return 0
    except BaseException as error:  # also Ctrl-C: nothing that happens here is the business of the harness
        last_words(type(error).__name__, "the call could not be taken")
        return 0
    try:
        _work(arguments, data, at)
    finally:
        os._exit(0)  # nothing of the program that was called must run twice


def _work(arguments: list[str], data: bytes, at: float) -> None:
    try:
        if wait_for_turn() is None:
            last_words("TimeoutError", "too many calls were at work before this one")
            return
        from archiver.hooks.work import work
    except BaseException as error:  # of a program that is just being replaced, or is damaged
        last_words(type(error).__name__, "the work could not be begun")
        return
    work(arguments, data, at)


def _event() -> bytes:
    """Standard input as far as it comes in time, one byte more than an event may have at most."""
    taken = bytearray()
    until = time.monotonic() + _PATIENCE
    while len(taken) <= MAX_INPUT:
        try:
            ready, _, _ = select.select([0], [], [], max(0.0, until - time.monotonic()))
            data = os.read(0, _SLICE) if ready else b""
        except OSError:  # no standard input at all
            break
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
        os.closerange(3, _MOST_FILES)  # whatever limit there is now: another one may have been in force
        os.nice(_NICE)
    except OSError:
        os._exit(0)
    return False
