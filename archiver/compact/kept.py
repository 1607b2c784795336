"""What a compaction leaves to the next one of the same process: the segments of what will not change."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.compact.artifacts import Artifacts
from archiver.compact.marks import Segment
from archiver.compact.options import CompactOptions, CompactReport
from archiver.model import Artifact, Member


@dataclass(frozen=True, slots=True)
class Kept:
    """The first items of the first part as they were compacted, and all that was done for them."""

    options: CompactOptions
    listed: tuple[Artifact, ...]
    """Artifacts that the checkpoint came with."""
    items: int
    decided: bytes
    """What decided how they were edited (`Plan.decided`)."""
    segments: tuple[Segment, ...]
    members: tuple[Member, ...]
    artifacts: Artifacts
    removed: dict[str, str | None]
    report: CompactReport


@dataclass(slots=True)
class Reuse:
    """What is kept from one compaction to the next, whose first items are the same."""

    same: int
    """Items that the first part has in common with the one that `before` is of."""
    settled: int
    """Items that the next save will have in common with this one."""
    before: Kept | None = None
    after: Kept | None = None
