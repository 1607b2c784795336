"""`archiver sweep`."""

from __future__ import annotations


def sweep() -> None:
    """Archive completed runs."""
    raise NotImplementedError
