"""One process of a run that does effects, for tests that kill it.

    python effecting.py CONFIG OUT HOW

appends a line to OUT for each effect that is done. HOW says where it kills itself: at the `fence` of the
first one, or `between` the second one and its outcome.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from archiver.config import load
from archiver.ledger import Ledger, merged
from archiver.loop.effects import EffectBook
from archiver.redact import Redactor
from archiver.setup import Setup, open_setup

KEY = b"k" * 32


@cache
def redactor() -> Redactor:
    return Redactor.load(KEY)


def book_of(setup: Setup, *, fence: Callable[[], None] = lambda: None, **more: Any) -> EffectBook:
    """The book of run `r`, read from the store as a process that resumes it does."""
    ledger = Ledger(setup, "r", "t", redactor)
    effects = merged((), ledger.load())
    return EffectBook(ledger, effects, fence=fence, **more)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(config: str, out: str, how: str) -> None:
    book = book_of(open_setup(load(Path(config)), need="write"), fence=die if how == "fence" else int)
    for number in (1, 2):
        with book.effect("pay", key=f"invoice-{number}", arguments={"n": number}) as effect:
            with Path(out).open("a") as file:
                file.write(f"{number}\n")
            if how == "between" and number == 2:
                die()
            effect.confirm({"paid": number})


if __name__ == "__main__":
    main(*sys.argv[1:])
