"""Create a record under its number: the commit point, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from archiver import layout, newest, rollback
from archiver.errors import BundleTooOldError
from archiver.rollback import Numbered

if TYPE_CHECKING:
    from archiver.setup import Setup

MAX_AGE_OF_BUNDLE: Final = 24 * 3600
"""Seconds between putting a bundle and the record that commits it; later, a sweeper may call it an orphan."""


def create(record: Numbered, sha256: str, sealed: bytes, setup: Setup) -> tuple[str, ...]:
    """Create the sealed record of which `sha256` is the digest of the body, if its number is free.

    `AlreadyExistsError` if it is taken, `RolledBackError` if the witness has seen a record there that the
    store has lost. Then has the witness remember it and leaves the hint for the list of the newest runs; what
    of that cannot be done is returned as a warning.
    """
    rollback.refuse_used(record, setup)
    setup.store.create(layout.record_name(record.run, record.seq), [sealed], retention="record")
    return follow_up(record, sha256, setup)


def follow_up(record: Numbered, sha256: str, setup: Setup) -> tuple[str, ...]:
    """What is done once a record is in the store; may be done again."""
    return (*rollback.remember(record, sha256, setup), *newest.leave_hint(record, setup))


def refuse_old(record: Numbered, age_of_bundle: float) -> None:
    """`BundleTooOldError` if a sweeper could have removed the bundle before the record commits it."""
    if age_of_bundle > MAX_AGE_OF_BUNDLE:
        raise BundleTooOldError(
            f"the bundle of checkpoint {record.seq} of run {record.run} was put {age_of_bundle:.0f} s ago; "
            f"a record may follow within {MAX_AGE_OF_BUNDLE} s",
            remedy="archive the run again",
        )
