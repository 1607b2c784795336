"""A consistent copy of an SQLite database that somebody may be writing to, made in memory.

Its newest pages lie in the write-ahead log beside it, or its oldest in a rollback journal, so the file alone
is not the database. SQLite copies it through its own locks, with every file opened for reading only: without
that a reader makes or writes to the index of the log (`-shm`), and the folder is not ours. Nothing is opened
here by hand, because closing a file takes the locks away that this process may hold on it elsewhere.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from archiver.workspace.found import stamp_of
from archiver.workspace.reading import READ

_BESIDE: Final = ("-wal", "-shm", "-journal")
_MAGIC: Final = b"SQLite format 3\0"
_SMALLEST: Final = 512
"""Bytes of the smallest page: what is less is no database yet."""
_PATIENCE: Final = 0.5
"""Seconds to wait for a writer."""
_LONGEST: Final = 30.0
"""Seconds that a copy may take."""
_PAGES: Final = 1024
"""How many are copied between two looks at the clock."""
_MEANING: Final = {
    sqlite3.SQLITE_BUSY: "somebody holds it locked",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged",
    sqlite3.SQLITE_IOERR: "it cannot be read",
    sqlite3.SQLITE_PROTOCOL: "others write to it all the time",
    sqlite3.SQLITE_READONLY: "a transaction in it was interrupted",
}


class CopyError(Exception):
    """Why no consistent copy could be made: half a sentence."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A database as one file, and when the newest part of it was written, in nanoseconds since 1970."""

    content: bytes
    modified: int


@dataclass(frozen=True, slots=True)
class Databases:
    """Names of a folder that may be databases in use, and names that are part of one that was copied."""

    candidates: frozenset[str] = frozenset()
    absorbed: set[str] = field(default_factory=set)

    @classmethod
    def among(cls, names: Iterable[str]) -> Databases:
        """By the names of the files that SQLite puts beside a database."""
        logs = [name for name in names if name.endswith(("-wal", "-journal"))]
        return cls(frozenset(name.rpartition("-")[0] for name in logs))

    def absorb(self, name: str) -> None:
        """The copy of this database has in it what lies beside it."""
        self.absorbed.update(name + end for end in _BESIDE)


def copied(place: Path, around: int, seen: os.stat_result, limit: int) -> Copy | None:
    """The database as it is at one moment; None for what is no database. At most `limit` bytes.

    `around`: a handle of its folder. `seen`: what lies there. Raises `CopyError`.
    """
    if seen.st_size < _SMALLEST:
        return None
    beside = {end: _beside(place.name + end, around) for end in _BESIDE}
    log = beside["-wal"]
    if log is not None and beside["-shm"] is None:
        # Nobody has it open, so there is no lock to lose.
        if not _is_database(place.name, around):
            return None
        raise CopyError("its log has no index, so nobody has it open")
    if seen.st_size > limit or (log is not None and log.st_size > limit):
        raise CopyError(f"it or its log has more than {limit} bytes")
    _check_same(place, seen)
    try:
        content = _content(place, limit)
    except sqlite3.Error as error:
        if not _is_database(place.name, around):  # it is going to be read by hand anyway
            return None
        # Its own message may name tables, which nothing has redacted.
        code = getattr(error, "sqlite_errorcode", 0)
        raise CopyError(_MEANING.get(code & 0xFF, f"SQLite answers {code}")) from error
    _check_same(place, seen)
    newest = max(stamp_of(one).mtime_ns for one in (seen, log) if one is not None)
    return Copy(content, newest)


def _beside(name: str, around: int) -> os.stat_result | None:
    """The file of that name, if there is one; SQLite would wait for ever for a pipe to be written to."""
    try:
        seen = os.stat(name, dir_fd=around, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode):
        raise CopyError(f"its {name[name.rindex('-') :]} is no regular file")
    return seen


def _is_database(name: str, around: int) -> bool:
    try:
        handle = os.open(name, READ, dir_fd=around)
    except OSError:
        return False
    try:
        return os.pread(handle, len(_MAGIC), 0) == _MAGIC
    except OSError:
        return False
    finally:
        os.close(handle)


def _check_same(place: Path, seen: os.stat_result) -> None:
    """SQLite takes a path: it must lead to the very file, and not through a link that was put on the way."""
    try:
        now = place.stat()
    except OSError as error:
        raise CopyError("it was removed while it was read") from error
    if (now.st_dev, now.st_ino) != (seen.st_dev, seen.st_ino):
        raise CopyError("it was replaced while it was read")


def _content(place: Path, limit: int) -> bytes:
    deadline = time.monotonic() + _LONGEST

    def watch(*_: int) -> None:
        if time.monotonic() > deadline:
            raise CopyError(f"it took longer than {_LONGEST:g} s")

    uri = f"file:{quote(os.fsencode(place))}?mode=ro&readonly_shm=1"
    with (
        closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)) as source,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.execute("BEGIN")  # one moment for all that follows
        (pages,) = source.execute("PRAGMA page_count").fetchone()
        (size,) = source.execute("PRAGMA page_size").fetchone()
        if pages * size > limit:
            raise CopyError(f"it has {pages * size} bytes, the limit of a file is {limit}")
        source.backup(copy, pages=_PAGES, progress=watch)
        return copy.serialize()
