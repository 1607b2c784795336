"""Items as members of a bundle: files of whole lines, cut at the same places whatever the blocks were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from archiver.model import Items, Member, TranscriptPart
from archiver.scratch import Scratch, Spool

SEGMENT: Final = 8 << 20
"""Bytes of a segment; only a single line that is longer makes a longer one."""


class SegmentWriter:
    """Writes the parts of one transcript into numbered segments `<folder>/NNNN.jsonl` (raw: `.bin`).

    Each segment takes as many whole lines as fit, so the same lines always give the same segments.
    """

    def __init__(self, folder: str, scratch: Scratch, *, segment: int = SEGMENT) -> None:
        self.members: list[Member] = []
        self._folder = folder
        self._scratch = scratch
        self._segment = segment
        self._spool: Spool | None = None
        self._first = 0
        self._suffix = "jsonl"

    def part(self, part: TranscriptPart, blocks: Iterable[bytes], count: int | None) -> TranscriptPart:
        """The part with its items written; `count` is what is known of their number."""
        self._first = len(self.members)
        raw = part.media == "raw"
        self._suffix = "bin" if raw else "jsonl"
        for block in blocks:
            for piece in self._pieces(memoryview(block), block, raw):
                self._write(piece)
        self._close()
        made = self.members[self._first :]
        paths = tuple(member.source for member in made if not isinstance(member.source, bytes))
        size = sum(member.size for member in made)
        return part.model_copy(
            update={
                "items": Items.in_files(paths, count=count, size=size, raw=raw),
                "segments": tuple(member.path for member in made),
            }
        )

    def _pieces(self, view: memoryview, block: bytes, raw: bool) -> Iterator[memoryview]:
        """Cut a block where a segment is full: at a line end, or anywhere in raw bytes."""
        start = 0
        while start < len(block):
            room = self._segment - (self._spool.size if self._spool else 0)
            end = len(block) if len(block) - start <= room else start + max(room, 0)
            if end < len(block) and not raw:
                end = block.rfind(b"\n", start, end) + 1
            if end <= start:
                if self._spool:
                    self._close()
                    continue
                end = block.find(b"\n", start) + 1 or len(block)
            yield view[start:end]
            start = end

    def _write(self, piece: memoryview) -> None:
        if self._spool is None:
            self._spool = self._scratch.spool("segment")
        self._spool.write(piece)

    def _close(self) -> None:
        if self._spool is None:
            return
        spooled = self._spool.close()
        self._spool = None
        path = f"{self._folder}/{len(self.members) + 1:04d}.{self._suffix}"
        self.members.append(Member(path, spooled.path, spooled.size, spooled.sha256))
