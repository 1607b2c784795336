"""Save a run: read → redact → describe → compact → pack → seal → put the bundle → sign and put the record.

This file and `restore.py` alone know the order of the stages.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archiver import (
    __version__,
    committing,
    describe,
    freshness,
    layout,
    position,
    records,
    reducing,
    retention,
    tagging,
    telemetry,
)
from archiver.compact import Compacted, CompactOptions, CompactReport, Marks, Summarise, compact
from archiver.describe import Given
from archiver.epochs import Based, Reason, Terms
from archiver.errors import (
    AlreadyExistsError,
    LimitExceededError,
    RefusedError,
    StaleWriterError,
    StoreDeniedError,
    UsageError,
)
from archiver.model import Checkpoint, Member, Outcome, Receipt, Record, Sizes, SourceRef, Transcript
from archiver.position import Position
from archiver.progress import Progress, Silent
from archiver.record_of import record_of
from archiver.redact import Redactor, new_key
from archiver.redacted import Redacted
from archiver.reducing import Reduced
from archiver.remembered import Remembered, going_on
from archiver.rows import looks_like_rows, read_rows
from archiver.safetext import one_line
from archiver.saying import clean_errors, redacted_summary, warnings_of
from archiver.scratch import Scratch
from archiver.sealing import SealedBundle, last_scan, seal
from archiver.setup.remote import store_options
from archiver.transcripts.reader import Dropped, Reading, read
from archiver.watch import Watch

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.workspace_in import WorkspaceIn


Choose = Callable[[Terms, Outcome], Based | Reason]
"""What the next bundle is to be based on, or why it is to be full."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to save: the files of one transcript, or a checkpoint that the caller made."""

    paths: tuple[Path, ...] = ()
    checkpoint: Checkpoint | None = None
    workspace: Path | None = None
    """The folder that the run works in, to be saved with it."""
    was_still: Callable[[], bool] = lambda: True
    """Called once when all of the folder was read: whether the run has left it alone until now."""
    only: frozenset[tuple[int, int]] | None = None
    """Device and inode of what may be read, where others than who archives can change what lies at a path."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to save it."""

    given: Given = Given()  # noqa: RUF009 - frozen and without state
    keep_full: bool | None = None
    salvage: bool = False
    keep_turns: int | None = None
    summarise: Summarise | None = None
    capture: bool = True
    """False for a checkpoint that was saved before: the world of today is not the one it was taken in."""
    after: int | None = None
    """The number it has to follow, for one that is made of what was newest then."""
    watch: tuple[str, ...] = ()
    """Resources whose version is remembered, besides those of the settings."""
    made_of: SourceRef | None = None
    """The finished run on disk that it is made of."""
    full: bool = False
    """Whether the run has met its limit, so that `limits.run_policy` says what becomes of artifacts."""


