"""A compacted checkpoint as a sealed bundle on local disk: scanned once more, packed, encrypted."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import age, members, pack
from archiver.compact import Compacted
from archiver.epochs import Based
from archiver.model import Checkpoint, Member
from archiver.model.manifest import ManifestHead
from archiver.position import Position
from archiver.progress import Progress
from archiver.redact import Redactor
from archiver.redact.scanned import Scanned
from archiver.redacted import Redacted
from archiver.reducing import Reduced
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.pack import Packed
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class SealedBundle:
    """A bundle on local disk, not yet in the store."""

    path: Path
    size: int
    packed: Packed
    container: age.Sealed
    missing: tuple[str, ...] = ()
    """Fingerprints of recipients that it could not be sealed to."""

    def __iter__(self) -> Iterator[bytes]:
        """The sealed bytes, about a megabyte at a time, from their beginning whenever a store asks again."""
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                yield block


def last_scan(
    redactor: Redactor, compacted: Compacted, scratch: Scratch, before: Scanned | None = None
) -> Redacted[tuple[Member, ...]]:
    """All that is to be packed but the receipt, scanned once more.

    `before` knows which members an earlier save of this process found clean.
    """
    checkpoint = compacted.checkpoint.value
    ordered = compacted.members.derive(lambda found: _in_order(checkpoint, found))
    return redactor.members(ordered, scratch, before)


def seal(
    redactor: Redactor,
    scanned: Redacted[tuple[Member, ...]],
    reduced: Reduced,
    place: Position,
    setup: Setup,
    scratch: Scratch,
    progress: Progress,
    reached: age.Reached,
) -> SealedBundle:
    """Pack what was `scanned` and the base has not, and seal the stream into a private file."""
    checkpoint = reduced.compacted.checkpoint.value
    base = reduced.based.base if isinstance(reduced.based, Based) else None
    complete = scanned.derive(lambda found: (*found, members.of_receipt(redactor.receipt())))
    progress.stage("pack", sum(member.size for member in complete.value))
    head = ManifestHead(
        run=place.run,
        seq=place.seq,
        schema_version=checkpoint.schema_version,
        redaction_key=base64.b64encode(place.redaction_key).decode(),
        mtime=max(0, int(checkpoint.checkpoint_at.timestamp())),
    )
    spool = scratch.spool("bundle", hashed=False)
    sealer = age.seal(reached.recipients, spool.write)
    limits = setup.settings.limits
    packed = pack.pack(
        complete,
        head,
        sealer.write,
        limits=limits,
        progress=progress,
        base=base,
        kept=reduced.kept,
        lending=reduced.based != "end",
    )
    container = sealer.close()
    spooled = spool.close()
    return SealedBundle(spooled.path, spooled.size, packed, container, reached.missing)


def _in_order(checkpoint: Checkpoint, found: tuple[Member, ...]) -> tuple[Member, ...]:
    """State, transcript segments, effects, evidence, then the rest: what is read first comes first."""
    state, effects, evidence = members.of_state(checkpoint)
    segments = [member for member in found if member.path.startswith(("transcript/", "full/"))]
    rest = [member for member in found if not member.path.startswith(("transcript/", "full/"))]
    return (state, *segments, effects, evidence, *rest)
