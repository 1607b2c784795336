"""The folder store: the contract of all stores, what lies on the disk, writers that race or die."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import (
    ObjectNotFoundError,
    StoreUnreachableError,
)
from archiver.store import tag, temp
from archiver.store.local import LocalStore

from .conftest import files
from .contract import NAME, StoreContract
from .contract_replace import ReplaceContract

TAG = "records/run/.00000001.age.class"
PROCS = Path(__file__).with_name("procs.py")


class TestLocalStore(StoreContract, ReplaceContract):
    """The contract, on a folder."""


def run_procs(verb: str, root: Path) -> Any:
    done = subprocess.run([sys.executable, PROCS, verb, root], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_an_object_is_private_and_its_tag_lies_beside(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="success")
    assert files(root) == [TAG, NAME]
    assert (root / TAG).read_bytes() == b"success        \n"
    for name in files(root):
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o600
    for inner in ("records", "records/run", ".tmp"):
        assert stat.S_IMODE((root / inner).stat().st_mode) == 0o700
    store.delete(NAME)
    assert files(root) == []


def test_the_tag_is_there_before_the_object_is_seen(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    link = os.link

    def watched(*args: Any, **named: Any) -> None:
        seen.append(files(root))
        link(*args, **named)

    monkeypatch.setattr(os, "link", watched)
    store.create(NAME, [b"x"], retention="hold")
    assert [[name for name in names if not name.startswith(".tmp/")] for names in seen] == [[TAG]]
    assert (root / TAG).read_text().strip() == "hold"


def test_an_object_without_a_readable_tag_has_no_class(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="live")
    (root / TAG).write_text("a class of a later version")
    assert store.head(NAME).retention is None
    (root / TAG).unlink()
    assert store.head(NAME).retention is None
    store.retag(NAME, "hold")
    assert store.head(NAME).retention == "hold"
    (root / TAG).unlink()
    store.delete(NAME)
    assert files(root) == []


def test_a_tag_that_a_dead_writer_left_does_not_matter(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="hold")
    (root / NAME).unlink()
    assert list(store.list()) == []
    with pytest.raises(ObjectNotFoundError):
        store.retag(NAME, "live")
    store.create(NAME, [b"y"], retention="live")
    assert store.head(NAME).retention == "live"


def test_file_and_folders_are_synced_in_order(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, link = os.fsync, os.link

    def recorded(handle: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{handle}").readlink()).rpartition("/store")[2])
        fsync(handle)

    def linked(*args: Any, **named: Any) -> None:
        done.append("link")
        link(*args, **named)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name open files")
    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(os, "link", linked)
    store.create(NAME, [b"x"], retention="live")
    assert done[0].startswith("/.tmp/")
    assert done[1:] == [f"/{TAG}", "link", "/records/run", "", "/records"]
    done.clear()
    store.create("records/run/00000002.age", [b"x"], retention="live")
    assert done[2:] == ["link", "/records/run"]


def test_foreign_and_hidden_files_are_not_listed(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="live")
    for name in (".DS_Store", "records/.hidden", "records/run/with space", "records/run/ä", "-x", "a" * 241):
        (root / name).write_text("foreign")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("foreign")
    (root / os.fsdecode(b"\xff")).write_text("foreign")
    assert [info.name for info in store.list()] == [NAME]


def test_one_process_wins_a_name(store: LocalStore, root: Path) -> None:
    rounds = run_procs("race", root)
    assert len(rounds) == 15
    for name, winners, codes in rounds:
        assert (len(winners), codes) == (1, [0, 1, 1, 1, 1, 1])
        assert store.read(name, limit=9999) == winners[0].encode() * 100
        assert store.head(name).retention == winners[0]
    assert [info.name for info in store.list()] == sorted(name for name, _, _ in rounds)
    assert list((root / ".tmp").iterdir()) == []


def check_survivors(store: LocalStore) -> set[str]:
    """Every object that is seen is whole and tagged."""
    seen = set()
    for info in store.list():
        assert store.read(info.name, limit=99_999) == info.name.encode() * 1000
        assert store.head(info.name).retention == "record"
        seen.add(info.name)
    return seen


def test_a_writer_killed_before_any_system_call_leaves_nothing_half(root: Path) -> None:
    survivor = run_procs("kill_steps", root)
    assert survivor > 15
    seen = []
    for number in range(1, survivor + 1):
        store = LocalStore(root / str(number))
        seen.append(check_survivors(store) == {NAME})
        if not seen[-1]:
            store.create(NAME, [NAME.encode() * 1000], retention="record")
        assert check_survivors(store) == {NAME}
    assert seen == sorted(seen), "once it is seen it stays seen"
    assert (seen[0], seen[-1]) == (False, True)


def test_a_writer_killed_at_any_moment_leaves_nothing_half(store: LocalStore, root: Path) -> None:
    returned = run_procs("kill_randomly", root)
    assert returned[0] == 1
    seen = check_survivors(store)
    assert {f"records/run-{number % 7}/{number:08d}.age" for number in returned} <= seen


def test_what_dead_writers_left_is_removed_and_live_writers_keep_theirs(
    store: LocalStore, root: Path
) -> None:
    store.create("records/run/00000002.age", [b"first use removes too"], retention="live")
    old = time.time() - temp.GRACE - 1

    def body() -> Iterator[bytes]:
        yield b"live"
        (mine,) = (root / ".tmp").iterdir()
        os.utime(mine, (old, old))
        for name in ("0" * 32, "1" * 32, "not ours"):
            (root / ".tmp" / name).write_bytes(b"dead")
            os.utime(root / ".tmp" / name, (old, old))
        (root / ".tmp" / ("2" * 32)).write_bytes(b"young")
        os.mkfifo(root / ".tmp" / ("3" * 32))
        LocalStore(root).create("records/run/00000003.age", [b"x"], retention="live")
        left = {path.name for path in (root / ".tmp").iterdir()}
        assert left == {mine.name, "2" * 32, "3" * 32, "not ours"}

    store.create(NAME, body(), retention="live")
    assert store.read(NAME, limit=9) == b"live"


def test_a_tag_deleted_while_a_creator_opens_it_is_not_used(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(NAME, [b"old"], retention="hold")
    (root / NAME).unlink()  # a delete is half done: the object is gone, its tag not yet
    lock, late = tag._lock, [root / TAG]

    def late_deleter(handle: int) -> bool:
        if late:
            late.pop().unlink()
        return lock(handle)

    monkeypatch.setattr(tag, "_lock", late_deleter)
    store.create(NAME, [b"new"], retention="live")
    assert store.head(NAME).retention == "live"


def test_a_lock_that_a_stopped_process_holds_is_waited_for_only_so_long(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(NAME, [b"x"], retention="live")
    monkeypatch.setattr(tag, "_PATIENCE", 0.05)
    with (root / TAG).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreUnreachableError, match="held the tag"):
            store.retag(NAME, "hold")
    store.retag(NAME, "hold")
