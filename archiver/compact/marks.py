"""Where a compaction stood, so that the next one of the same run leaves the same bytes where it can.

Each turn more would move the front behind which turns are old, and change what lies there. In an epoch the
front stays where its first bundle has put it, and segments are cut where they were cut before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.compact.outline import Outline


@dataclass(frozen=True, slots=True)
class Front:
    """How far one part of a transcript was when its old turns were shortened."""

    turns: tuple[int, ...]
    """Responses of each conversation."""
    calls: bytes
    """The state of each call: one that was answered since supersedes nothing."""

    @classmethod
    def of(cls, outline: Outline) -> Front:
        return cls(outline.responses.totals(), bytes(outline.calls.state))


@dataclass(frozen=True, slots=True)
class Segment:
    """One member that holds items of a part, before it was scanned for the last time."""

    path: str
    size: int
    sha256: str
    lines: int


@dataclass(frozen=True, slots=True)
class Marks:
    """What a compaction leaves for the next one."""

    fronts: tuple[Front | None, ...] = ()
    """One a part; None for one that is kept whole."""
    segments: tuple[tuple[Segment, ...], ...] = ()
    """One tuple a part."""
    full: tuple[tuple[Segment, ...], ...] = field(default=())
    """The same of the whole transcript beside it."""
    ends: tuple[int, ...] = ()
    """Items of the first part, dropped ones too, behind which a segment ended when it was written."""

    def front(self, part: int) -> Front | None:
        return self.fronts[part] if part < len(self.fronts) else None
