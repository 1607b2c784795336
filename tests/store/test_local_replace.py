"""Replacing an object of a folder: other bytes under its name, or nothing; its tag and its readers stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from archiver.errors import AlreadyExistsError, InvalidNameError, ObjectNotFoundError, StoreFullError
from archiver.store.local import LocalStore

from .conftest import files
from .contract import NAME, InterruptedBodyError
from .test_local import TAG, run_procs

OLD = NAME.encode() * 1000
NEW = b"newbytes" * 100


def test_the_bytes_change_and_the_tag_stays(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"old"], retention="hold")
    was = store.head(NAME)
    info = store.replace(NAME, [b"ne", b"", b"wer"], was=was)
    assert (info.name, info.size, info.retention) == (NAME, 5, "hold")
    assert info.etag != was.etag
    assert store.head(NAME) == info
    assert [replace(found, retention="hold") for found in store.list()] == [info]
    assert store.read(NAME, limit=9) == b"newer"
    assert files(root) == [TAG, NAME]


def test_who_reads_the_old_object_reads_it_to_its_end(store: LocalStore) -> None:
    store.create(NAME, [b"a" * 1_000_000], retention="live")
    with store.open(NAME) as file:
        assert file.read(1) == b"a"
        store.replace(NAME, [b"b"], was=store.head(NAME))
        assert file.read() == b"a" * 999_999


def test_its_own_old_bytes_can_be_the_body(store: LocalStore) -> None:
    """As re-keying does: what is written comes from the object that is replaced."""
    store.create(NAME, [b"header", b"payload"], retention="live")

    def body() -> Iterator[bytes]:
        yield b"new header"
        with store.open(NAME, offset=6) as file:
            yield file.read()

    store.replace(NAME, body(), was=store.head(NAME))
    assert store.read(NAME, limit=99) == b"new headerpayload"


def test_another_state_than_was_is_refused(store: LocalStore) -> None:
    store.create(NAME, [b"one"], retention="live")
    first = store.head(NAME)
    second = store.replace(NAME, [b"two"], was=first)
    forged = (first, replace(second, etag=None), replace(second, size=4))
    for was in (*forged, replace(second, modified=second.modified + timedelta(seconds=1))):
        with pytest.raises(AlreadyExistsError, match=f"{NAME} was changed by somebody else"):
            store.replace(NAME, [b"three"], was=was)
    assert (store.head(NAME), store.read(NAME, limit=9)) == (second, b"two")
    store.retag(NAME, "hold")
    assert store.replace(NAME, [b"three"], was=second).retention == "hold"  # the tag is no part of its state


def test_a_change_while_the_body_is_written_is_refused(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"old"], retention="live")

    def body() -> Iterator[bytes]:
        yield b"mine"
        store.replace(NAME, [b"theirs"], was=store.head(NAME))

    with pytest.raises(AlreadyExistsError):
        store.replace(NAME, body(), was=store.head(NAME))
    assert store.read(NAME, limit=9) == b"theirs"
    assert files(root) == [TAG, NAME]


def test_a_deletion_while_the_body_is_written_is_refused(store: LocalStore) -> None:
    store.create(NAME, [b"old"], retention="live")

    def body() -> Iterator[bytes]:
        yield b"mine"
        store.delete(NAME)

    with pytest.raises(ObjectNotFoundError):
        store.replace(NAME, body(), was=store.head(NAME))
    assert list(store.list()) == []


def test_what_is_not_there_is_not_replaced(store: LocalStore, root: Path) -> None:
    was = store.create(NAME, [b"x"], retention="live")
    store.delete(NAME)
    with pytest.raises(ObjectNotFoundError, match=NAME):
        store.replace(NAME, [b"y"], was=was)
    with pytest.raises(InvalidNameError):
        store.replace("../x", [b"y"], was=was)
    assert files(root) == []


def test_a_body_that_fails_changes_nothing(store: LocalStore, root: Path) -> None:
    was = store.create(NAME, [b"old"], retention="live")

    def body() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise InterruptedBodyError

    with pytest.raises(InterruptedBodyError):
        store.replace(NAME, body(), was=was)
    assert (store.head(NAME), store.read(NAME, limit=9)) == (was, b"old")
    assert files(root) == [TAG, NAME]


def test_an_object_without_a_class_gets_none(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="live")
    (root / TAG).unlink()
    assert store.replace(NAME, [b"y"], was=store.head(NAME)).retention is None
    assert store.head(NAME).retention is None


def test_a_link_in_the_place_of_the_object_is_not_followed(store: LocalStore, root: Path) -> None:
    was = store.create(NAME, [b"x"], retention="live")
    (root / NAME).unlink()
    (root / "elsewhere").write_bytes(b"x")
    (root / NAME).symlink_to(root / "elsewhere")
    with pytest.raises(Exception, match="not the plain file"):
        store.replace(NAME, [b"y"], was=was)
    assert (root / "elsewhere").read_bytes() == b"x"


def test_a_full_disk_changes_nothing(small_disk: Path) -> None:
    store = LocalStore(small_disk)
    was = store.create(NAME, [b"x"], retention="live")
    with pytest.raises(StoreFullError):
        store.replace(NAME, [bytes(4096)] * 100, was=was)
    assert (store.head(NAME), store.read(NAME, limit=9)) == (was, b"x")


def test_file_and_folder_are_synced_in_order(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name open files")
    was = store.create(NAME, [b"x"], retention="live")
    done: list[str] = []
    fsync, rename = os.fsync, os.rename

    def recorded(handle: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{handle}").readlink()).rpartition("/store")[2])
        fsync(handle)

    def renamed(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        done.append("rename")
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(os, "rename", renamed)
    store.replace(NAME, [b"y"], was=was)
    assert done[0].startswith("/.tmp/")
    assert done[1:] == ["rename", "/records/run"]


def test_one_of_many_processes_replaces_a_state(store: LocalStore, root: Path) -> None:
    rounds = run_procs("race_replace", root)
    assert len(rounds) == 10
    for name, winners, codes in rounds:
        assert (len(winners), codes) == (1, [0, 1, 1, 1])
        assert store.read(name, limit=9999) == b"%d" % winners[0] * 100
        assert store.head(name).retention == "hold"
    assert list((root / ".tmp").iterdir()) == []


def test_a_writer_killed_before_any_system_call_leaves_the_old_or_the_new(root: Path) -> None:
    survivor = run_procs("kill_replace_steps", root)
    assert survivor > 15
    seen = []
    for number in range(1, survivor + 1):
        store = LocalStore(root / str(number))
        (info,) = store.list()
        assert store.head(NAME).retention == "record"
        seen.append(store.read(NAME, limit=99_999))
        store.replace(NAME, [b"again"], was=store.head(NAME))  # the dead hold nothing
        assert info.size == len(seen[-1])
    assert set(seen) == {OLD, NEW}
    assert seen == sorted(seen, key=lambda data: data == NEW), "once it is replaced it stays so"
