"""A database is captured as it is at one moment, whoever writes to it, and nothing of it is touched."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from archiver.workspace import sqlite
from archiver.workspace.captured import WorkspaceLimits
from workspace.trees import Kept, captured, kept

WRITER = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=" + sys.argv[2])
database.execute("PRAGMA wal_autocheckpoint=20")
database.execute("CREATE TABLE IF NOT EXISTS pairs(number INTEGER, side TEXT, filler TEXT)")
number = 0
def pair():
    global number
    number += 1
    database.execute("BEGIN IMMEDIATE")
    for side in ("left", "right"):
        database.execute("INSERT INTO pairs VALUES (?, ?, ?)", (number, side, "x" * 500))
    database.execute("DELETE FROM pairs WHERE number BETWEEN 1 AND ?", (number - 50,))
    database.execute("COMMIT")
pair()
print("ready", flush=True)
for line in sys.stdin:
    command = line.strip()
    if command == "pair":
        pair()
    elif command == "die":
        os._exit(0)
    elif command == "open":
        database.execute("PRAGMA cache_size=2")
        database.execute("BEGIN EXCLUSIVE")
        for _ in range(200):
            database.execute("INSERT INTO pairs VALUES (-1, 'alone', ?)", ("y" * 500,))
    print("done", flush=True)
"""

FLOOD = (
    WRITER.split("for line in sys.stdin")[0]
    + """
import select
while not select.select([sys.stdin], [], [], 0)[0]:
    pair()
"""
)


class Writer:
    """A process that has a database open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def do(self, command: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()


@contextmanager
def writing(database: Path, mode: str = "WAL", program: str = WRITER) -> Iterator[Writer]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(database), mode],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Writer(process)
    finally:
        process.communicate("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def rows(content: bytes, place: Path) -> list[tuple[object, ...]]:
    """What a database of these bytes holds, opened as a file like anybody's."""
    place.write_bytes(content)
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.execute("SELECT number, side FROM pairs ORDER BY number, side").fetchall()


