"""What this machine remembers of the runs that it archived, so that nothing is read or asked again.

    <sweep.state>/<store id>/state.db       mode 0600; lost or damaged it is made anew, and costs reads alone
    <sweep.state>/<store id>/lock           held by the sweep under way

What the store says counts: of a run that is not in here, its records tell whether it was archived. A writer
that cannot read them has this memory alone.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver import jsonio
from archiver.config import state_home
from archiver.errors import ConfigError, NotSerialisableError
from archiver.model import Record
from archiver.sweep.disk import make_folder, translated

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup

FILE_NAME: Final = "state.db"
VERSION: Final = 1
_PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes to it."""
_TABLES: Final = """
create table if not exists runs (
  kind text not null, key blob not null, stamp text not null, content text not null, run text not null,
  seq integer not null, outcome text not null, what text not null, why text not null, record blob,
  sha256 text not null, primary key (kind, key)
) without rowid;
create index if not exists by_run on runs (run);
create table if not exists heads (
  run text primary key, seq integer not null, outcome text not null, at real not null
) without rowid;
create table if not exists owners (run text primary key, kind text not null, key blob not null) without rowid;
create table if not exists said (
  kind text not null, key blob not null, stamp text not null, primary key (kind, key)
) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one run of a source."""

    kind: str
    key: bytes
    """What `key_of` makes of its name within its source."""
    stamp: str
    """Of its files when they were read; empty where they changed meanwhile."""
    content: str
    run: str
    seq: int
    """The record that holds this content; 0 for none."""
    outcome: str
    what: str
    """`archived`; `refused`, `failed` and `unconfirmed`, which are not tried again; `begun`: the next number
    may hold this content, and this writer cannot read it."""
    why: str = ""
    record: bytes | None = None
    """The record itself, for a writer that cannot read it."""
    sha256: str = ""

    @property
    def document(self) -> Record | None:
        """The record, if it was kept."""
        if self.record is None:
            return None
        with suppress(ValueError, NotSerialisableError):
            return Record.model_validate(jsonio.loads(self.record))
        return None


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest record of a run in the store, as it was seen last; `at` in seconds since 1970."""

    run: str
    seq: int
    outcome: str
    at: float


_COLUMNS: Final = tuple(field.name for field in fields(Known))


def key_of(name: str) -> bytes:
    """What a run of a source is called in the memory: a path may hold a credential, its digest does not."""
    return hashlib.sha256(os.fsencode(name)).digest()


def folder(settings: Settings, store: str) -> Path:
    """Where the memory of this store lies; `ConfigError` without a home."""
    return (settings.sweep.state or state_home() / "sweep") / store


class State:
    """The memory of one store; safe with several threads, and several processes at once."""

    def __init__(self, path: Path, connection: sqlite3.Connection, anew: str = "") -> None:
        """Use `open_state`."""
        self.path = path
        self.anew = anew
        """What was wrong with the one before, if it had to be put aside."""
        self.names: dict[bytes, str] = {}
        """What runs that this sweep has found are called; it is not kept."""
        self._connection = connection
        self._lock = threading.Lock()

    def all(self) -> dict[tuple[str, bytes], Known]:
        """All that is remembered of sources."""
        rows = self.do(f"select {', '.join(_COLUMNS)} from runs")  # noqa: S608 - names of this module
        return {(known.kind, known.key): known for known in (Known(*row) for row in rows)}

    def get(self, kind: str, key: bytes) -> Known | None:
        """What is remembered of that run of a source."""
        query = f"select {', '.join(_COLUMNS)} from runs where kind = ? and key = ?"  # noqa: S608 - as above
        found = self.do(query, (kind, key))
        return Known(*found[0]) if found else None

    def of_run(self, run: str) -> Known | None:
        """The furthest that is remembered of the run, whichever source it came from."""
        query = (
            f"select {', '.join(_COLUMNS)} from runs where run = ? "  # noqa: S608 - as above
            "order by seq desc, record is null limit 1"
        )
        found = self.do(query, (run,))
        return Known(*found[0]) if found else None

    def put(self, known: Known) -> None:
        """Remember this, in place of what was remembered of the same run of the source."""
        marks = ", ".join("?" * len(_COLUMNS))
        values = [getattr(known, name) for name in _COLUMNS]
        self.do(f"insert or replace into runs ({', '.join(_COLUMNS)}) values ({marks})", values)  # noqa: S608

    def heads(self) -> dict[str, Standing]:
        """The newest records that were seen."""
        return {row[0]: Standing(*row) for row in self.do("select run, seq, outcome, at from heads")}

    def put_heads(self, heads: list[Standing]) -> None:
        """Remember the newest records of these runs."""
        self.do_many(
            "insert or replace into heads values (?, ?, ?, ?)",
            [(one.run, one.seq, one.outcome, one.at) for one in heads],
        )

    def drop_heads(self, runs: list[str]) -> None:
        """Forget runs that the store has no record of any more."""
        self.do_many("delete from heads where run = ?", [(run,) for run in runs])

    def forget(self, run: str) -> int:
        """Forget all of a run; gives how many sources of it were remembered."""
        with self._using():
            count = self._connection.execute("delete from runs where run = ?", (run,)).rowcount
            for table in ("heads", "owners"):
                self._connection.execute(f"delete from {table} where run = ?", (run,))  # noqa: S608 - as above
        return count

    def close(self) -> None:
        """To be used no more."""
        with self._lock:
            self._connection.close()

    def do(self, query: str, values: Any = ()) -> list[Any]:
        """The answer of the database; raises as `open_state`."""
        with self._using():
            return self._connection.execute(query, values).fetchall()

    def do_many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """The same query for each of these rows, all or none."""
        with self._using():
            self._connection.executemany(query, rows)

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock, translated(self.path), self._connection:
            yield


def open_state(setup: Setup) -> State:
    """The memory of the configured store; a damaged one is put aside, and one made anew.

    Raises `StoreFullError`, `StoreDeniedError` or `StoreError` where it cannot be written.
    """
    path = folder(setup.settings, setup.require_store_id()) / FILE_NAME
    with translated(path):
        make_folder(path.parent)
        try:
            return State(path, _connected(path))
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
                raise
            aside = path.with_name(f"{FILE_NAME}.damaged-{secrets.token_hex(4)}")
            path.rename(aside)
            with suppress(FileNotFoundError):
                path.with_name(f"{FILE_NAME}-journal").unlink()
            return State(path, _connected(path), f"{path} was damaged ({error}), and lies in {aside} now")


def read_state(setup: Setup) -> State:
    """The same to be read alone: nothing is made, and what cannot be read counts as nothing."""
    path = folder(setup.settings, setup.require_store_id()) / FILE_NAME
    held = sqlite3.connect(":memory:", check_same_thread=False)
    held.executescript(_TABLES)
    with suppress(sqlite3.DatabaseError, OSError):
        if path.is_file():
            there = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                there.backup(held)
            finally:
                there.close()
    try:
        held.execute("select count(*) from runs, heads")
    except sqlite3.DatabaseError:
        held = sqlite3.connect(":memory:", check_same_thread=False)
        held.executescript(_TABLES)
    return State(path, held)


def forget(run: str, setup: Setup) -> int:
    """Forget all that this machine remembers of a run; gives how many sources of it were remembered."""
    if setup.store_id is None:
        return 0
    try:
        if not (folder(setup.settings, setup.store_id) / FILE_NAME).exists():
            return 0
    except ConfigError:
        return 0
    state = open_state(setup)
    try:
        return state.forget(run)
    finally:
        state.close()


def _connected(path: Path) -> sqlite3.Connection:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.close(handle)
    connection = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
    try:
        version = connection.execute("pragma user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it has version {version}, and this release reads {VERSION}")
        connection.executescript(_TABLES)
        connection.execute(f"pragma user_version = {VERSION}")
        connection.execute("pragma synchronous = normal")
        if connection.execute("pragma quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its pages do not fit together")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """A table of another shape; anything else that is not possible says nothing of the content."""
    return "no such column" in str(error) or "no column" in str(error)
