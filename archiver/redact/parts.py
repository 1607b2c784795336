"""The pass over the items of a transcript: redacted block by block into private files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from archiver.model import Items, LeftOut, TranscriptPart
from archiver.model.items import BLOCK
from archiver.progress import Progress, Silent
from archiver.redact import streams
from archiver.redact.growing import changed
from archiver.redact.raw import RawPass
from archiver.redact.scrub import ItemOpaque, Scrubber
from archiver.scratch import Scratch

Watch = Callable[[int], Callable[[Any], object]]
"""For the number of a part, what sees each of its redacted items; asked again when a part is rewritten."""


class PartPass:
    """Redacts parts one after the other."""

    def __init__(
        self,
        scrubber: Scrubber,
        opaque: ItemOpaque,
        scratch: Scratch,
        progress: Progress,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._scrubber = scrubber
        self._opaque = opaque
        self._scratch = scratch
        self._progress = progress
        self.left_out: list[LeftOut] = []

    def redact(self, number: int, part: TranscriptPart) -> TranscriptPart:
        """The part with its items redacted into a private file."""
        if part.media == "raw" or part.items.raw:
            return self._raw(part)
        return self._lines(number, part, self._scrubber, self._progress)

    def again(self, number: int, part: TranscriptPart, scrubber: Scrubber) -> TranscriptPart:
        """The redacted part searched once more, for values that were found after their first occurrence."""
        if part.media == "raw" or part.items.raw:
            return self._raw_again(part, scrubber)
        if not any(True for block in part.items.blocks() for _ in scrubber.line_edits(block, self._opaque)):
            return part
        return self._lines(number, part, scrubber, Silent())

    def _lines(
        self, number: int, part: TranscriptPart, scrubber: Scrubber, progress: Progress
    ) -> TranscriptPart:
        spool = self._scratch.spool("redacted", hashed=False)
        see = self._watch(number) if self._watch is not None else None
        numbers = _Numbers(part.items, eager=see is not None)
        for block, lines, values in _batches(part.items) if see is not None else _unread(part.items):
            out: list[bytes] = []
            scrubber.lines(block, numbers.first, f"transcript {part.name}", self._opaque, out.append)
            for piece in out:
                spool.write(piece)
            if see is not None:
                for value in values if out[0] is block else changed(lines, values, out):
                    see(value)
            numbers.pass_by(block, len(lines))
            progress.advance(len(block))
        spooled = spool.close()
        items = Items.in_file(spooled.path, count=numbers.count, size=spooled.size)
        return part.model_copy(update={"items": items})

    def _raw(self, part: TranscriptPart) -> TranscriptPart:
        place = f"transcript {part.name}"
        work = RawPass(self._scrubber, self._scratch, place)
        for chunk in part.items.blocks():
            work.feed(chunk)
            self._progress.advance(len(chunk))
        return self._settled(part, work)

    def _raw_again(self, part: TranscriptPart, scrubber: Scrubber) -> TranscriptPart:
        look = RawPass(scrubber, None, "")
        for chunk in part.items.blocks():
            look.feed(chunk)
        look.close()
        if not look.found:
            return part
        work = RawPass(scrubber, self._scratch, f"transcript {part.name}")
        for chunk in part.items.blocks():
            work.feed(chunk)
        return self._settled(part, work)

    def _settled(self, part: TranscriptPart, work: RawPass) -> TranscriptPart:
        outcome = work.close()
        if outcome.reason is not None:
            self.left_out.append(LeftOut(member=part.name, reason=outcome.reason, rules=outcome.rules))
            return part.model_copy(update={"items": Items.of_chunks(())})
        if outcome.spooled is None:
            return part
        items = Items.in_file(outcome.spooled.path, count=None, size=outcome.spooled.size, raw=True)
        return part.model_copy(update={"items": items})


class _Numbers:
    """Numbers the lines of a part; they are counted only where that is not known, or something was found."""

    def __init__(self, items: Items, *, eager: bool) -> None:
        self._items = items
        self._blocks = self._lines = 0
        self._eager = eager or items.count is None

    def first(self) -> int:
        """The number of the first line of the block at hand, from 1."""
        if not self._eager:
            self._eager = True
            self._lines = sum(block.count(b"\n") for block in islice(self._items.blocks(), self._blocks))
        return self._lines + 1

    def pass_by(self, block: bytes, lines: int) -> None:
        """Go on behind a block; `lines` is how many it has, or 0 where nobody counted them."""
        self._blocks += 1
        if self._eager:
            self._lines += lines or block.count(b"\n")

    @property
    def count(self) -> int | None:
        """All lines, behind the last block."""
        return self._lines if self._eager else self._items.count


def _batches(items: Items) -> Iterator[tuple[bytes, list[bytes], list[Any]]]:
    """Blocks, lines and values, about a megabyte at a time: what the reader parsed is not parsed again."""
    lines: list[bytes] = []
    values: list[Any] = []
    size = 0
    for line, value in items.pairs():
        lines.append(line)
        values.append(value)
        size += len(line)
        if size >= BLOCK and not (size < streams.LONGEST and streams.is_delta(line)):
            yield b"\n".join((*lines, b"")), lines, values
            lines, values, size = [], [], 0
    if lines:
        yield b"\n".join((*lines, b"")), lines, values


def _unread(items: Items) -> Iterator[tuple[bytes, list[bytes], list[Any]]]:
    """Blocks alone, where nobody asked for the values: they need not be parsed."""
    for block in items.blocks():
        yield block, [], []
