"""`archiver expire`."""

from __future__ import annotations


def expire() -> None:
    """Remove what has expired from a folder."""
    raise NotImplementedError
