"""`archiver erase`."""

from __future__ import annotations


def erase() -> None:
    """Erase a run, every version of it."""
    raise NotImplementedError
