"""Which record of a run is the newest as far as this machine can tell: the spool against the witness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver import age, rollback
from archiver.errors import ContainerError
from archiver.model.record import Decision, Record
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
    decisions: tuple[Decision, ...] = ()
    """What claims after the checkpoint say of effects, oldest first."""
    bases: tuple[Record, ...] = ()
    """The records of the bundles that that one is based on, which lie in the spool too."""


def prove(entries: Sequence[Entry], kept: Sequence[Entry], run: str, setup: Setup) -> Proven | None:
    """`kept` are older entries that others are based on.

    None where the spool does not lead without a gap to or on from what the witness has seen.

    Raises what opening a record raises, and what the witness does.
    """
    chain = _newest_chain(entries)
    if not chain or setup.witness is None or not _continues(chain, rollback.look(run, setup).seen):
        return None
    place = next((at for at in reversed(range(len(chain))) if chain[at].bundle is not None), None)
    if place is None:
        return Proven(opened(chain[-1], setup), chain[-1].sha256, None)
    checkpoint, *after = (opened(entry, setup) for entry in chain[place:])
    if not _has_bundle(chain[place], checkpoint):
        return None
    bases = _bases(checkpoint, {entry.seq: entry for entry in (*kept, *chain[:place])}, setup)
    if bases is None:
        return None
    decisions = tuple(decision for record in after for decision in record.decisions)
    return Proven((checkpoint, *after)[-1], chain[-1].sha256, checkpoint, decisions, bases)


def _bases(record: Record, entries: Mapping[int, Entry], setup: Setup) -> tuple[Record, ...] | None:
    """What the bundle of the record is based on; None where not all of it is here."""
    found = []
    for seq in record.bundle.bases if record.bundle is not None else ():
        entry = entries.get(seq)
        base = opened(entry, setup) if entry is not None else None
        if entry is None or base is None or not _has_bundle(entry, base):
            return None
        found.append(base)
    return tuple(found)


def _newest_chain(entries: Sequence[Entry]) -> list[Entry]:
    """The entries from the newest back to the first that follows none here; none where one is missing."""
    chain: list[Entry] = []
    for entry in reversed(entries):
        if chain and (entry.seq + 1 != chain[0].seq or chain[0].meta.previous not in entry.digests):
            return []
        chain.insert(0, entry)
        if not entry.meta.joined:
            return chain
    # What came before the oldest one went when it was delivered, or it is missing.
    return chain if chain and chain[0].delivered else []


def _continues(chain: Sequence[Entry], seen: Seen | None) -> bool:
    first, head = chain[0], chain[-1]
    if seen is None:
        return first.seq == 1 and not first.delivered
    if first.seq <= seen.seq <= head.seq:
        return seen.sha256 in chain[seen.seq - first.seq].digests
    return seen.seq == first.seq - 1 and seen.sha256 == first.meta.previous


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
