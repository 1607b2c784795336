"""What goes wrong in the background: said once a kind until that has worked again, and counted."""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import Final

from archiver import telemetry
from archiver.errors import (
    ArchiverError,
    InputNotFoundError,
    KeyUnavailableError,
    StaleWriterError,
    StoreError,
    StoreUnreachableError,
)

log = logging.getLogger("archiver")

TRANSIENT: Final = (StoreError, KeyUnavailableError, InputNotFoundError)
"""What may be over when it is tried again later: the store, KMS, a full disk, a scratch folder."""


def as_error(error: Exception, what: str) -> ArchiverError:
    """The error itself, or one of ours about a failure that nobody foresaw.

    Of that it tells the class and the place alone: its text may hold anything, and nothing has redacted it.
    """
    if isinstance(error, ArchiverError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    made = ArchiverError(
        f"{what} failed unexpectedly with {type(error).__name__}{where}",
        remedy="a fault of the archiver, or of a callable that it was given: please report it",
    )
    made.__cause__ = error
    return made


class Complaints:
    """Logs an error when its kind is new, and at DEBUG from then on; safe to use from several threads."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.counts: Counter[str] = Counter()
        """Failed attempts by the class of their error."""
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def failed(self, error: ArchiverError, consequence: str) -> None:
        """One attempt has failed; `consequence` says what becomes of the checkpoint."""
        kind = type(error).__name__
        telemetry.failed_save(kind)
        with self._lock:
            self.counts[kind] += 1
            level = logging.DEBUG if kind in self._said else logging.WARNING
            self._said.add(kind)
        log.log(level, "run %s: %s (%s); %s", self.run, error, error.remedy or kind, consequence)

    def lost(self, error: ArchiverError, what: str) -> None:
        """Something will not be saved any more."""
        with self._lock:
            self.counts[type(error).__name__] += 1
        log.error("run %s: %s is lost: %s", self.run, what, error)

    def worked(self) -> None:
        """It works again: the next failure is news."""
        with self._lock:
            self._said.clear()


def gone_stale(run: str, seq: int) -> StaleWriterError:
    """The error of a writer that finds another record under its next number."""
    return StaleWriterError(
        f"run {run} was taken over: record {seq} is in the store, and it is not from here",
        remedy="stop this copy of the run; look who resumed it",
    )


def too_late(run: str, why: str) -> StoreUnreachableError:
    """The error of what is not waited for any longer."""
    return StoreUnreachableError(
        f"run {run}: {why}, and it is not waited for any longer",
        remedy="look at the log for what holds it up; run.patience says how long is waited",
    )
