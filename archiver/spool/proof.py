"""Which record of a run is the newest as far as this machine can tell: the spool against the witness."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from archiver import age, rollback
from archiver.errors import ContainerError
from archiver.model.record import Record
from archiver.spool import disk
from archiver.spool.entry import Entry
from archiver.spool.signing import opened
from archiver.witness import Seen

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Proven:
    """The newest record of a run, and the newest that has a bundle in the spool, verified."""

    head: Record
    sha256: str
    checkpoint: Record | None


def prove(entries: list[Entry], run: str, setup: Setup) -> Proven | None:
    """None where the spool does not lead without a gap to or on from what the witness has seen.

    Raises what opening a record raises, and what the witness does.
    """
    if not entries or setup.witness is None or not _is_chain(entries):
        return None
    if not _continues(entries, rollback.look(run, setup).seen):
        return None
    bundles = [entry for entry in entries if entry.bundle is not None]
    checkpoint = opened(bundles[-1], setup) if bundles else None
    if checkpoint is not None and not _has_bundle(bundles[-1], checkpoint):
        return None
    head = checkpoint if bundles and bundles[-1] == entries[-1] and checkpoint else opened(entries[-1], setup)
    if head.previous != entries[-1].meta.previous:
        return None
    return Proven(head, entries[-1].sha256, checkpoint)


def _is_chain(entries: list[Entry]) -> bool:
    """Whether each follows the one before; the oldest may be kept for its bundle alone."""
    newest = [entry for entry in entries if not entry.delivered]
    kept = [entry for entry in entries if entry.delivered]
    chain = (*kept[-1:], *newest)
    return all(
        entry.seq == before.seq + 1 and entry.meta.previous in before.digests
        for before, entry in pairwise(chain)
    )


def _continues(entries: list[Entry], seen: Seen | None) -> bool:
    first, head = entries[0], entries[-1]
    if seen is None:
        return first.seq == 1 and not first.delivered
    if seen.seq > head.seq:
        return False
    at = {entry.seq: entry for entry in entries}
    if seen.seq in at:
        return at[seen.seq].sha256 == seen.sha256
    after = at.get(seen.seq + 1)
    return after is not None and after.meta.previous == seen.sha256


def _has_bundle(entry: Entry, record: Record) -> bool:
    bundle, path = record.bundle, entry.bundle
    if bundle is None or path is None:
        return False
    with disk.translated(path):
        try:
            with path.open("rb") as file:
                return age.payload_digest(file) == (bundle.payload_sha256, bundle.payload_length)
        except (FileNotFoundError, ContainerError):
            return False
