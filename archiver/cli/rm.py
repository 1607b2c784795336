"""`archiver rm`."""

from __future__ import annotations


def rm() -> None:
    """Remove the bundles of a run."""
    raise NotImplementedError
