"""The order of a compaction: plan each part, edit it on its way into segments, then say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archiver.compact.artifacts import FOLDER, Artifacts
from archiver.compact.editor import Editor
from archiver.compact.kept import Kept, Reuse
from archiver.compact.marks import Front, Marks
from archiver.compact.notes import Conclusion
from archiver.compact.options import CompactOptions, CompactReport
from archiver.compact.outline import Outline
from archiver.compact.plan import Plan
from archiver.compact.segments import SegmentWriter
from archiver.compact.summary import CommandRun, Summarise, SummaryFacts, checked, default_summary
from archiver.compact.text import one_line
from archiver.errors import UsageError
from archiver.model import Checkpoint, Member, Transcript, TranscriptPart
from archiver.redacted import Redacted
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Dialect

_LAST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compacted checkpoint, the members that hold its transcript and artifacts, and what was done."""

    checkpoint: Redacted[Checkpoint]
    members: Redacted[tuple[Member, ...]]
    report: CompactReport
    marks: Marks = Marks()  # noqa: RUF009 - frozen and without state


def compact(
    redacted: Redacted[Checkpoint],
    outlines: Sequence[Outline] | None,
    options: CompactOptions,
    scratch: Scratch,
    *,
    summarise: Summarise | None = None,
    carried: Sequence[Member] = (),
    marks: Marks | None = None,
    reuse: Reuse | None = None,
) -> Compacted:
    """Compact a redacted checkpoint.

    `outlines` has one outline for each transcript part, filled during the survey (None: made here, by one
    more pass). `carried` are members of an earlier bundle; those that hold artifacts the checkpoint lists
    are kept. With the `marks` of an earlier compaction of the run nothing gets old that was not by then, and
    segments that are the same keep their paths. With `reuse` the segments that the last compaction of this
    process made of the same items are not made again; `scratch` then outlives the save. Raises `UsageError`
    when the outlines do not fit the transcript.
    """
    work = _Compaction(options, scratch, redacted.value, carried, marks or Marks(), reuse)
    made = redacted.derive(lambda checkpoint: work.run(checkpoint, outlines, summarise))
    return Compacted(
        made.derive(lambda pair: pair[0]), made.derive(lambda pair: pair[1]), work.report, work.marks
    )


