"""A folder that is saved again and again: what did not change is neither read nor sent, and comes back."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workspace.git_saving import git

from archiver.errors import InputNotFoundError
from archiver.model.workspace import WORKSPACE, WorkspaceDocument, tree_member
from archiver.progress import Silent
from archiver.redact import Redactor
from archiver.saved import fetch
from archiver.setup import Setup
from archiver.verify import verify
from archiver.workspace import cache
from archiver.workspace_files import Files
from loop.growing import RUN, bases, records
from loop.working import Working, back, demand_folders, looks, reading
from tests.noise import noise


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once: between two saves here lies more than a tick of the clock."""
    monkeypatch.setattr(cache, "_MARGIN", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    for number in range(40):
        part = place / f"part{number // 10}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"file{number}.txt").write_text(f"text {number}\n" * 50)
    (place / "link").symlink_to("part0/file0.txt")
    (place / "part0" / "run.sh").write_text("#!/bin/sh\n")
    (place / "part0" / "run.sh").chmod(0o750)
    return place


@pytest.fixture
def working(setup: Setup, folder: Path, settled: None) -> Working:
    return Working(setup, folder)


def fetched(working: Working, tmp_path: Path, seq: int) -> Path:
    """All members of a checkpoint."""
    record = records(working.setup)[seq - 1]
    found = {one.seq: one for one in records(working.setup)}
    unpacked = tmp_path / f"unpacked-{seq}"
    bundle = record.bundle
    assert bundle is not None
    fetch(record, working.setup, unpacked, Silent(), tuple(found[base] for base in bundle.bases))
    return unpacked


def document(working: Working, tmp_path: Path, seq: int) -> WorkspaceDocument:
    return WorkspaceDocument.parse((fetched(working, tmp_path, seq) / WORKSPACE).read_bytes())


def everything(working: Working, tmp_path: Path, seq: int) -> bytes:
    unpacked = fetched(working, tmp_path, seq)
    return b"".join(path.read_bytes() for path in unpacked.rglob("*") if path.is_file())


def test_an_unchanged_folder_is_not_read_again(
    working: Working, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working.save()
    with reading(monkeypatch) as read:
        working.save()
        working.save()
    assert read == []
    assert bases(working.setup) == [(), (1,), (1, 2)]
    last = records(working.setup)[-1].bundle
    assert last is not None
    assert last.members < 8, "the tree and its document are those of the base"
    assert not [found for found in verify(working.setup, RUN, deep=True) if not found.ok]
    demand_folders(working, tmp_path)


def rewritten(folder: Path) -> None:
    (folder / "part1" / "file11.txt").write_text("another\n")


def same_size_and_time(folder: Path) -> None:
    file = folder / "part1" / "file11.txt"
    before = file.stat().st_mtime_ns
    file.write_bytes(file.read_bytes().swapcase())
    os.utime(file, ns=(before, before))


def chmod_only(folder: Path) -> None:
    (folder / "part1" / "file11.txt").chmod(0o600)


def renamed(folder: Path) -> None:
    (folder / "part1" / "file11.txt").rename(folder / "part2" / "moved.txt")


def folder_renamed(folder: Path) -> None:
    (folder / "part1").rename(folder / "other")


def file_to_folder(folder: Path) -> None:
    (folder / "part1" / "file11.txt").unlink()
    (folder / "part1" / "file11.txt").mkdir()
    (folder / "part1" / "file11.txt" / "inner").write_text("inner\n")


def folder_to_file(folder: Path) -> None:
    for file in (folder / "part1").iterdir():
        file.unlink()
    (folder / "part1").rmdir()
    (folder / "part1").write_text("a file now\n")


def folder_to_link(folder: Path) -> None:
    (folder / "part1").rename(folder / "away")
    (folder / "part1").symlink_to("away")


def deleted(folder: Path) -> None:
    (folder / "part1" / "file11.txt").unlink()


def hard_link(folder: Path) -> None:
    os.link(folder / "part1" / "file11.txt", folder / "twin")
    (folder / "twin").write_text("both\n")


def link_elsewhere(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("/nowhere")


def copied(folder: Path) -> None:
    (folder / "copy").write_bytes((folder / "part1" / "file11.txt").read_bytes())


CHANGES = [
    rewritten, same_size_and_time, chmod_only, renamed, folder_renamed, file_to_folder, folder_to_file,
    folder_to_link, deleted, hard_link, link_elsewhere, copied,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_and_little_else_is_sent(
    working: Working, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    working.save()
    working.save()
    change(working.folder)
    working.save()
    assert bases(working.setup)[2] == (1, 2)
    assert looks(back(working, tmp_path, 3)) == working.looked[3]
    assert looks(back(working, tmp_path, 1)) == working.looked[1]


def test_the_tree_is_written_as_changes_and_now_and_then_whole(working: Working, tmp_path: Path) -> None:
    working.save()
    for number in range(7):
        for name in "abc":
            (working.folder / f"new{number}{name}").write_text("new\n")
        (working.folder / "part3" / f"file{30 + number}.txt").unlink()
        working.save()
    trees = [document(working, tmp_path, seq).trees for seq in range(1, 9)]
    assert trees[0] == (tree_member(0),)
    assert trees[1] == (tree_member(0), tree_member(1))
    assert trees.count((tree_member(0),)) > 1, "whole again"
    demand_folders(working, tmp_path)


def test_a_young_file_is_read_again(
    setup: Setup, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may change once more in the same tick of the clock, and look the same."""
    monkeypatch.setattr(cache, "_MARGIN", 3600 * 10**9)
    working = Working(setup, folder)
    working.save()
    with reading(monkeypatch) as read:
        working.save()
    assert len(read) == 41
    demand_folders(working, tmp_path)


def test_what_the_base_does_not_hold_is_read(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    working.save()
    rewritten(working.folder)
    working.save(deliver=False)
    with reading(monkeypatch) as read:
        working.save(deliver=False)
    assert read == ["part1/file11.txt"], "the one before was not acknowledged"
    assert working.deliver()
    deleted(working.folder)
    working.save()
    assert bases(working.setup) == [(), (1,), (1,), (1, 3)]
    demand_folders(working, tmp_path)


def test_a_save_that_fails_leaves_nothing_wrong_behind(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    working.save()
    rewritten(working.folder)
    with monkeypatch.context() as patch:
        patch.setattr("archiver.preparing.seal", _fails)
        with pytest.raises(RuntimeError):
            working.save()
    working.save()
    deleted(working.folder)
    working.save()
    assert bases(working.setup) == [(), (1,), (1, 2)]
    demand_folders(working, tmp_path)


def _fails(*_: object, **__: object) -> None:
    raise RuntimeError("stopped")


def test_another_process_begins_with_all_of_it(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    working.save()
    working.save()
    other = Working(working.setup, working.folder, resumed=working)
    with reading(monkeypatch) as read:
        other.save()
    assert len(read) == 41
    other.save()
    assert bases(other.setup) == [(), (1,), (), (3,)]
    demand_folders(other, tmp_path)


def test_a_secret_that_is_told_later_is_found_in_what_is_not_read(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = secrets.token_hex(10) + "Zq7"
    (working.folder / "part1" / "file11.txt").write_text(f"it says {value} here\n")
    (working.folder / f"part2-{value}").write_text("its name\n")
    working.save()
    working.save()
    (working.folder / "z.ini").write_text(f'password = "{value}"\n')
    with reading(monkeypatch) as read:
        working.save()
    assert sorted(read) == ["part1/file11.txt", "z.ini"]
    assert bases(working.setup)[2] == (1, 2)
    assert value.encode() not in everything(working, tmp_path, 3)
    out = back(working, tmp_path, 3)
    assert "[REDACTED:" in (out / "part1" / "file11.txt").read_text()
    assert "[REDACTED:" in (out / "z.ini").read_text()
    with reading(monkeypatch) as read:
        working.save()
    again = ["part1/file11.txt", f"part2-{value}", "z.ini"]
    assert sorted(read) == again, "what is found in them has to be known each time"
    assert value.encode() not in everything(working, tmp_path, 4)


def test_a_secret_in_a_file_counts_for_the_conversation_of_each_save(
    working: Working, tmp_path: Path
) -> None:
    value = secrets.token_hex(10) + "Zq7"
    (working.folder / "z.ini").write_text(f'password = "{value}"\n')
    working.save()
    working.messages.append({"role": "user", "content": f"use {value} then"})
    working.save()
    assert value.encode() not in everything(working, tmp_path, 2)


def test_a_new_value_in_a_file_of_credentials_begins_an_epoch(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = secrets.token_hex(12)
    (working.folder / "part1" / "file11.txt").write_text(f"it says {value} here\n")
    working.save()
    (working.folder / ".env").write_text(f"DB_PASSWORD={value}\n")
    with reading(monkeypatch) as read:
        working.save()
    assert len(read) > 40
    assert value.encode() not in everything(working, tmp_path, 2)
    with reading(monkeypatch) as read:
        working.save()
    assert bases(working.setup) == [(), (), (2,)]
    assert set(read) == {".env", "part1/file11.txt"}
    assert value.encode() not in everything(working, tmp_path, 3)


def test_a_folder_that_became_another_one_is_saved_whole(working: Working, tmp_path: Path) -> None:
    working.save()
    for number in range(40):
        (working.folder / f"big{number}").write_bytes(noise(4000, number))
    working.save()
    working.save()
    assert bases(working.setup) == [(), (), (2,)]
    demand_folders(working, tmp_path)


def test_a_database_with_a_log_is_copied_each_time(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sqlite3

    with sqlite3.connect(working.folder / "data.db") as open_one:
        open_one.execute("pragma journal_mode = wal")
        open_one.execute("create table words (word text)")
        open_one.commit()
        working.save()
        with reading(monkeypatch) as read:
            working.save()
        assert read == ["data.db"]
        open_one.execute("insert into words values ('one')")
        open_one.commit()
        working.save()
    open_one.close()
    out = back(working, tmp_path, 3)
    with sqlite3.connect(out / "data.db") as again:
        assert again.execute("select word from words").fetchall() == [("one",)]
    again.close()


def test_a_folder_that_cannot_be_captured_fails_no_save(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    working.save()
    for place in ("archiver.workspace_in.capture_folder", "archiver.workspace_files.Files.take"):
        with monkeypatch.context() as patch:
            patch.setattr(place, _lost)
            assert working.save()
        seq = len(working.looked)
        assert b"the disk is gone" in everything(working, tmp_path, seq)
        assert not back(working, tmp_path, seq).exists()
    with reading(monkeypatch) as read:
        working.save()
    assert len(read) == 41, "the base has none of it"
    assert looks(back(working, tmp_path, 4)) == working.looked[4]


def _lost(*_: object, **__: object) -> None:
    raise InputNotFoundError("the disk is gone")


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 5), st.integers(0, 2)),
        st.tuples(st.sampled_from(["remove", "swap", "mode", "move", "link", "touch"]), st.integers(0, 5),
                  st.integers(0, 5)),
        st.tuples(st.sampled_from(["save", "wait", "deliver", "fail"]), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=24,
)  # fmt: skip
_RUNS = itertools.count(1)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_whatever_is_changed_each_checkpoint_gives_the_folder_of_its_time(
    setup: Setup, tmp_path: Path, settled: None, edits: list[tuple[str, int, int]]
) -> None:
    _play(setup, tmp_path / f"run{next(_RUNS)}", edits)


@pytest.mark.soak
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_whatever_is_changed_for_long(
    setup: Setup, tmp_path: Path, settled: None, edits: list[tuple[str, int, int]]
) -> None:
    _play(setup, tmp_path / f"long{next(_RUNS)}", edits)


def _play(setup: Setup, place: Path, edits: list[tuple[str, int, int]]) -> None:
    folder = place / "work"
    folder.mkdir(parents=True)
    for number in range(12):
        (folder / f"ballast{number}").write_text(f"{number}\n" * 900)
    working = Working(setup, folder, run=place.name)
    working.save()
    for what, first, second in edits:
        if what == "deliver":
            assert working.deliver()
        elif what == "fail":
            with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
                patch.setattr("archiver.preparing.seal", _fails)
                working.save()
        elif what in ("save", "wait"):
            working.save(deliver=what == "save")
        else:
            _edit(folder, what, first, second)
    working.save()
    demand_folders(working, place)


def _edit(folder: Path, what: str, first: int, second: int) -> None:
    """One change; paths lie in each other, so that a file takes the place of a folder and back."""
    names = ["a", "a/b", "a/b/c", "d", "d/e", "ballast3"]
    path, other = folder / names[first], folder / names[second]
    if what == "write":
        _write(folder, path, ["one\n", "two\n", ""][second])
    elif what == "link":
        _write(folder, path, "")
        path.unlink()
        path.symlink_to(f"to{second}")
    elif os.path.lexists(path):
        _change(path, what, second, other)


def _write(folder: Path, path: Path, text: str) -> None:
    for around in reversed(list(path.relative_to(folder).parents)[:-1]):
        if not (folder / around).is_dir():
            _remove(folder / around)
            (folder / around).mkdir()
    _remove(path)
    path.write_text(text)


def _change(path: Path, what: str, number: int, other: Path) -> None:
    if what == "remove":
        _remove(path)
    elif what == "touch":
        os.utime(path, ns=(number, number), follow_symlinks=False)
    elif what == "move":
        if other.parent.is_dir() and not os.path.lexists(other) and not other.is_relative_to(path):
            path.rename(other)
    elif not path.is_symlink() and what == "mode":
        path.chmod(0o700 + number)
    elif path.is_file() and what == "swap":
        before = path.stat().st_mtime_ns
        path.write_bytes(path.read_bytes().swapcase())
        os.utime(path, ns=(before, before))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def test_of_a_git_work_tree_what_did_not_change_is_not_read_again(
    setup: Setup, settled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, folder = Repo(tmp_path / "work"), tmp_path / "work"
    repo.commit("one\n")
    for number in range(9):
        (folder / f"file{number}").write_text(f"{number}\n" * 3000)
    working = Working(setup, folder)
    working.save()
    (folder / "file1").unlink()
    (folder / "file2").write_text("another\n")
    with reading(monkeypatch) as read:
        working.save()
    assert read == ["file2"]
    assert bases(working.setup) == [(), (1,)]
    out = back(working, tmp_path, 2)
    assert {path.name for path in out.iterdir()} == {path.name for path in folder.iterdir()}
    assert (out / "file2").read_text() == "another\n"
    assert git(out, "status", "--porcelain") == git(folder, "status", "--porcelain")


def test_what_only_the_last_scan_finds_is_searched_for_in_what_is_not_read(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once: the memory knows afterwards that it is not there, although each save finds it anew."""
    value = secrets.token_hex(10) + "Zq7"
    (working.folder / "part1" / "file11.txt").write_text(f"it says {value} here\n")
    working.save()
    scan, searched = Redactor.members, []

    def finds(self: Redactor, *given: Any) -> Any:
        self._ledger.replace("github-token", "github-token", value.encode(), "the last scan")
        return scan(self, *given)

    def noted(self: Files, found: Any, mark: Any) -> bool:
        searched.append(found.entry.path)
        return holds(self, found, mark)

    holds = Files.holds
    monkeypatch.setattr(Redactor, "members", finds)
    monkeypatch.setattr(Files, "holds", noted)
    with reading(monkeypatch) as read:
        working.save()
    assert read == ["part1/file11.txt"]
    assert len(searched) >= 40
    assert bases(working.setup)[1] == (1,)
    assert value.encode() not in everything(working, tmp_path, 2)
    assert "[REDACTED:" in (back(working, tmp_path, 2) / "part1" / "file11.txt").read_text()
    (working.folder / "part1" / "file11.txt").unlink()
    working.save()
    searched.clear()
    working.save()
    assert searched == []
    assert bases(working.setup)[3] == (1, 2, 3)