@dataclass(frozen=True, slots=True)
class Archived:
    """A committed checkpoint."""

    record: Record
    receipt: Receipt
    compaction: CompactReport
    dropped: tuple[Dropped, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A redacted checkpoint that is sealed on the local disk, and nowhere else yet."""

    sealed: SealedBundle
    checkpoint: Checkpoint
    place: Position
    compaction: CompactReport
    dropped: tuple[Dropped, ...]
    raw: int
    """Bytes of the transcript as it was found."""
    redactor: Redactor
    setup: Setup
    made_of: SourceRef | None = None
    marks: Marks = Marks()  # noqa: RUF009 - frozen and without state
    """Where its compaction stood."""
    terms: Terms | None = None
    based: Based | Reason = "unacknowledged"
    """What it is based on, or why it is full."""

    def new_name(self) -> str:
        """A name for the bundle that nothing has had before."""
        return layout.bundle_name(self.place.run, self.place.seq, secrets.token_hex(8))

    def record(self, name: str, recorded_at: datetime) -> Record:
        """The record that commits it as the bundle of that name."""
        sealed = self.sealed
        return record_of(
            self.checkpoint,
            self.place,
            self.setup,
            bundle=sealed.packed.ref(name, sealed.container),
            sizes=Sizes(raw=self.raw, compacted=sealed.packed.unpacked, stored=sealed.size),
            receipt=self.redactor.receipt(),
            recipients=sealed.container.fingerprints,
            missing=sealed.missing,
            recorded_at=recorded_at,
            software=f"checkpoint-archiver {__version__}",
            source=self.made_of,
        )

    def archived(self, record: Record, unfinished: Iterable[str] = ()) -> Archived:
        """What is said of it once it is committed; `unfinished` is what could not be done after that."""
        redactor = self.redactor
        warnings = (*warnings_of(record, redactor, self.dropped), *map(redactor.text, unfinished))
        return Archived(record, redactor.receipt(), self.compaction, self.dropped, warnings)


@telemetry.saving()
def archive(
    source: Source,
    setup: Setup,
    *,
    options: Options = Options(),
    progress: Progress | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    find: Callable[[str], Position] | None = None,
    ready: Callable[[Prepared], None] = lambda _: None,
    intend: Callable[[Position], None] = lambda _: None,
    tag: bool = True,
) -> Archived:
    """Save one checkpoint and commit it under the run's next number.

    `find` gives the place of a run where the caller knows more of it than its id; `ready` is asked right
    before anything is put, `intend` is told the place right before its record is, and what any of them raises
    is raised. Raises `StaleWriterError` when another writer
    commits that number first; of any failure or crash before the record nothing is seen, and the previous
    checkpoint stays. A machine that is its own sweeper then gives what came before the class it should have,
    unless `tag` is false; what goes wrong with that is a warning.
    """
    find = find or partial(position.find, setup=setup)
    save = partial(_saved, source, setup, progress, now, find, ready, intend)
    try:
        done = save(options)
    except LimitExceededError as error:
        if options.full or not setup.settings.limits.may_go_on(error):
            raise
        done = save(replace(options, full=True))
    return _tagged(done, setup) if tag else done


def _saved(
    source: Source,
    setup: Setup,
    progress: Progress | None,
    now: Callable[[], datetime],
    find: Callable[[str], Position],
    ready: Callable[[Prepared], None],
    intend: Callable[[Position], None],
    options: Options,
) -> Archived:
    """One checkpoint in the store; before it is put, `LimitExceededError` where the run has no room."""
    place = partial(_position, source, options, setup, find)
    began = time.monotonic()
    with prepare(source, setup, place, options=options, progress=progress, now=now) as prepared:
        run, sealed = prepared.place.run, prepared.sealed
        (progress or Silent()).stage("store", sealed.size)
        with suppress(StoreDeniedError):  # a role that may only create cannot add up what is there
            stored = sum(info.size for info in setup.store.list(layout.bundles_prefix(run)))
            setup.settings.limits.check_run(run, stored + sealed.size)
        ready(prepared)
        done = put(prepared, setup, now=now, intend=intend)
    measure(done.record, time.monotonic() - began, "store")
    return done


def _tagged(done: Archived, setup: Setup) -> Archived:
    record = done.record
    unfinished = tagging.after_save(setup, record.run, record.seq, ended=record.outcome != "running")
    return replace(done, warnings=(*done.warnings, *unfinished)) if unfinished else done


def measure(record: Record, seconds: float, to: Literal["store", "spool"]) -> None:
    """Tell the measures of a checkpoint that has become durable there."""
    sizes = record.sizes
    telemetry.saved(
        raw=sizes.raw,
        compacted=sizes.compacted,
        stored=sizes.stored,
        seconds=seconds,
        findings=record.findings,
        to=to,
    )


@contextmanager
def prepare(
    source: Source,
    setup: Setup,
    place: Callable[[Transcript], Position],
    *,
    options: Options = Options(),
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
            with telemetry.span("archiver.save.redact"):
                redacted = redactor.transcript(
                    transcript, scratch, progress, watch.part, going.keeping if going else None
                )
            progress.stage("compact", None)
            with telemetry.span("archiver.save.compact"):
                described = _describe(source, options, found, redacted, watch, redactor, setup, now())
                checkpoint = redactor.checkpoint(described)
                reached = setup.seal_to(found.run, checkpoint.value.task_id, "bundle")
                terms = Terms(redactor.fingerprint(), frozenset(reached.fingerprints))
                summarise = reducing.once(redacted_summary(options.summarise, redactor))
                reuse = going.reuse() if going else None
                room = going.scratch if going and reuse else scratch
                made = partial(
                    compact, checkpoint, watch.outlines, compaction, room, summarise=summarise, reuse=reuse
                )
                tree = workspace.read(source.was_still) if workspace is not None else None

                fitting = partial(
                    reducing.fitted,
                    limits=setup.settings.limits,
                    redactor=redactor,
                    scratch=scratch,
                    full=options.full,
                )
                make = partial(reducing.reduced, lambda marks: made(marks=marks), tree, fitting=fitting)
                reduced = make(choose(terms, checkpoint.value.outcome))
            _check_ids(reduced.compacted.checkpoint.value, found)
            with telemetry.span("archiver.save.seal"):
                scan = partial(last_scan, redactor, scratch=scratch, before=going.scanned if going else None)
                reduced, scanned = _scanned(reduced, make, workspace, scan)
                sealed = seal(redactor, scanned, reduced, found, setup, scratch, progress, reached)
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
                terms,
                reduced.based,
            )


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


@telemetry.span("archiver.save.store")
def put(
    prepared: Prepared,
    setup: Setup,
    *,
    now: Callable[[], datetime],
    intend: Callable[[Position], None] = lambda _: None,
) -> Archived:
    """Put the bundle, then the record that makes it a checkpoint: the record is the commit point."""
    name = prepared.new_name()
    started = time.monotonic()
    setup.store.create(name, prepared.sealed, retention=retention.class_of(prepared.checkpoint.outcome))
    record = prepared.record(name, now())
    intend(prepared.place)
    return prepared.archived(*commit(record, setup, age_of_bundle=time.monotonic() - started))


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


def _position(
    source: Source,
    options: Options,
    setup: Setup,
    find: Callable[[str], Position],
    transcript: Transcript,
) -> Position:
    """The run's next number; an id that holds a credential is replaced before anything is named after it."""
    given = options.given
    found = source.checkpoint.run_id if source.checkpoint else describe.run_id_of(transcript, source.paths)
    key = new_key()
    run = setup.redactor(key).text(found if given.run_id is None else given.run_id)
    layout.encode_run(run)
    place = find(run)
    if options.after is not None and place.seq != options.after + 1:
        raise StaleWriterError(
            f"run {place.run} has gone on meanwhile: record {place.seq - 1} came after {options.after}",
            remedy="run it again",
        )
    return replace(place, redaction_key=place.redaction_key or key)


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


def commit(record: Record, setup: Setup, *, age_of_bundle: float) -> tuple[Record, tuple[str, ...]]:
    """Create the record under its number: `StaleWriterError` if another writer was first.

    `RolledBackError` if the witness has seen a record there that the store has lost. Then has the witness
    remember it and leaves the hint for the list of the newest runs. Returns the record as it was signed, and
    what could not be done as warnings.
    """
    committing.refuse_old(record, age_of_bundle)
    reached = setup.seal_to(record.run, record.task, "record")
    record, sealed = records.sealed(record, setup.require_signing_key(), reached)
    try:
        unfinished = committing.create(record, records.body_sha256(record), sealed, setup)
    except AlreadyExistsError as error:
        raise StaleWriterError(
            f"another writer has committed checkpoint {record.seq} of run {record.run}; yours was not",
            remedy="archive again: it then follows the other one",
        ) from error
    return record, unfinished


def archive_rows(
    path: Path, setup: Setup, *, options: Options = Options(), progress: Progress | None = None
) -> list[Archived]:
    """Save every checkpoint document of a JSON or JSONL file, oldest version or newest, in the file's order.

    All rows are read and migrated before the first is saved: a bad one is an error that has saved nothing.
    """
    with clean_errors(lambda: setup.redactor(new_key())):
        tasks = {checkpoint.task_id for checkpoint in read_rows(path)}
        if options.given.run_id is not None and len(tasks) > 1:
            raise UsageError(
                f"{path} has rows of {len(tasks)} tasks, which cannot be one run", remedy="leave --run-id out"
            )
    done = [
        archive(Source(checkpoint=checkpoint), setup, options=options, progress=progress, tag=False)
        for checkpoint in read_rows(path)
    ]
    last = {one.record.run: place for place, one in enumerate(done)}  # each run is looked at once
    return [_tagged(one, setup) if last[one.record.run] == place else one for place, one in enumerate(done)]


__all__ = [
    "Archived",
    "Given",
    "Options",
    "Prepared",
    "Source",
    "archive",
    "archive_rows",
    "looks_like_rows",
    "measure",
    "prepare",
    "put",
]
