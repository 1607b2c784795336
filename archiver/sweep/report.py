"""What one sweep did, told run by run and added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from archiver.errors import ArchiverError, RunErasedError
from archiver.syncing import Delivered
from archiver.tagging import Settled

What = Literal[
    "archived", "would-archive", "unchanged", "waiting", "refused", "failed", "failed-before", "passed"
]
"""`failed-before`: said by an earlier sweep, and nothing has changed since.
`passed`: no run that this source is for. `would-archive`: of a dry run."""
COUNTS: Final = (
    *("found", "complete", "archived", "unchanged", "waiting", "refused", "failed"),
    *("failed_before", "passed"),
)
"""What is counted of each source."""
MAX_KEPT: Final = 1000
"""Problems that are kept to be said at the end; the log has all of them."""

MAX_ROWS: Final = 100_000
"""Runs that a document tells of one by one."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run of a source."""

    source: str
    """The source, as the table has it."""
    kind: str
    key: str
    what: What
    why: str = ""
    run: str = ""
    seq: int | None = None
    outcome: str = ""
    size: int = 0
    """Bytes that were stored."""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: ArchiverError | None = None
    """Of what failed or was refused now; not of what is remembered as refused."""

    of_files: bool = False
    """Whether what failed is what lies on disk, which is said once as long as it stays."""
    again: bool = False
    """Whether an earlier sweep said the same of it."""

    @property
    def touched(self) -> bool:
        """Whether anything came of it that was not so before."""
        if self.what == "passed":
            return not self.again
        return self.what in ("archived", "would-archive", "failed") or self.error is not None

    @property
    def told(self) -> bool:
        """Whether a document tells of it."""
        return self.touched or self.what in ("waiting", "failed-before")


@dataclass(slots=True)
class Tally:
    """How many runs of one source."""

    source: str
    found: int = 0
    complete: int = 0
    archived: int = 0
    unchanged: int = 0
    waiting: int = 0
    refused: int = 0
    failed: int = 0
    failed_before: int = 0
    passed: int = 0

    def add(self, row: Row) -> None:
        """Count one run."""
        if row.what == "passed":
            self.passed += 1
            return
        self.found += 1
        self.complete += row.what in ("archived", "would-archive", "unchanged", "refused")
        if row.what in ("archived", "would-archive"):
            self.archived += 1
        else:
            name = row.what.replace("-", "_")
            setattr(self, name, getattr(self, name) + 1)


@dataclass(slots=True)
class Report:
    """One sweep, while it goes on and after it."""

    dry_run: bool = False
    sweep: str = ""
    """Its id in the log."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    delivered: list[Delivered] = field(default_factory=list)
    waiting_spool: int = 0
    """Objects in the spool that a dry run would deliver."""
    changes: int = 0
    """Objects that got another class."""
    settled: list[Settled] = field(default_factory=list)
    """Runs of which classes changed, or could not be."""
    sweeper: bool = False
    """Whether this machine changes classes."""
    unfinished: int = 0
    """Runs in the store that say they go on, and to which nobody has written for a day."""
    unfinished_names: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[tuple[str, ArchiverError]] = field(default_factory=list)
    """Where each happened, and what."""
    codes: set[int] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    """Runs that were touched, in a dry run all of them: the first of them."""
    waiting: list[Row] = field(default_factory=list)
    """Runs that are not complete yet, the first of them."""
    read: int = 0
    """Bytes of the files of runs that were archived."""
    stored: int = 0
    seconds: float = 0.0
    stopped: bool = False
    """Whether it was told to end before it was through."""
    clean: Callable[[str], str] = str
    """Takes credentials out of names, ids and messages, before any of them is kept to be said."""

    @property
    def exit_code(self) -> int:
        """0; 4 if something is damaged, else the highest of the errors."""
        return 4 if 4 in self.codes else max(self.codes, default=0)

    def total(self) -> Tally:
        """All sources together."""
        total = Tally("")
        for tally in self.tallies.values():
            for name in COUNTS:
                setattr(total, name, getattr(total, name) + getattr(tally, name))
        return total

    def add(self, row: Row) -> Row:
        """Count one run; gives what may be said of it, which is free of credentials."""
        self.tallies.setdefault(row.source, Tally(row.source)).add(row)
        told = row.told or self.dry_run
        row = self._cleaned(row) if told else row
        self.stored += row.size
        if told and len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        if row.what == "waiting" and len(self.waiting) < MAX_KEPT:
            self.waiting.append(row)
        self.warn(*(f"{row.run or row.key}: {warning}" for warning in row.warnings))
        if isinstance(row.error, RunErasedError):  # somebody's decision, and nothing that went wrong
            self.warn(f"{row.error}; next: {row.error.remedy}")
        elif row.error is not None:
            self.fail(f"run {row.run}" if row.run else row.key, row.error)
        return row

    def fail(self, where: str, error: ArchiverError) -> None:
        """Note an error."""
        self.codes.add(error.exit_code)
        if len(self.errors) < MAX_KEPT:
            clean = self.clean
            error.args = tuple(clean(part) if isinstance(part, str) else part for part in error.args)
            error.remedy = clean(error.remedy) if error.remedy else None
            self.errors.append((clean(where), error))

    def warn(self, *texts: str) -> None:
        """Note warnings."""
        room = max(0, MAX_KEPT - len(self.warnings))
        self.warnings += [self.clean(text) for text in texts[:room]]

    def _cleaned(self, row: Row) -> Row:
        run, key, why = self.clean(row.run), self.clean(row.key), self.clean(row.why)
        return replace(row, run=run, key=key, why=why)
