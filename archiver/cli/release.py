"""`archiver release`."""

from __future__ import annotations


def release() -> None:
    """End the hold of a run."""
    raise NotImplementedError
