"""What is done before a store is asked: read → redact → describe → compact → pack → seal, on local disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import describe, freshness, reducing, telemetry
from archiver.compact import Compacted, CompactOptions, Marks, compact
from archiver.epochs import Based, Reason, Terms
from archiver.errors import RefusedError, UsageError
from archiver.model import Checkpoint, Member, Outcome, Transcript
from archiver.position import Position
from archiver.prepared import Options, Prepared, Source
from archiver.progress import Progress, Silent
from archiver.redact import Redactor, new_key
from archiver.redacted import Redacted
from archiver.reducing import Reduced
from archiver.remembered import Remembered, TranscriptSave, going_on
from archiver.safetext import one_line
from archiver.saying import clean_errors, redacted_summary
from archiver.scratch import Scratch
from archiver.sealing import SealedBundle, last_scan, seal
from archiver.setup.remote import store_options
from archiver.transcripts.reader import Dropped, Reading, read
from archiver.watch import Watch

if TYPE_CHECKING:
    from archiver.age import Reached
    from archiver.setup import Setup
    from archiver.workspace_in import WorkspaceIn


Choose = Callable[[Terms, Outcome], Based | Reason]
"""What the next bundle is to be based on, or why it is to be full."""


@contextmanager
def prepare(
    source: Source,
    setup: Setup,
    place: Callable[[Transcript], Position],
    *,
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    parent: Path | None = None,
    choose: Choose = lambda _terms, _outcome: "unacknowledged",
    remembered: Remembered | None = None,
) -> Iterator[Prepared]:
    """All that is done before the store is asked: the checkpoint as a sealed bundle in a scratch folder.

    `place` says where a transcript goes; `parent` is the folder that the scratch folder is made in, which
    goes when the block ends; `choose` what the bundle is based on, if that pays. `remembered` is what earlier
    saves of the run left in this process, for a checkpoint that the caller made. Errors that leave the block
    are free of credentials.
    """
    progress = progress or Silent()
    with clean_errors(lambda: setup.redactor(new_key())), Scratch(parent) as scratch:
        transcript, total, dropped = _read(source, options, setup.settings.limits.item)
        found = place(transcript)
        redactor = setup.redactor(found.redaction_key)
        workspace = _workspace(source, setup, redactor, scratch, remembered)
        progress.stage("redact", total)
        compaction = _compact_options(options, setup)
        own = remembered if source.checkpoint is not None else None
        watch = Watch(transcript, compaction, survey=source.checkpoint is None)
        with going_on(own, compaction, watch, parent) as going:
            save = _Save(source, setup, options, found, redactor, workspace, watch, going, scratch, progress)
            redacted = save.redacted(transcript)
            reduction = save.reduction(redacted, compaction, now(), choose)
            _check_ids(reduction.reduced.compacted.checkpoint.value, found)
            reduced, sealed = save.sealed(reduction)
            # Once more, with what the last scan found: the record repeats texts of the checkpoint.
            settled = redactor.settled(reduced.compacted.checkpoint).value
            _check_ids(settled, found)
            if going:
                going.leave()
            yield Prepared(
                sealed,
                settled,
                found,
                reduced.compacted.report,
                tuple(dropped),
                total,
                redactor,
                setup,
                options.made_of,
                reduced.compacted.marks,
                reduction.terms,
                reduced.based,
            )


@dataclass(frozen=True, slots=True)
class _Reduction:
    """What goes into the bundle, on what terms, for whom, and how it is made again on another base."""

    reduced: Reduced
    make: Callable[[Based | Reason], Reduced]
    terms: Terms
    reached: Reached


@dataclass(frozen=True, slots=True)
class _Save:
    """The stages of one save, in their order."""

    source: Source
    setup: Setup
    options: Options
    place: Position
    redactor: Redactor
    workspace: WorkspaceIn | None
    watch: Watch
    going: TranscriptSave | None
    scratch: Scratch
    progress: Progress

    @telemetry.span("archiver.save.redact")
    def redacted(self, transcript: Transcript) -> Redacted[Transcript]:
        keeping = self.going.keeping if self.going else None
        return self.redactor.transcript(transcript, self.scratch, self.progress, self.watch.part, keeping)

    @telemetry.span("archiver.save.compact")
    def reduction(
        self, redacted: Redacted[Transcript], compaction: CompactOptions, now: datetime, choose: Choose
    ) -> _Reduction:
        self.progress.stage("compact", None)
        setup, redactor = self.setup, self.redactor
        described = _describe(
            self.source, self.options, self.place, redacted, self.watch, redactor, setup, now
        )
        checkpoint = redactor.checkpoint(described)
        reached = setup.seal_to(self.place.run, checkpoint.value.task_id, "bundle")
        terms = Terms(redactor.fingerprint(), frozenset(reached.fingerprints))
        tree = self.workspace.read(self.source.was_still) if self.workspace is not None else None
        fitting = partial(
            reducing.fitted,
            limits=setup.settings.limits,
            redactor=redactor,
            scratch=self.scratch,
            full=self.options.full,
        )
        make = partial(reducing.reduced, self._compacting(checkpoint, compaction), tree, fitting=fitting)
        return _Reduction(make(choose(terms, checkpoint.value.outcome)), make, terms, reached)

    def _compacting(
        self, checkpoint: Redacted[Checkpoint], compaction: CompactOptions
    ) -> Callable[[Marks | None], Compacted]:
        reuse = self.going.reuse() if self.going else None
        room = self.going.scratch if self.going and reuse else self.scratch
        summarise = reducing.once(redacted_summary(self.options.summarise, self.redactor))
        made = partial(
            compact, checkpoint, self.watch.outlines, compaction, room, summarise=summarise, reuse=reuse
        )
        return lambda marks: made(marks=marks)

    @telemetry.span("archiver.save.seal")
    def sealed(self, reduction: _Reduction) -> tuple[Reduced, SealedBundle]:
        before = self.going.scanned if self.going else None
        scan = partial(last_scan, self.redactor, scratch=self.scratch, before=before)
        reduced, scanned = _scanned(reduction.reduced, reduction.make, self.workspace, scan)
        sealed = seal(
            self.redactor,
            scanned,
            reduced,
            self.place,
            self.setup,
            self.scratch,
            self.progress,
            reduction.reached,
        )
        return reduced, sealed


def _scanned(
    reduced: Reduced,
    make: Callable[[Based | Reason], Reduced],
    workspace: WorkspaceIn | None,
    scan: Callable[[Compacted], Redacted[tuple[Member, ...]]],
) -> tuple[Reduced, Redacted[tuple[Member, ...]]]:
    """What is to be packed, scanned once more; made again where that scan found what the workspace lacks."""
    scanned = scan(reduced.compacted)
    if workspace is None:
        return reduced, scanned
    full: Reason = reduced.based if not isinstance(reduced.based, Based) else "rules"
    for based in (reduced.based, full):
        if not workspace.outdated(reduced.compacted.members.value, scanned.value):
            break
        reduced = make(based)
        scanned = scan(reduced.compacted)
    if not workspace.outdated(reduced.compacted.members.value, scanned.value):
        workspace.remember()
    return reduced, scanned


def _workspace(
    source: Source, setup: Setup, redactor: Redactor, scratch: Scratch, remembered: Remembered | None
) -> WorkspaceIn | None:
    """The workspace that is saved too, looked at: what its files of credentials hold is known from here."""
    if source.workspace is None:
        return None
    from archiver.workspace_in import WorkspaceIn  # most saves have none

    settings = setup.settings.workspace
    return WorkspaceIn.begin(
        source.workspace,
        redactor,
        scratch,
        settings.options(),
        apart=describe.apart(setup),
        keep_credentials=settings.credential_files == "redact",
        memory=None if remembered is None else remembered.workspace,
        lenient=remembered is not None,  # nobody waits for it, and all else is to be saved
    )


def _read(source: Source, options: Options, max_item: int) -> tuple[Transcript, int, list[Dropped]]:
    if source.checkpoint is not None:
        transcript = source.checkpoint.transcript
        return transcript, sum(part.items.size for part in transcript.parts), []
    reading = read(source.paths, salvage=options.salvage, max_item=max_item)
    if source.only is not None:
        _refuse_others(reading, source.only)
    return reading.transcript, reading.total_bytes, reading.dropped


def _refuse_others(reading: Reading, only: frozenset[tuple[int, int]]) -> None:
    for file in reading.files:
        if (file.source.device, file.source.inode) not in only:
            raise RefusedError(
                f"{one_line(file.name)} is not the file that was found there",
                remedy="sweep again: what lies there now is looked at anew",
            )


def _describe(
    source: Source,
    options: Options,
    place: Position,
    redacted: Redacted[Transcript],
    watch: Watch,
    redactor: Redactor,
    setup: Setup,
    now: datetime,
) -> Checkpoint:
    before, given = place.head, options.given
    task = given.task_id or (before.task if before else None)
    if source.checkpoint is not None:
        checkpoint = source.checkpoint.model_copy(update={"transcript": redacted.value})
        task = redactor.text(task or checkpoint.task_id)
    else:
        task = redactor.text(task or place.run)
        checkpoint = describe.from_transcript(redacted.value, watch.surveys(), place.run, task, now)
        if before is not None:
            checkpoint = checkpoint.model_copy(
                update={"created_at": min(before.created_at, checkpoint.checkpoint_at)}
            )
    if before is not None and task != before.task:
        raise UsageError(
            f"run {place.run} belongs to task {before.task}, not to {task}",
            remedy="leave --task out, or give the other task's run another --run-id",
        )
    probes = checkpoint.environment.probes
    if options.capture and not describe.is_captured(checkpoint):
        world = replace(
            describe.world(checkpoint, setup.settings.freshness, options.watch, now),
            credentials=setup.settings.freshness.credentials,
            aws=store_options(setup.settings).aws,
            apart=describe.apart(setup),
        )
        probes = describe.captured(checkpoint, freshness.capture_all(world))
    return describe.complete(checkpoint, given, place.run, task, probes)


def _compact_options(options: Options, setup: Setup) -> CompactOptions:
    configured = setup.settings.archive
    return CompactOptions(
        keep_turns=configured.keep_turns if options.keep_turns is None else options.keep_turns,
        keep_full=configured.keep_full if options.keep_full is None else options.keep_full,
    )


def _check_ids(checkpoint: Checkpoint, place: Position) -> None:
    """An id that turned out to hold a credential of this run must not become a name in the store."""
    if checkpoint.run_id != place.run:
        raise RefusedError(
            f"the run id holds a credential that stands in the run: {checkpoint.run_id}",
            remedy="give the run another id with --run-id",
        )
