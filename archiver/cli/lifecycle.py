"""`archiver lifecycle show | check | apply`."""

from __future__ import annotations


def lifecycle_show() -> None:
    """Show the rules of the bucket."""
    raise NotImplementedError


def lifecycle_check() -> None:
    """Say what the rules of the bucket would delete, and when."""
    raise NotImplementedError


def lifecycle_apply() -> None:
    """Put the rules that the classes need into the bucket."""
    raise NotImplementedError
