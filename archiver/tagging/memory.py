"""What the last sweep has seen of each run, so that a run to which nothing came is not read again.

    <folder>/<store id>.sqlite      a row a run: digest of its lists, when it is due, whether it is held

It is believed in nothing but that: a class is changed by what records and notes say. Without it all runs are
read once more.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

FORMAT: Final = 1
PATIENCE: Final = 10.0
"""Seconds to wait for another process that writes."""
DAMAGED: Final = ".damaged"
"""Behind the name of a file that was no database; there is one of them at most."""

_AWAY: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}
_TABLE = "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, seen TEXT, due INTEGER, held INTEGER)"
_BEFORE = "SELECT run, seen, due, held FROM runs WHERE run = ?"
_PUT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was seen of a run when nothing was left to be done."""

    run: str
    seen: str
    """Digest of what the lists said, and of the settings that matter."""
    due: datetime | None = None
    """When it has to be looked at again."""
    held: bool = False


class Memory:
    """Safe to share between threads, and with other processes. Nothing that goes wrong with it is raised."""

    def __init__(self, folder: Path | None, store: str, *, read_only: bool = False) -> None:
        """Without a folder nothing is remembered; `store` is the id of the store.

        With `read_only` a copy is used, and the file and all beside it stay as they are.
        """
        self._lock = threading.Lock()
        self._file = None if folder is None else folder / f"{store}.sqlite"
        self._database: sqlite3.Connection | None = None
        if self._file is not None and read_only:
            self._database = _copy(self._file)
            self._file = None
        elif self._file is not None:
            self._open(self._file)

    def close(self) -> None:
        """Nothing is remembered any more through this one."""
        with self._lock, suppress(sqlite3.Error):
            if self._database is not None:
                self._database.close()
            self._database = None

    def of(self, run: str) -> Remembered | None:
        """What is remembered of a run."""
        with self._using() as database:
            row = None if database is None else database.execute(_BEFORE, (run,)).fetchone()
            if row is None:
                return None
            found, seen, due, held = row
            at = None if due is None else datetime.fromtimestamp(int(due), UTC)
            return Remembered(str(found), str(seen), at, bool(held))
        return None

    def put(self, many: Iterable[Remembered]) -> None:
        """Remember them, all or none."""
        rows = [
            (one.run, one.seen, None if one.due is None else int(one.due.timestamp()), one.held)
            for one in many
        ]
        if not rows:
            return
        with self._using() as database:
            if database is not None:
                with database:
                    database.executemany(_PUT, rows)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection | None]:
        """The database, if there is one; one that is damaged is put aside, and made anew next time."""
        with self._lock:
            try:
                yield self._database
            except (sqlite3.Error, ValueError, OverflowError) as error:
                if not _is_away(error):
                    self._put_aside()

    def _open(self, file: Path) -> None:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made before the database is opened, so that it is private from the start.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError:
            return
        for _ in range(2):
            try:
                self._database = _connected(file)
            except sqlite3.Error as error:
                if _is_away(error):
                    return
                self._put_aside()
            else:
                return

    def _put_aside(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        if self._file is not None:
            with suppress(OSError):
                self._file.replace(f"{self._file}{DAMAGED}")
                Path(f"{self._file}-journal").unlink(missing_ok=True)


def _copy(file: Path) -> sqlite3.Connection | None:
    """The database in the memory of this process; None where it cannot be read as it is."""
    held = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as there:
            _demand_own(there.execute("PRAGMA user_version").fetchone()[0])
            there.backup(held)
        held.execute(_BEFORE, ("",)).fetchone()
    except sqlite3.Error:
        held.close()
        return None
    return held


def _is_away(error: Exception) -> bool:
    """Whether the file may be as it should: another process writes for long, or the disk is full or gone."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return isinstance(error, sqlite3.Error) and code & 0xFF in _AWAY


def _connected(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=PATIENCE, check_same_thread=False)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        _demand_own(version)
        database.execute("PRAGMA synchronous = OFF")  # what is lost is read once more
        with database:
            database.execute(_TABLE)
            database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute(_BEFORE, ("",)).fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _demand_own(version: int) -> None:
    if version not in (0, FORMAT):
        raise sqlite3.DatabaseError("of another release")