def untouched(folder: Path) -> dict[str, tuple[object, ...]]:
    """What lies in a folder. Under root SQLite gives a log the owner that it has: only that time is new."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.iterdir())]:
        seen = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        changed = (seen.st_uid, seen.st_gid) if os.geteuid() == 0 else seen.st_ctime_ns
        found[path.name] = (seen.st_ino, seen.st_size, seen.st_mode, seen.st_mtime_ns, changed, content)
    return found


def test_a_log_that_another_process_holds_open_is_in_the_copy(root: Path, tmp_path: Path) -> None:
    database = root / "what? 100% #1.db"
    with writing(database) as writer:
        writer.do("pair")
        before = untouched(root)
        assert len(before) == 4
        saved = kept(root, tmp_path / "objects")
        assert untouched(root) == before
        assert saved.paths == [database.name]
        assert saved.capture.skipped == []
        assert rows(saved.content(database.name), tmp_path / "a.db") == [
            (1, "left"), (1, "right"), (2, "left"), (2, "right"),
        ]  # fmt: skip
        assert saved.entries[0].modified == (root / f"{database.name}-wal").stat().st_mtime_ns
        assert kept(root, tmp_path / "objects").entries == saved.entries
        writer.do("pair")
        assert len(rows(kept(root, tmp_path / "objects").content(database.name), tmp_path / "b.db")) == 6


def check_pairs(saved: Kept, place: Path) -> object:
    """The newest pair; every pair is whole."""
    found = rows(saved.content("flooded.db"), place)
    assert len(found) % 2 == 0
    assert [number for number, _ in found[::2]] == [number for number, _ in found[1::2]]
    return found[-1][0]


def flooded(root: Path, tmp_path: Path, times: int) -> None:
    with writing(root / "flooded.db", program=FLOOD):
        newest: list[Any] = []
        for number in range(times):
            saved = kept(root, tmp_path / "objects")
            if saved.skipped:
                assert (
                    "without a consistent copy: others write to it all the time"
                    in saved.skipped["flooded.db"]
                )
                continue
            assert saved.paths == ["flooded.db"]
            newest.append(check_pairs(saved, tmp_path / f"{number}.db"))
        assert newest == sorted(newest)
        assert newest


def test_each_copy_is_of_one_moment_while_another_process_writes_all_the_time(
    root: Path, tmp_path: Path
) -> None:
    flooded(root, tmp_path, 8)


@pytest.mark.soak
def test_hundreds_of_copies_under_a_writer(root: Path, tmp_path: Path) -> None:
    flooded(root, tmp_path, 400)


def test_a_process_that_died_leaves_a_log_that_counts(root: Path, tmp_path: Path) -> None:
    with writing(root / "a.db") as writer:
        writer.do("die")
    before = untouched(root)
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["a.db"]
    assert rows(saved.content("a.db"), tmp_path / "copy.db") == [(1, "left"), (1, "right")]
    assert untouched(root) == before


def test_a_log_without_its_index_is_carried_beside_the_database(root: Path, tmp_path: Path) -> None:
    with writing(root / "a.db") as writer:
        writer.do("die")
    (root / "a.db-shm").unlink()
    before = untouched(root)
    saved = kept(root, tmp_path / "objects")
    assert untouched(root) == before
    assert saved.paths == ["a.db", "a.db-wal"]
    assert "nobody has it open" in saved.skipped["a.db"]
    saved.write(tmp_path / "again")
    with closing(sqlite3.connect(tmp_path / "again" / "a.db")) as database:
        assert database.execute("SELECT count(*) FROM pairs").fetchone() == (2,)


def test_a_transaction_that_was_interrupted_is_carried_with_its_journal(root: Path, tmp_path: Path) -> None:
    with writing(root / "a.db", "DELETE") as writer:
        writer.do("open")
        writer.process.kill()
    assert (root / "a.db-journal").stat().st_size > 512
    before = untouched(root)
    saved = kept(root, tmp_path / "objects")
    assert untouched(root) == before
    assert saved.paths == ["a.db", "a.db-journal"]
    assert saved.skipped == {
        "a.db": "it is carried as it lies there, without a consistent copy: "
        "a transaction in it was interrupted"
    }
    saved.write(tmp_path / "again")
    with closing(sqlite3.connect(tmp_path / "again" / "a.db")) as database:
        assert database.execute("SELECT count(*) FROM pairs").fetchone() == (2,)


def test_a_database_that_somebody_holds_locked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_PATIENCE", 0)
    with writing(root / "a.db", "DELETE") as writer:
        writer.do("open")
        saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["a.db", "a.db-journal"]
    assert saved.skipped["a.db"].endswith("somebody holds it locked")


def test_a_journal_of_a_transaction_that_is_over(root: Path, tmp_path: Path) -> None:
    with writing(root / "a.db", "PERSIST") as writer:
        writer.do("pair")
        saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["a.db"]
    assert len(rows(saved.content("a.db"), tmp_path / "copy.db")) == 4


def test_a_database_that_nobody_writes_to_is_a_file(root: Path, tmp_path: Path) -> None:
    with writing(root / "a.db", "DELETE"):
        pass
    assert next(captured(root).found).source == str(root / "a.db")


def no_database(root: Path) -> None:
    (root / "a.db").write_bytes(b"some notes\n" * 100)
    (root / "a.db-wal").write_bytes(b"more notes\n")


def no_database_with_an_index(root: Path) -> None:
    no_database(root)
    (root / "a.db-shm").write_bytes(b"")


def no_database_with_a_journal(root: Path) -> None:
    no_database(root)
    (root / "a.db-wal").rename(root / "a.db-journal")


def an_empty_file(root: Path) -> None:
    (root / "a.db").touch()
    (root / "a.db-journal").touch()


def a_folder(root: Path) -> None:
    (root / "a.db").mkdir()
    (root / "a.db-wal").touch()


@pytest.mark.parametrize(
    "make", [no_database, no_database_with_an_index, no_database_with_a_journal, an_empty_file, a_folder]
)
def test_what_is_no_database_is_carried_without_a_word(
    root: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(root)
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == sorted(path.name for path in root.iterdir())
    assert saved.capture.skipped == []


def with_a_log(root: Path) -> None:
    with writing(root / "a.db") as writer:
        writer.do("die")


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_pipe_beside_it_is_not_waited_for(root: Path, tmp_path: Path, end: str) -> None:
    with_a_log(root)
    (root / f"a.db{end}").unlink(missing_ok=True)
    os.mkfifo(root / f"a.db{end}")
    saved = kept(root, tmp_path / "objects")
    assert saved.skipped["a.db"].endswith(f"its {end} is no regular file")
    assert saved.skipped[f"a.db{end}"] == "it is a named pipe"


def test_a_damaged_database(root: Path, tmp_path: Path) -> None:
    with_a_log(root)
    content = bytearray((root / "a.db").read_bytes())
    content[16:18] = b"\x02\x01"  # a size of pages that is none
    (root / "a.db").write_bytes(content)
    saved = kept(root, tmp_path / "objects")
    assert "a.db" in saved.paths


def test_a_database_over_the_limit(root: Path, tmp_path: Path) -> None:
    with_a_log(root)
    size = (root / "a.db").stat().st_size
    log = (root / "a.db-wal").stat().st_size
    assert log > size
    saved = kept(root, tmp_path / "objects", limits=WorkspaceLimits(file=size))
    assert saved.paths == ["a.db"]
    assert saved.skipped["a.db"].endswith(f"it or its log has more than {size} bytes")
    assert saved.skipped["a.db-wal"] == f"it has {log} bytes, the limit of a file is {size}"


def test_a_copy_that_takes_too_long(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_log(root)
    monkeypatch.setattr(sqlite, "_LONGEST", -1)
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["a.db", "a.db-shm", "a.db-wal"]
    assert "took longer" in saved.skipped["a.db"]


def test_a_folder_that_becomes_a_link_leads_to_no_other_database(root: Path, tmp_path: Path) -> None:
    for folder in (root / "a", tmp_path / "outside"):
        folder.mkdir()
        with_a_log(folder)
    capture = captured(root)
    assert next(capture.found).entry.path == "a"
    original = sqlite.copied

    def swapped(place: Path, around: int, seen: os.stat_result, limit: int) -> sqlite.Copy | None:
        (root / "a").rename(tmp_path / "moved")
        (root / "a").symlink_to(tmp_path / "outside")
        return original(place, around, seen, limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("archiver.workspace.walking.copied", swapped)
        found = list(capture.found)
    assert all(isinstance(one.source, str) for one in found)
    assert capture.skipped[0].reason.endswith("it was replaced while it was read")
