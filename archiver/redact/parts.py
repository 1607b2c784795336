"""The pass over the items of a transcript: redacted block by block into private files."""

from __future__ import annotations

from archiver.model import Items, LeftOut, TranscriptPart
from archiver.progress import Progress
from archiver.redact.raw import RawPass
from archiver.redact.scrub import ItemOpaque, Scrubber
from archiver.scratch import Scratch


class PartPass:
    """Redacts parts one after the other."""

    def __init__(self, scrubber: Scrubber, opaque: ItemOpaque, scratch: Scratch, progress: Progress) -> None:
        self._scrubber = scrubber
        self._opaque = opaque
        self._scratch = scratch
        self._progress = progress
        self.left_out: list[LeftOut] = []

    def redact(self, part: TranscriptPart) -> TranscriptPart:
        """The part with its items redacted into a private file."""
        if part.media == "raw" or part.items.raw:
            return self._raw(part)
        return self._lines(part, self._scrubber, self._progress)

    def again(self, part: TranscriptPart, scrubber: Scrubber) -> TranscriptPart:
        """The redacted part searched once more, for values that were found after their first occurrence."""
        if part.media == "raw" or part.items.raw:
            return self._raw_again(part, scrubber)
        if not any(True for block in part.items.blocks() for _ in scrubber.line_edits(block, self._opaque)):
            return part
        return self._lines(part, scrubber, None)

    def _lines(self, part: TranscriptPart, scrubber: Scrubber, progress: Progress | None) -> TranscriptPart:
        spool = self._scratch.spool("redacted")
        count = 0
        for block in part.items.blocks():
            scrubber.lines(block, count + 1, f"transcript {part.name}", self._opaque, spool.write)
            count += block.count(b"\n")
            if progress is not None:
                progress.advance(len(block))
        spooled = spool.close()
        items = Items.in_file(spooled.path, count=count, size=spooled.size)
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
