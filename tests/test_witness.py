"""The memory outside the store: it only goes forward, and damage to it is never "not seen yet"."""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver import witness as module
from archiver.errors import ForkError, InvalidNameError, UnsupportedSchemaError, WitnessError
from archiver.witness import FolderWitness, Seen

STORE = "0" * 32
AT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)


def seen(seq: int, salt: str = "") -> Seen:
    digest = hashlib.sha256(f"{seq}{salt}".encode()).hexdigest()
    return Seen(seq=seq, sha256=digest, recorded_at=AT, seen_at=AT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "witness"


@pytest.fixture
def witness(folder: Path) -> FolderWitness:
    return FolderWitness(folder)


def test_what_was_seen_comes_back_and_is_private(witness: FolderWitness, folder: Path) -> None:
    assert witness.seen(STORE, "a/b c") is None
    assert list(witness) == []
    assert not folder.exists()
    witness.remember(STORE, "a/b c", seen(3))
    assert FolderWitness(folder).seen(STORE, "a/b c") == seen(3)
    path = folder / STORE / "a~2Fb~20c.json"
    assert witness.where(STORE, "a/b c") == str(path)
    assert json.loads(path.read_text()) == {
        "format": 1, "store": STORE, "run": "a/b c", "seq": 3, "sha256": seen(3).sha256,
        "recorded_at": "2026-03-01T12:30:00.250Z", "seen_at": "2026-03-01T12:30:00.250Z",
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for made in (folder, folder / STORE):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {one.name for one in path.parent.iterdir()} == {path.name, ".lock"}


def test_it_only_goes_forward(witness: FolderWitness) -> None:
    witness.remember(STORE, "r", seen(5))
    witness.remember(STORE, "r", seen(4))
    assert witness.seen(STORE, "r") == seen(5)
    witness.remember(STORE, "r", seen(5))
    witness.remember(STORE, "r", seen(6))
    assert witness.seen(STORE, "r") == seen(6)


def test_another_record_of_the_same_number_is_a_fork(witness: FolderWitness) -> None:
    witness.remember(STORE, "r", seen(5))
    with pytest.raises(ForkError, match="record 5") as caught:
        witness.remember(STORE, "r", seen(5, "other"))
    assert "r.json" in str(caught.value)
    assert "2026-03-01 12:30:00 UTC" in str(caught.value)
    assert witness.seen(STORE, "r") == seen(5)


def test_runs_and_stores_are_kept_apart(witness: FolderWitness) -> None:
    other = "f" * 32
    witness.remember(STORE, "r", seen(1))
    witness.remember(STORE, "s", seen(2))
    witness.remember(other, "r", seen(3))
    found = [(one.store, one.run, one.seen) for one in witness]
    assert found == [(STORE, "r", seen(1)), (STORE, "s", seen(2)), (other, "r", seen(3))]
    assert witness.forget(STORE, "r")
    assert not witness.forget(STORE, "r")
    assert not witness.forget("e" * 32, "r")
    assert [(one.store, one.run) for one in witness] == [(STORE, "s"), (other, "r")]


GOOD: dict[str, Any] = {
    "format": 1, "store": STORE, "run": "r", "seq": 3, "sha256": "a" * 64,
    "recorded_at": "2026-03-01T12:30:00.250Z", "seen_at": "2026-03-01T12:30:00.250Z",
}  # fmt: skip


def damaged() -> list[bytes]:
    whole = json.dumps(GOOD).encode()
    changed: list[dict[str, Any]] = [
        {"seq": 0}, {"seq": -1}, {"seq": 10**30}, {"seq": 100_000_000}, {"seq": "3"}, {"seq": True},
        {"seq": 3.0},
        {"sha256": "A" * 64}, {"sha256": "a" * 63}, {"sha256": None}, {"recorded_at": "2026-03-01T12:30:00"},
        {"seen_at": "yesterday"}, {"run": "s"}, {"run": "\x1b[2J"}, {"store": "1" * 32}, {"format": 0},
        {"format": "1"}, {"more": 1},
    ]  # fmt: skip
    without = [{key: value for key, value in GOOD.items() if key != left} for left in GOOD]
    return [
        b"", whole[:-1], whole[: len(whole) // 2], b"\0" * len(whole), whole + whole, b"[]", b"null", b"3",
        b"\xff",
        b"[" * 5000, b"[" * 3000 + b"]" * 3000, whole + b" " * (1 << 20),
        *(json.dumps({**GOOD, **change}).encode() for change in changed),
        *(json.dumps(document).encode() for document in without),
    ]  # fmt: skip


@pytest.mark.parametrize("data", damaged())
def test_damage_is_an_error_that_names_the_file_and_can_be_forgotten(
    witness: FolderWitness, folder: Path, data: bytes
) -> None:
    witness.remember(STORE, "r", seen(3))
    path = folder / STORE / "r.json"
    path.write_bytes(data)
    with pytest.raises(WitnessError) as caught:
        witness.seen(STORE, "r")
    assert str(path) in str(caught.value)
    assert "archiver witness forget" in (caught.value.remedy or "")
    with pytest.raises(WitnessError):
        witness.remember(STORE, "r", seen(9))
    assert path.read_bytes() == data
    (listed,) = witness
    assert (listed.run, listed.seen, type(listed.error)) == ("r", None, WitnessError)
    assert witness.forget(STORE, "r")
    assert witness.seen(STORE, "r") is None


def test_a_newer_format_is_no_damage(witness: FolderWitness, folder: Path) -> None:
    witness.remember(STORE, "r", seen(3))
    (folder / STORE / "r.json").write_text(json.dumps({**GOOD, "format": 2, "more": 1}))
    with pytest.raises(UnsupportedSchemaError, match="witness format 2"):
        witness.seen(STORE, "r")


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_neither_followed_nor_waited_for(
    witness: FolderWitness, folder: Path, tmp_path: Path, kind: str
) -> None:
    witness.remember(STORE, "r", seen(3))
    path = folder / STORE / "r.json"
    elsewhere = tmp_path / "elsewhere.json"
    path.rename(elsewhere)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(elsewhere)
    else:
        path.mkdir()
    with pytest.raises(WitnessError, match=r"r\.json"):
        witness.seen(STORE, "r")
    with pytest.raises(WitnessError):
        witness.remember(STORE, "r", seen(4))
    assert json.loads(elsewhere.read_text())["seq"] == 3


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    witness = FolderWitness(tmp_path / "file")
    with pytest.raises(WitnessError, match="Not a directory"):
        witness.seen(STORE, "r")
    with pytest.raises(WitnessError):
        witness.remember(STORE, "r", seen(1))
    with pytest.raises(WitnessError):
        list(witness)


@pytest.mark.parametrize("store", ["", "..", "../x", "0" * 31, "G" * 32, "0" * 32 + "\n", "A" * 32])
def test_a_store_id_is_no_path(witness: FolderWitness, folder: Path, store: str) -> None:
    with pytest.raises(InvalidNameError):
        witness.remember(store, "r", seen(1))
    assert not folder.exists()


@pytest.mark.parametrize("run", ["..", ".", "../../x", "-x", "~", "a" * 200, "\u202e\u2066", "Ä/Ö"])
def test_a_strange_run_is_one_plain_file(witness: FolderWitness, folder: Path, run: str) -> None:
    witness.remember(STORE, run, seen(1))
    assert witness.seen(STORE, run) == seen(1)
    assert [one.run for one in witness] == [run]
    (path,) = (folder / STORE).glob("*.json")
    assert path.parent == folder / STORE


def test_strangers_in_the_folder_are_passed_over(witness: FolderWitness, folder: Path) -> None:
    witness.remember(STORE, "r", seen(1))
    (folder / "notes.txt").write_text("x")
    (folder / "not-a-store").mkdir()
    (folder / STORE / "notes.txt").write_text("x")
    (folder / STORE / "~zz.json").write_text("x")
    assert [one.run for one in witness] == ["r"]


def test_what_a_killed_process_left_is_replaced(witness: FolderWitness, folder: Path) -> None:
    witness.remember(STORE, "r", seen(1))
    (folder / STORE / ".new").write_text("half of")
    witness.remember(STORE, "r", seen(2))
    assert witness.seen(STORE, "r") == seen(2)
    assert not (folder / STORE / ".new").exists()


def test_a_lock_that_is_not_given_up_is_not_waited_for_long(
    witness: FolderWitness, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.remember(STORE, "r", seen(1))
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    handle = os.open(folder / STORE / ".lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(WitnessError, match=r"\.lock"):
            witness.remember(STORE, "r", seen(2))
        assert witness.seen(STORE, "r") == seen(1)
    finally:
        os.close(handle)
    witness.remember(STORE, "r", seen(2))
    assert witness.seen(STORE, "r") == seen(2)


def _remember_many(folder: Path, numbers: list[int], start: Any) -> None:
    witness = FolderWitness(folder)
    start.wait(timeout=30)
    for number in numbers:
        witness.remember(STORE, "r", seen(number))


def test_processes_that_remember_at_once_end_with_the_newest(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    numbers = [[*range(1, 41, 2), 1, 3], list(range(40, 0, -2))]
    workers = [context.Process(target=_remember_many, args=(folder, part, start)) for part in numbers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert FolderWitness(folder).seen(STORE, "r") == seen(40)


def test_a_folder_that_cannot_be_written_is_read(
    witness: FolderWitness, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.remember(STORE, "r", seen(1))

    def denied(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *rest, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", denied)
    assert witness.seen(STORE, "r") == seen(1)
    with pytest.raises(WitnessError, match="Permission denied") as caught:
        witness.remember(STORE, "r", seen(2))
    assert "trust.use_witness" in (caught.value.remedy or "")
