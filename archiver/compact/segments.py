"""Items as members of a bundle: files of whole lines, cut at the same places whatever the blocks were."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from archiver.compact.marks import Segment
from archiver.model import Items, Member, TranscriptPart
from archiver.scratch import Scratch, Spool

SEGMENT: Final = 8 << 20
"""Bytes of a segment; only a single line that is longer makes a longer one."""


class SegmentWriter:
    """Writes the parts of one transcript into numbered segments `<folder>/NNNN.jsonl` (raw: `.bin`).

    Each segment takes as many whole lines as fit, so the same lines always give the same segments. Where a
    part had segments before, it is cut after as many lines (raw: bytes) as those have. What is the same as it
    was keeps its path, and everything else gets a number that none of them has.
    """

    def __init__(
        self,
        folder: str,
        scratch: Scratch,
        *,
        segment: int = SEGMENT,
        before: Sequence[Sequence[Segment]] = (),
    ) -> None:
        self.members: list[Member] = []
        self.segments: list[tuple[Segment, ...]] = []
        """What a later writer has to know, for each part."""
        self._folder = folder
        self._scratch = scratch
        self._segment = segment
        self._before = before
        self._number = max((_number(one.path) for part in before for one in part), default=0)
        self._spool: Spool | None = None
        self._made: list[Segment] = []
        self._lines = self._first = 0
        self._raw = False
        self._expected: deque[Segment] = deque()
        self._passed = 0
        """Lines (raw: bytes) that were written in the place of the first of these."""

    def part(self, part: TranscriptPart, blocks: Iterable[bytes], count: int | None) -> TranscriptPart:
        """The part with its items written; `count` is what is known of their number."""
        self.begin(part)
        self.write(blocks)
        return self.end(part, count)

    def begin(self, part: TranscriptPart) -> None:
        """Begin a part."""
        self._first = len(self.members)
        place = len(self.segments)
        self._expected = deque(self._before[place] if place < len(self._before) else ())
        self._made, self._passed = [], 0
        self._raw = part.media == "raw"

    def adopt(self, segments: Sequence[Segment], members: Sequence[Member]) -> bool:
        """Take segments that the part begins with, as another writer has made them, right after `begin`.

        False, and nothing is done, where not all of them are what the part had before.
        """
        known = list(self._expected)[: len(segments)]
        if known != list(segments):
            return False
        for _ in segments:
            self._expected.popleft()
        self._made += segments
        self.members += members
        return True

    def write(self, blocks: Iterable[bytes]) -> None:
        """Write items of the part."""
        for block in blocks:
            view = memoryview(block)
            for start, end in self._cuts(block):
                self._write(view[start:end], block.count(b"\n", start, end))

    def cut(self) -> bool:
        """End a segment here, unless one is expected to go on; whether one ends here."""
        if self._spool is not None and not self._expected:
            self._close()
        return self._spool is None

    def made(self) -> tuple[tuple[Segment, ...], tuple[Member, ...]]:
        """The segments of the part so far, where one has just ended."""
        return tuple(self._made), tuple(self.members[self._first :])

    def end(self, part: TranscriptPart, count: int | None) -> TranscriptPart:
        """The part as it was written; `count` is what is known of the number of its items."""
        self._close()
        self.segments.append(tuple(self._made))
        made = self.members[self._first :]
        paths = tuple(member.source for member in made if not isinstance(member.source, bytes))
        size = sum(member.size for member in made)
        return part.model_copy(
            update={
                "items": Items.in_files(paths, count=count, size=size, raw=self._raw),
                "segments": tuple(member.path for member in made),
            }
        )

    def _cuts(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Cut a block where a segment is full: at a line end, or anywhere in raw bytes."""
        start = 0
        while start < len(block):
            room = self._segment - (self._spool.size if self._spool else 0)
            limit = self._expected_end(block, start)
            end = limit if limit - start <= room else start + max(room, 0)
            if end < limit and not self._raw:
                end = block.rfind(b"\n", start, end) + 1
            if end <= start:
                if self._spool:
                    self._close()
                    continue
                end = block.find(b"\n", start) + 1 or len(block)
            yield start, end
            start = end

    def _expected_end(self, block: bytes, start: int) -> int:
        """Where the segment that is expected here ends in the block; the end of the block if not in there."""
        if not self._expected:
            return len(block)
        first = self._expected[0]
        left = (first.size if self._raw else first.lines) - self._passed
        if self._raw:
            return min(start + left, len(block))
        if block.count(b"\n", start) <= left:
            return len(block)
        end = start
        for _ in range(left):
            end = block.index(b"\n", end) + 1
        return end

    def _write(self, piece: memoryview, lines: int) -> None:
        if self._spool is None:
            self._spool = self._scratch.spool("segment")
        self._spool.write(piece)
        self._lines += lines
        if self._expected:
            self._passed += len(piece) if self._raw else lines
            if self._passed >= (self._expected[0].size if self._raw else self._expected[0].lines):
                self._close()
                self._expected.popleft()
                self._passed = 0

    def _close(self) -> None:
        if self._spool is None:
            return
        spooled = self._spool.close()
        self._spool = None
        before = self._expected[0] if self._expected else None
        if before is not None and (before.size, before.sha256) == (spooled.size, spooled.sha256):
            path = before.path
        else:
            self._number += 1
            path = f"{self._folder}/{self._number:04d}.{'bin' if self._raw else 'jsonl'}"
        self._made.append(Segment(path, spooled.size, spooled.sha256, self._lines))
        self._lines = 0
        self.members.append(Member(path, spooled.path, spooled.size, spooled.sha256))


def _number(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])
