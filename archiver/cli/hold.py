"""`archiver hold`."""

from __future__ import annotations


def hold() -> None:
    """Keep a run without end."""
    raise NotImplementedError
