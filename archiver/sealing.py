"""A compacted checkpoint as a sealed bundle on local disk: scanned once more, packed, encrypted."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import age, members, pack
from archiver.compact import Compacted
from archiver.model import Checkpoint, Member
from archiver.model.manifest import ManifestHead
from archiver.position import Position
from archiver.progress import Progress
from archiver.redact import Redactor
from archiver.redact.scanned import Scanned
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


def seal(
    redactor: Redactor,
    compacted: Compacted,
    place: Position,
    setup: Setup,
    scratch: Scratch,
    progress: Progress,
    reached: age.Reached,
    base: pack.Base | None = None,
    scanned: Scanned | None = None,
) -> SealedBundle:
    """Scan every member once more, pack what `base` has not, and seal the stream into a private file.

    `scanned` knows which members an earlier save of this process found clean.
    """
    checkpoint = compacted.checkpoint.value
    ordered = compacted.members.derive(lambda found: _in_order(checkpoint, found))
    safe = redactor.members(ordered, scratch, scanned)
    complete = safe.derive(lambda found: (*found, members.of_receipt(redactor.receipt())))
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
    packed = pack.pack(complete, head, sealer.write, limits=limits, progress=progress, base=base)
    container = sealer.close()
    spooled = spool.close()
    return SealedBundle(spooled.path, spooled.size, packed, container, reached.missing)


def _in_order(checkpoint: Checkpoint, found: tuple[Member, ...]) -> tuple[Member, ...]:
    """State, transcript segments, effects, evidence, then the rest: what is read first comes first."""
    state, effects, evidence = members.of_state(checkpoint)
    segments = [member for member in found if member.path.startswith(("transcript/", "full/"))]
    rest = [member for member in found if not member.path.startswith(("transcript/", "full/"))]
    return (state, *segments, effects, evidence, *rest)