class _Compaction:
    def __init__(
        self,
        options: CompactOptions,
        scratch: Scratch,
        checkpoint: Checkpoint,
        carried: Sequence[Member],
        before: Marks,
        reuse: Reuse | None,
    ) -> None:
        self.report = CompactReport()
        self.marks = Marks()
        self._before = before
        self._reuse = reuse
        self._listed = checkpoint.artifacts
        self._ends: tuple[int, ...] = ()
        self._fronts: list[Front | None] = []
        self._options = options
        self._scratch = scratch
        self._carried = carried
        self._artifacts = Artifacts(checkpoint.artifacts, scratch)
        self._outlines: list[tuple[Outline, dict[int, Conclusion]]] = []

    def run(
        self, checkpoint: Checkpoint, outlines: Sequence[Outline] | None, summarise: Summarise | None
    ) -> tuple[Checkpoint, tuple[Member, ...]]:
        transcript = checkpoint.transcript
        dialect = get_dialect(transcript.dialect)
        if outlines is None:
            outlines = [Outline.of(part.items, dialect, self._options) for part in transcript.parts]
        _check(transcript, outlines)
        writer = SegmentWriter("transcript", self._scratch, before=self._before.segments)
        parts = tuple(
            self._part(part, outline, dialect, writer)
            for part, outline in zip(transcript.parts, outlines, strict=True)
        )
        full, whole = self._full(checkpoint)
        members = (*writer.members, *self._artifact_members(), *whole.members)
        self.marks = Marks(tuple(self._fronts), tuple(writer.segments), tuple(whole.segments), self._ends)
        self._count(transcript, writer.members)
        compacted = checkpoint.model_copy(
            update={
                "transcript": transcript.model_copy(update={"parts": parts}),
                "full_transcript": full,
                "artifacts": self._artifacts.artifacts,
                "summary": self._summary(checkpoint, summarise),
            }
        )
        return compacted, members

    def _part(
        self, part: TranscriptPart, outline: Outline, dialect: Dialect, writer: SegmentWriter
    ) -> TranscriptPart:
        if part.items.raw or dialect.name == "opaque":
            self.report.kept_whole += (part.name,)
            self._fronts.append(None)
            return writer.part(part, part.items.blocks(), part.items.count)
        front = self._before.front(len(self._fronts))
        reuse = self._reuse if not self._fronts else None
        self._fronts.append((front or Front()).then(outline))
        if reuse is not None:
            self._ends = (*(end for end in self._before.ends if end < len(outline)), len(outline))
        plan = Plan(outline, self._options, front)
        writer.begin(part)
        kept = self._adopted(plan, writer, reuse) if reuse is not None else None
        editor = Editor(plan, dialect, self._options, self._artifacts, self.report)
        self._outlines.append((outline, editor.conclusions))
        first = 0
        if kept is not None:
            first = kept.items
            editor.removed.update(kept.removed)
            editor.conclude(part.items, first)
        if reuse is not None:
            first = self._kept(reuse, kept, plan, editor, writer, part)
        writer.write(editor.blocks(part.items, first))
        return writer.end(part, len(outline) - len(plan.dropped))

    def _adopted(self, plan: Plan, writer: SegmentWriter, reuse: Reuse) -> Kept | None:
        """What an earlier compaction made of the first items, where this one would make the same of them."""
        for kept in sorted(reuse.before, key=lambda one: -one.items):
            if (
                kept.items <= reuse.same
                and (kept.options, kept.listed) == (self._options, self._listed)
                and kept.decided == plan.decided(kept.items)
                and writer.adopt(kept.segments, kept.members)
            ):
                self._artifacts, self.report = kept.artifacts.copy(), kept.report.copy()
                return kept
        return None

    def _kept(
        self,
        reuse: Reuse,
        kept: Kept | None,
        plan: Plan,
        editor: Editor,
        writer: SegmentWriter,
        part: TranscriptPart,
    ) -> int:
        """Write the items that the next save will have too, and keep what was made of them.

        Gives the number of items that are written by now.
        """
        first = kept.items if kept is not None else 0
        ends = self._before.ends or (reuse.settled,)
        upto = max((end for end in ends if end <= reuse.settled), default=0)
        reuse.leave(kept)
        if upto <= first:
            return first
        writer.write(editor.blocks(part.items, first, upto))
        if writer.cut():
            self._ends = tuple(sorted({*self._ends, upto}))
            segments, members = writer.made()
            made = Kept(
                self._options,
                self._listed,
                upto,
                plan.decided(upto),
                segments,
                members,
                self._artifacts.copy(),
                dict(editor.removed),
                self.report.copy(),
            )
            reuse.leave(made)
        return upto

    def _full(self, checkpoint: Checkpoint) -> tuple[Transcript | None, SegmentWriter]:
        full = checkpoint.full_transcript
        if full is None and self._options.keep_full:
            full = checkpoint.transcript
        writer = SegmentWriter("full", self._scratch, before=self._before.full)
        if full is None:
            return None, writer
        parts = tuple(writer.part(part, part.items.blocks(), part.items.count) for part in full.parts)
        return full.model_copy(update={"parts": parts}), writer

    def _artifact_members(self) -> list[Member]:
        members = self._artifacts.members
        made = {member.path for member in members}
        listed = {f"{FOLDER}/{artifact.sha256}" for artifact in self._artifacts.artifacts}
        return [*members, *(member for member in self._carried if member.path in listed - made)]

    def _count(self, transcript: Transcript, segments: list[Member]) -> None:
        self.report.bytes_before = sum(part.items.size for part in transcript.parts)
        self.report.bytes_after = sum(member.size for member in segments)
        self.report.artifacts = len(self._artifacts.members)
        self.report.artifact_bytes = sum(member.size for member in self._artifacts.members)

    def _summary(self, checkpoint: Checkpoint, summarise: Summarise | None) -> str:
        facts = self._facts(checkpoint)
        if summarise is not None:
            self.report.summary = "callable"
            try:
                return checked(summarise(facts))
            except Exception as error:  # a summary is worth less than the checkpoint it belongs to
                # Only the type is told: the message may hold text that no redaction has seen.
                self.report.summary_error = type(error).__name__
        elif checkpoint.summary:
            self.report.summary = "given"
            return checkpoint.summary
        self.report.summary = "default"
        return default_summary(facts)

    def _facts(self, checkpoint: Checkpoint) -> SummaryFacts:
        files: dict[str, None] = {}
        commands: dict[str, CommandRun] = {}
        for outline, conclusions in self._outlines:
            for file in outline.files:
                files.pop(file, None)
                files[file] = None
            for call in outline.commands.values():
                label = outline.calls.label(call)
                commands.pop(label, None)
                commands[label] = CommandRun(label, conclusions.get(call))
        main = self._outlines[0][0] if self._outlines else None
        return SummaryFacts(
            objective=checkpoint.objective,
            files_written=tuple(files),
            commands=tuple(commands.values()),
            tasks=main.tasks if main else (),
            plan=checkpoint.plan,
            evidence=checkpoint.evidence,
            last_text=one_line(main.last_text, _LAST_TEXT) if main else "",
            previous=checkpoint.summary,
            transcript=checkpoint.transcript,
        )


def _check(transcript: Transcript, outlines: Sequence[Outline]) -> None:
    if len(outlines) != len(transcript.parts):
        raise UsageError(
            f"compaction got {len(outlines)} outlines for {len(transcript.parts)} transcript parts",
            remedy="make one outline a part, in order",
        )
    for part, outline in zip(transcript.parts, outlines, strict=True):
        if not part.items.raw and part.items.count not in (None, len(outline)):
            raise UsageError(
                f"the outline of {part.name!r} has {len(outline)} items, the part has {part.items.count}",
                remedy="survey the redacted items that are compacted",
            )
