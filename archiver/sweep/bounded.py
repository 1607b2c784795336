"""What is looked for in a folder that may hang, such as a mount whose server is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from archiver.errors import InputNotFoundError

Item = TypeVar("Item")

PATIENCE: Final = 600.0
"""Seconds without any answer; a folder of very many files may take minutes to list."""


def bounded(items: Iterator[Item], seconds: float) -> Iterator[Item]:
    """The items as they come, and `InputNotFoundError` where none comes for so long; raises what they raise.

    Who hangs is left behind: nobody can end a call that the system does not come back from.
    """
    came: SimpleQueue[tuple[Item | None, BaseException | None] | None] = SimpleQueue()
    left = threading.Event()

    def look() -> None:
        try:
            for item in items:
                if left.is_set():
                    return
                came.put((item, None))
        except BaseException as error:
            came.put((None, error))
        came.put(None)

    threading.Thread(target=look, name="archiver-source", daemon=True).start()
    try:
        while (one := _next(came, seconds)) is not None:
            item, error = one
            if error is not None:
                raise error
            yield item  # type: ignore[misc]  # None only beside an error
    finally:
        left.set()


def _next(
    came: SimpleQueue[tuple[Item | None, BaseException | None] | None], seconds: float
) -> tuple[Item | None, BaseException | None] | None:
    try:
        return came.get(timeout=seconds)
    except Empty:
        raise InputNotFoundError(
            f"nothing has come from it for {seconds:.0f} seconds",
            remedy="look whether it lies on a mount that hangs; other sources were swept",
        ) from None
