"""Save a run: what `preparing` makes of it → put the bundle → sign and put the record.

This file, `preparing.py` and `restore.py` alone know the order of the stages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archiver import (
    committing,
    describe,
    layout,
    position,
    records,
    retention,
    tagging,
    telemetry,
)
from archiver.describe import Given
from archiver.errors import (
    AlreadyExistsError,
    LimitExceededError,
    StaleWriterError,
    StoreDeniedError,
    UsageError,
)
from archiver.model import Record, Transcript
from archiver.position import Position
from archiver.prepared import Archived, Options, Prepared, Source
from archiver.preparing import prepare
from archiver.progress import Progress, Silent
from archiver.redact import new_key
from archiver.rows import looks_like_rows, read_rows
from archiver.saying import clean_errors

if TYPE_CHECKING:
    from archiver.setup import Setup


@telemetry.saving()
def archive(
    source: Source,
    setup: Setup,
    *,
    options: Options = Options(),  # noqa: B008 - frozen
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
    path: Path,
    setup: Setup,
    *,
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
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
