"""One sweep, in this order: the spool, the sources, the classes of what is stored.

deliver what waits → find runs → which are new → which are complete → save → retag → who is left open
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import syncing, tagging
from archiver.audit.cleaning import Clean
from archiver.errors import ArchiverError, StoreError, StoreUnreachableError
from archiver.progress import Progress
from archiver.setup import known_values
from archiver.sweep import journal, looking, remembering, unfinished
from archiver.sweep.before import Before
from archiver.sweep.lanes import Lanes
from archiver.sweep.locking import alone
from archiver.sweep.looking import Task
from archiver.sweep.report import Report, Row
from archiver.sweep.saving import Saved, save
from archiver.sweep.state import State, folder, open_state, read_state
from archiver.sweep.together import together

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.sources import Source

AWAY: Final = 3
"""Runs that find the store away, one after the other, before the others are left to the next sweep."""


_ENDED: Final = "this sweep was told to end"


@dataclass(frozen=True, slots=True)
class Options:
    """How to sweep."""

    dry_run: bool = False
    retention: bool = True
    wait: timedelta = timedelta()
    """How long to wait for another sweep of the same store on this machine."""
    log: Path | None = None


@dataclass(slots=True)
class Sweep:
    """One look at all sources; iterate it once, and `report` has the sums."""

    setup: Setup
    sources: Sequence[Source]
    options: Options = Options()
    stop: threading.Event = field(default_factory=threading.Event)
    """When it is set nothing more is begun."""
    progress: Progress | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    report: Report = field(default_factory=Report)
    _before: Before | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Row]:
        """Each run of which something is to be said, as it is done; all of them in a dry run.

        Raises `SweepRunningError`, and what keeps the state or the log from being written; what is wrong with
        one run, one source or one class is in the report.
        """
        began = time.monotonic()
        dry_run = self.report.dry_run = self.options.dry_run
        self.report.clean = Clean(self.setup).whole
        with ExitStack() as held:
            held.enter_context(nullcontext() if dry_run else alone(self.setup, self.options.wait))
            state = read_state(self.setup) if dry_run else open_state(self.setup)
            held.callback(state.close)
            if state.anew:
                self.report.warn(f"{state.anew}; what is in the store is looked up again, and stays")
            log = _Log(None if dry_run else self._journal(), self.report)
            self.report.sweep = log.sweep
            places = [{"source": one.kind, "path": os.fspath(one.path)} for one in self.sources]
            log.write("begin", sources=places, pid=os.getpid())
            try:
                self._deliver(log)
                yield from self._sources(state, log)
                self._classes(state, log)
            finally:
                self.setup.session.values = None
                self.report.stopped = self.stop.is_set()
                self.report.seconds = time.monotonic() - began
                log.end(self.report)

    def _journal(self) -> journal.Journal:
        return journal.Journal(self.options.log or journal.place(self.setup.settings), self.setup)

    # --- the spool ---

    def _deliver(self, log: _Log) -> None:
        try:
            waiting = syncing.waiting(self.setup)
            if self.options.dry_run:
                self.report.waiting_spool = len(waiting)
                return
            for one in syncing.deliver(self.setup, waiting, progress=self.progress):
                self.report.delivered.append(one)
                self.report.warn(*one.warnings)
                if one.error is not None:
                    self.report.fail(f"run {one.run}", one.error)
                if one.delivered or one.forks or one.error is not None:
                    log.write(
                        "delivered",
                        run=one.run,
                        count=one.delivered,
                        left=one.left,
                        forks=one.forks,
                        error=one.error,
                    )
        except ArchiverError as error:
            self.report.fail("the spool", error)

    # --- the sources ---

    def _sources(self, state: State, log: _Log) -> Iterator[Row]:
        world = remembering.world(self.setup.settings, self.now())
        look = looking.Look(state, self.now, self.stop, self.report.clean, world)
        self._before = before = Before(state)
        tasks: list[Task] = []
        for found in look.at(self.sources):
            if isinstance(found, Task):
                tasks.append(found)
            else:
                yield from self._said(found, log)
        if self.options.dry_run:
            for task in tasks:
                yield from self._said(looking.foreseen(task, self.setup, state), log)
            return
        before.keep()
        if tasks:  # gathered once for all of them, not once a run
            self.setup.session.values = tuple(known_values(self.setup.settings))
        lanes = Lanes(
            lambda group: [self._save(task, state) for task in group],
            [(sum(task.size for task in group), group) for group in together(tasks)],
            self.setup.settings.sweep.parallel,
            self.stop,
        )
        away = 0
        for task, row in chain.from_iterable(lanes):
            self.report.read += task.size if row.what == "archived" else 0
            yield from self._said(row, log)
            away = away + 1 if isinstance(row.error, StoreUnreachableError) else 0
            if away == AWAY:
                lanes.stop()
        why = "the store is away" if away >= AWAY else _ENDED
        for task in chain.from_iterable(lanes.left):
            yield from self._said(task.row("waiting", why), log)
        before.keep()

    def _save(self, task: Task, state: State) -> tuple[Task, Row]:
        if self.stop.is_set():
            return task, task.row("waiting", _ENDED)
        try:
            saved = save(task.found, task.outcome, self.setup, now=self.now, state=state)
        except Exception as error:  # of whatever kind: it is this run's, and the others go on
            text = f"this is a bug: {type(error).__name__}: {error}".split("\n", 1)[0]
            wrong = ArchiverError(text, remedy="report it with what `archiver archive` says of this run")
            saved = Saved(task.found.run_id or "", None, "failed", None, 0, 0.0, (), wrong)
        return task, _row(task, saved)

    def _said(self, row: Row, log: _Log) -> Iterator[Row]:
        if (row.of_files or row.what == "passed") and self._before is not None:
            again = self._before.said(row.kind, row.key, row.what, row.why)
            if again and row.what == "failed":
                row = replace(row, what="failed-before", error=None)
            row = replace(row, again=again)
        row = self.report.add(row)
        if row.touched:
            log.write(
                row.what,
                run=row.run or None,
                source=row.kind,
                path=row.key,
                seq=row.seq,
                outcome=row.outcome or None,
                bytes=row.size,
                seconds=round(row.seconds, 3),
                warnings=list(row.warnings),
                error=row.error,
            )
        if row.touched or self.options.dry_run:
            yield row

    # --- what is in the store ---

    def _classes(self, state: State, log: _Log) -> None:
        self.report.sweeper = tagging.is_sweeper(self.setup)
        if not (self.options.retention and self.report.sweeper) or self.stop.is_set():
            return
        try:
            for settled in tagging.sweep(
                self.setup,
                memory=folder(self.setup.settings, self.setup.require_store_id()),
                dry_run=self.options.dry_run,
                progress=self.progress,
                now=self.now(),
            ):
                self._settled(settled, log)
                if self.stop.is_set():
                    return
            left = unfinished.unfinished(self.setup, state, self.now(), dry_run=self.options.dry_run)
            self.report.unfinished, self.report.unfinished_names = len(left), left[:20]
        except ArchiverError as error:
            self.report.fail("the classes of what is stored", error)

    def _settled(self, settled: tagging.Settled, log: _Log) -> None:
        report = self.report
        report.changes += len(settled.changes)
        report.warn(*settled.warnings)
        if settled.error is not None:
            report.fail(f"run {settled.run}", settled.error)
        if settled.changes or settled.error is not None:
            report.settled.append(settled)
            classes = sorted({change.to for change in settled.changes})
            log.write(
                "retagged", run=settled.run, count=len(settled.changes), classes=classes, error=settled.error
            )


class _Log:
    """The journal, or nothing in a dry run; once the sweep is under way a full disk does not end it."""

    def __init__(self, into: journal.Journal | None, report: Report) -> None:
        self._into, self._report = into, report
        self._begun = self._failed = False
        self.sweep = into.sweep if into is not None else ""

    def write(self, event: str, *, error: ArchiverError | None = None, **said: object) -> None:
        try:
            if self._into is not None:
                self._into.write(event, error=error, **said)
        except StoreError as problem:
            if not self._begun:
                raise
            if not self._failed:
                self._report.fail("the log", problem)
            self._failed = True
        self._begun = True

    def end(self, report: Report) -> None:
        total = report.total()
        self.write(
            "end",
            found=total.found,
            archived=total.archived,
            unchanged=total.unchanged,
            waiting=total.waiting,
            refused=total.refused,
            failed=total.failed,
            failed_before=total.failed_before,
            passed=total.passed,
            delivered=sum(one.delivered for one in report.delivered),
            retagged=report.changes,
            bytes=report.stored,
            seconds=round(report.seconds, 3),
            stopped=report.stopped,
            exit_code=report.exit_code,
        )


def _row(task: Task, saved: Saved) -> Row:
    error = saved.error
    return task.row(
        saved.what,
        str(error) if error else task.why,
        run=saved.run,
        seq=saved.seq,
        size=saved.size,
        seconds=saved.seconds,
        warnings=saved.warnings,
        **(looking.said_of(error) if error else {}),
    )
