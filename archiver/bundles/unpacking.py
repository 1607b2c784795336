"""Unpack a bundle: the one that a record signed whole, and of its bases what its table takes from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.bundles import presence
from archiver.bundles.alone import Chained, Fetched, alone
from archiver.bundles.gathering import Choose, Gathering
from archiver.bundles.standing import Standing
from archiver.model.record import Record
from archiver.progress import Progress

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup


def fetch(record: Record, setup: Setup, into: Path, progress: Progress, known: Iterable[Record]) -> Manifest:
    """The manifest of what `unpack` unpacks."""
    return unpack(record, setup, into, progress, known).manifest


def fetch_own(record: Record, setup: Setup, into: Path, progress: Progress, standing: Standing) -> Manifest:
    """Unpack what lies in this bundle itself, whatever it is based on; raises as `unpack` does.

    `standing` has what was found of its bases, for a bundle that cannot be read without a text of theirs.
    """
    into.mkdir(mode=0o700)
    chained = Chained(standing.lender(record), standing.ends(record))
    return alone(record, setup, into, progress, chained).manifest


def unpack(
    record: Record,
    setup: Setup,
    into: Path,
    progress: Progress,
    known: Iterable[Record],
    *,
    choose: Choose | None = None,
    then: Sequence[Choose] = (),
) -> Fetched:
    """Unpack the bundle into the new private folder `into`, and prove that it is the one the record signed.

    `known` are verified records of the run, among them those of its bases. `choose` picks members: then only
    as much is read as these need, by ranges where that pays. Each of `then` picks more, once
    what was picked before it lies in `into`.

    The digest of the sealed payload is compared first: nothing of a bundle that nobody signed is opened, let
    alone unpacked. Of a part it is the tags of its chunks and the digests of its manifest and members. From
    a store over a network it is first copied beside `into`, in a folder that must be private. Before anything
    is unpacked the audit line is written. Raises `AuditError` where it cannot be, `BundleMissingError`,
    `DigestMismatchError` and what opening and unpacking raise.
    """
    bases = presence.bases_of(record, known)
    into.mkdir(mode=0o700)
    if choose is None and not bases:
        return alone(record, setup, into, progress)
    with Gathering(record, bases, setup, into, progress) as gathering:
        return gathering.all() if choose is None else gathering.chosen(choose, then)
