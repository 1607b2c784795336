"""What a compaction leaves to the next one of the same process: the segments of what will not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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


MOST_KEPT: Final = 4
"""While the store acknowledges late, bundles are based on earlier ones in turn."""


@dataclass(slots=True)
class Reuse:
    """What is kept from one compaction to the next, whose first items are the same."""

    same: int
    """Items that the first part has in common with the one that `before` is of."""
    settled: int
    """Items that the next save will have in common with this one."""
    before: tuple[Kept, ...] = ()
    """What the last compactions left: of bundles that have different bases each its own."""
    after: tuple[Kept, ...] = ()

    def leave(self, made: Kept | None) -> None:
        """Keep that, and of the others what will be true of the next save too."""
        others = (one for one in self.before if one.items <= self.same and one is not made)
        self.after = (*(() if made is None else (made,)), *others)[:MOST_KEPT]
