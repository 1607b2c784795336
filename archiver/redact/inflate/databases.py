"""SQLite databases: the values of their tables, which their pages may hold in parts.

A database is read from a copy in memory by SQLite itself. Whatever its schema says, nothing of it is carried
out: only columns that are stored are read, from real tables, without views, triggers, functions or indexes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from archiver import jsonio
from archiver.redact.inflate.content import FAULTS, Budget, Content, UnseenError, why
from archiver.redact.inflate.wide import Wide

MAGIC: Final = b"SQLite format 3\0"
_VERSIONS: Final = slice(18, 20)
_NO_LOG: Final = b"\1\1"
"""A copy in memory cannot have a write-ahead log, and is not opened when its header says that it has one."""
_LONGEST_VALUE: Final = 16 << 20
_COLUMNS: Final = 4
"""Columns read at once, so that one row takes no more memory than so many values."""
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_STEPS_A_LOOK: Final = 10_000
_STORED: Final = frozenset({0, 3})
"""What `table_xinfo` calls a column that is stored: an ordinary one, or a generated one of that kind."""
_READS: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_TABLES: Final = "SELECT name, sql, type, rootpage FROM sqlite_master"
_ESCAPED: Final = ("\n", '"', "\\")
_BATCH: Final = 256 << 10
_SMALL: Final = 4 << 10


class Database:
    """A SQLite database, held in memory until it is whole."""

    def __init__(self, budget: Budget, depth: int) -> None:
        self._budget = budget
        self._depth = depth
        self._held = bytearray()
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        if self.failure is None and len(self._held) + len(chunk) > self._budget.limits.held:
            self.failure = f"SQLite: larger than {self._budget.limits.held >> 20} MiB"
            self._held = bytearray()
        if self.failure is None:
            self._held += chunk
        return iter(())

    def close(self) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
                self._open(base)
                yield from self._values(base)
        except sqlite3.Error as error:
            late = self._budget.is_late() or getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT"
            self.failure = why("SQLite", UnseenError("too much work") if late else error)
        except FAULTS as error:
            self.failure = why("SQLite", error)

    def _open(self, base: sqlite3.Connection) -> None:
        for limit, value in _LIMITS:
            base.setlimit(limit, value)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY"):
            base.execute(f"PRAGMA {pragma}")
        self._held[_VERSIONS] = _NO_LOG
        base.deserialize(self._held)
        self._held = bytearray()
        looks = self._budget.limits.steps // _STEPS_A_LOOK

        def stop() -> bool:
            nonlocal looks
            looks -= 1
            return looks < 0 or self._budget.is_late()

        base.set_progress_handler(stop, _STEPS_A_LOOK)
        base.set_authorizer(_may)
        base.text_factory = _text

    def _values(self, base: sqlite3.Connection) -> Iterator[bytes]:
        tables = base.execute(_TABLES).fetchmany(self._budget.limits.entries + 1)
        self._budget.entry(len(tables))
        yield b"\n".join(jsonio.dumps([name, sql]) for name, sql, _, _ in tables)
        for name, _, kind, page in tables:
            if kind == "table" and isinstance(page, int) and page > 0 and isinstance(name, str):
                yield from self._table(base, name)

    def _table(self, base: sqlite3.Connection, table: str) -> Iterator[bytes]:
        about = base.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        columns = [name for _, name, *_, hidden in about if hidden in _STORED]
        for at in range(0, len(columns), _COLUMNS):
            names = columns[at : at + _COLUMNS]
            wanted = ", ".join(map(_quoted, names))
            content = Content(self._budget, self._depth)
            held: list[bytes] = []
            size = 0
            for row in base.execute(f"SELECT {wanted} FROM {_quoted(table)} NOT INDEXED"):  # noqa: S608
                for piece in self._row(names, row):
                    held.append(piece)
                    size += len(piece)
                yield from self._blobs(row)
                if size > _BATCH:
                    yield from content.piece(b"\n".join((*held, b"")))
                    held, size = [], 0
            yield from content.piece(b"\n".join((*held, b"")))
            yield from content.close()

    def _row(self, names: list[str], row: tuple[Any, ...]) -> Iterator[bytes]:
        """The texts of a row, which the names of their columns tell more of; and small blobs as they are."""
        texts = {name: value for name, value in zip(names, row, strict=True) if isinstance(value, str)}
        if texts:
            yield jsonio.dumps(texts)
        for text in texts.values():
            if any(sign in text for sign in _ESCAPED):  # lines of their own, and JSON that is not quoted
                yield text.encode("utf-8", "replace")
        for value in row:
            if isinstance(value, bytes) and not self._is_file(value):
                yield value
                if b"\0" in value:
                    yield value.replace(b"\0", b"")  # of two or four bytes a character

    def _blobs(self, row: tuple[Any, ...]) -> Iterator[bytes]:
        """What stands in blobs that may be files themselves."""
        for value in row:
            if isinstance(value, bytes) and self._is_file(value):
                content = Content(self._budget, self._depth)
                yield from content.piece(value)
                yield from content.close()

    def _is_file(self, value: bytes) -> bool:
        if len(value) > _SMALL:
            return True
        inner = self._budget.inside(value, self._depth)
        return inner is not None and not isinstance(inner, Wide)


def _may(action: int, first: str | None, _second: str | None, _base: str | None, _by: str | None) -> int:
    """SQLite's question whether a statement may do something: it may read, and ask what columns there are."""
    reads = action in _READS or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo")
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
