"""Where a compaction stood, so that the next one of the same run leaves the same bytes where it can.

Each turn more would move the front behind which turns are old, and change what lies there. In an epoch it
stays for each turn where it stood when a bundle first held that, and segments are cut where they were cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.compact.outline import Answered, Outline, answers


@dataclass(frozen=True, slots=True)
class Front:
    """How far one part of a transcript was at each bundle of an epoch, when its old turns were shortened."""

    turns: tuple[tuple[int, ...], ...] = ()
    """Responses of each conversation, by then."""
    calls: tuple[int, ...] = ()
    """Number of calls, by then."""
    answered: Answered = field(default_factory=answers)
    """For each call the bundle by which it was answered: one that was answered later superseded nothing."""

    def then(self, outline: Outline) -> Front:
        """With the bundle that is being made of this outline."""
        answered = outline.calls.answered(self.answered, len(self.turns))
        return Front((*self.turns, outline.responses.totals()), (*self.calls, len(outline.calls)), answered)


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
