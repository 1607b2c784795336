"""Which runs of the sources are new, and which of those are complete: nothing is changed, little is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from archiver import describe
from archiver.catalog import Catalog
from archiver.errors import (
    ArchiverError,
    DamagedError,
    InputNotFoundError,
    InvalidDocumentError,
    InvalidNameError,
    LimitExceededError,
    MalformedTranscriptError,
    NotSerialisableError,
    RefusedError,
)
from archiver.model import Outcome
from archiver.redact import new_key
from archiver.safetext import one_line
from archiver.sources import Found, OpenFiles, Source, Unusable
from archiver.sweep import belonging, bounded, content
from archiver.sweep.report import Row, What
from archiver.sweep.state import Known, State, key_of
from archiver.transcripts.reader import read

if TYPE_CHECKING:
    from archiver.setup import Setup

LASTING: Final = (
    *(MalformedTranscriptError, LimitExceededError, NotSerialisableError, InvalidDocumentError),
    InvalidNameError,
)
"""What files bring about that stay as they are, such as an id that no object can be named after."""


@dataclass(frozen=True, slots=True)
class Task:
    """A run that is complete, and not known to be in the store."""

    source: str
    found: Found
    outcome: Outcome
    why: str
    """By what it is told that it is complete."""
    known: Known | None

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(one.size for one in self.found.files)

    def row(self, what: What, why: str, **said: Any) -> Row:
        """What is said of it."""
        found = self.found
        said = {"run": found.run_id or "", "outcome": self.outcome, **said}
        return Row(self.source, found.kind, found.key, what, why, **said)


def label(source: Source, clean: Callable[[str], str] = str) -> str:
    """What a source is called in tables; `clean` takes credentials out of its path."""
    path = os.fsencode(source.path).decode("utf-8", "backslashreplace")
    return one_line(f"{source.kind} {clean(path)}")


class Look:
    """Goes through sources."""

    def __init__(
        self,
        state: State,
        now: Callable[[], datetime],
        stop: threading.Event,
        clean: Callable[[str], str] = str,
        world: str = "",
    ) -> None:
        """`world` is what else decided over runs that could not be saved."""
        self._clean = clean
        self._world = world
        self._known, self._names = state.all(), state.names
        self._now = now
        self._stop = stop
        self._seen: set[tuple[str, str]] = set()

    @cached_property
    def _open(self) -> OpenFiles:
        """Made once, and only if there is a run to ask it about."""
        return OpenFiles.look()

    def at(self, sources: Sequence[Source]) -> Iterator[Task | Row]:
        """Each run once: as a task, or what is to be said of it."""
        for source in sources:
            name = label(source, self._clean)
            try:
                for found in bounded.bounded(source.find(), bounded.PATIENCE):
                    if self._stop.is_set():
                        return
                    if (found.kind, found.key) not in self._seen:
                        self._seen.add((found.kind, found.key))
                        yield self._one(name, source, found)
            except ArchiverError as error:
                yield Row(name, source.kind, os.fspath(source.path), "failed", str(error), error=error)

    def _one(self, name: str, source: Source, found: Found | Unusable) -> Task | Row:
        if isinstance(found, Unusable):
            return _unusable(name, found)
        if found.kind not in belonging.HARNESSES:
            self._names[key_of(found.key)] = found.key
        known = self._known.get((found.kind, key_of(found.key)))
        if known is not None:
            row = _settled(name, found, known) or _damaged(name, found, known, self._world)
            if row is not None:
                return row
        try:
            ending = source.ending(found, self._now(), self._open)
        except InputNotFoundError:
            return Row(name, found.kind, found.key, "waiting", "its files vanished while it was looked at")
        except ArchiverError as error:
            return Row(
                name, found.kind, found.key, "failed", str(error), error=of_files(error), of_files=True
            )
        if not ending.complete or ending.outcome is None:
            return Row(name, found.kind, found.key, "waiting", ending.why, run=found.run_id or "")
        return Task(name, found, ending.outcome, ending.why, known)


def said_of(error: ArchiverError) -> dict[str, Any]:
    """What a row says of an error of one run: whether its files bring it about, and the error."""
    if isinstance(error, (InputNotFoundError, *LASTING)):
        return {"error": of_files(error), "of_files": True}
    return {"error": error}


def of_files(error: ArchiverError) -> ArchiverError:
    """The error as one of what lies on disk: it is no wrong call that every sweep has to end with."""
    error.exit_code = DamagedError.exit_code
    return error


def foreseen(task: Task, setup: Setup, state: State) -> Row:
    """What a sweep would do with it, and why; the store is read, and of `state` a copy is asked."""
    try:
        ref = content.reference(task.found, setup)
        run = task.found.run_id
        if run is None:
            run = describe.run_id_of(read(task.found.paths, salvage=True).transcript, task.found.paths)
        run = setup.redactor(new_key()).text(run)
        head = Catalog(setup).newest_of(run) if setup.identities else None
    except ArchiverError as error:
        return task.row("failed", str(error), **said_of(error))
    record = head.record if head is not None else None
    if record is not None and record.source == ref and record.outcome == task.outcome:
        return task.row("unchanged", "the store has it", run=run, seq=record.seq)
    try:
        if record is not None and record.source != ref:
            belonging.demand_kind(task.found, run, record)
        belonging.demand_own(task.found, run, state)
    except RefusedError as error:
        return task.row("refused", str(error), run=run, error=error)
    new = "is new" if head is None else f"has changed since number {head.seq}"
    return task.row("would-archive", f"{new}; {task.why}", run=run, seq=head.seq + 1 if head else 1)


def _settled(name: str, found: Found, known: Known) -> Row | None:
    """What is known of a run whose files are as they were; None if it has to be looked at."""
    if not known.stamp or known.stamp != content.stamp(found.files):
        return None
    if known.what == "archived" and known.outcome != "running":
        run, seq, outcome = known.run, known.seq, known.outcome
        return Row(name, found.kind, found.key, "unchanged", run=run, seq=seq, outcome=outcome)
    if known.what == "refused":
        return Row(name, found.kind, found.key, "refused", known.why, run=known.run)
    return None


def _damaged(name: str, found: Found, known: Known, world: str) -> Row | None:
    """What was wrong with files that are as they were, in a world that is."""
    if known.what != "failed" or known.stamp != content.stamp(found.files, world):
        return None
    return Row(name, found.kind, found.key, "failed-before", known.why, run=known.run)


def _unusable(name: str, found: Unusable) -> Row:
    if not found.broken:
        return Row(name, found.kind, found.key, "passed", found.why)
    kind = InputNotFoundError if found.root else DamagedError
    error = kind(f"{one_line(found.key)}: {found.why}", remedy=found.remedy)
    return Row(name, found.kind, found.key, "failed", found.why, error=error, of_files=not found.root)
