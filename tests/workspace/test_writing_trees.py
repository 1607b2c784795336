"""A tree is written into a new folder and nowhere else, and only if its content is what it says."""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import (
    AlreadyExistsError,
    ArchiveFormatError,
    ArchiverError,
    DigestMismatchError,
    InputNotFoundError,
    StoreFullError,
)
from archiver.model.workspace import TreeEntry
from archiver.workspace import writing
from archiver.workspace.writing import write_tree
from workspace.trees import as_nobody, picture

DATA = b"content"
SHA256 = hashlib.sha256(DATA).hexdigest()


def file(path: str, **changed: Any) -> TreeEntry:
    return TreeEntry(path, "file", **({"mode": 0o640, "modified": 5, "size": 7, "sha256": SHA256} | changed))


def folder(path: str, mode: int = 0o750, modified: int = 7) -> TreeEntry:
    return TreeEntry(path, "folder", mode, modified)


def link(path: str, target: str) -> TreeEntry:
    return TreeEntry(path, "link", 0o777, 9, target=target)


@pytest.fixture
def content(tmp_path: Path) -> Callable[[str], Path]:
    (tmp_path / SHA256).write_bytes(DATA)
    return lambda sha256: tmp_path / sha256


def test_modes_times_links_and_folders_that_nobody_may_enter(
    tmp_path: Path, content: Callable[[str], Path]
) -> None:
    entries = [
        folder("a", 0o000, -1), folder("a/b", 0o000, 3), file("a/b/c", mode=0o000), folder("d", 0o755),
        link("l", "nowhere"),
    ]  # fmt: skip
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o777)
    with as_nobody(parent):
        assert write_tree(entries, content, parent / "into") == []
        assert (parent / "into" / "a").lstat().st_mode & 0o777 == 0
    for closed in ("into/a", "into/a/b", "into/a/b/c"):
        found = (parent / closed).lstat()
        (parent / closed).chmod(0o700)
        os.utime(parent / closed, ns=(found.st_mtime_ns, found.st_mtime_ns))
        assert found.st_mode & 0o777 == 0
    assert {path: (one[0], one[1]) for path, one in picture(os.fsencode(parent / "into")).items()} == {
        b"a": ("folder", -1), b"a/b": ("folder", 3), b"a/b/c": ("file", 5), b"d": ("folder", 7),
        b"l": ("link", 9),
    }  # fmt: skip
    assert (parent / "into").lstat().st_mode & 0o777 == 0o700


def test_what_is_being_filled_is_private(tmp_path: Path, content: Callable[[str], Path]) -> None:
    """Folder and file get what they are entitled to when they are whole."""
    into, seen = tmp_path / "into", []

    def look(sha256: str) -> Path:
        seen.extend((into / path).lstat().st_mode & 0o777 for path in ("", "a", "a/b"))
        return content(sha256)

    write_tree([folder("a", 0o777), file("a/b", mode=0o666)], look, into)
    assert seen == [0o700, 0o700, 0o600]
    assert [(into / path).lstat().st_mode & 0o777 for path in ("a", "a/b")] == [0o777, 0o666]


def test_a_folder_that_no_entry_names_has_the_usual_mode(
    tmp_path: Path, content: Callable[[str], Path]
) -> None:
    old = os.umask(0o027)
    try:
        write_tree([file("a/b/c"), file("a/d")], content, tmp_path / "into")
    finally:
        os.umask(old)
    assert (tmp_path / "into" / "a" / "b").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "into" / "a" / "b" / "c").read_bytes() == DATA


def test_links_that_lead_out_are_written_and_told(tmp_path: Path, content: Callable[[str], Path]) -> None:
    entries = [
        link("a/in", "../b"), link("a/out", "x/../../.."), link("absolute", "/etc/passwd"),
        link("dots", "./.."), link("self", "."), link("slashes", "a//../.."), link("up", ".."),
        link("x", "a/../x\n"),
    ]  # fmt: skip
    notes = write_tree(entries, content, tmp_path / "into")
    assert [note.path for note in notes] == ["a/out", "absolute", "dots", "slashes", "up"]
    assert notes[1].reason == "it is a link that leads out of the tree, to /etc/passwd"
    for entry in entries:
        assert os.readlink(tmp_path / "into" / entry.path) == entry.target


@pytest.mark.parametrize(
    "entries",
    [
        [link("a", ".."), file("a/b")],
        [link("a", "/"), folder("a/b")],
        [file("a"), file("a/b")],
        [file("b"), file("a")],
        [file("a"), file("a")],
        [file("../a")],
        [file("/a")],
        [file("a/../../b")],
        [file("a\0")],
        [TreeEntry("a", "gone", 0, 0)],
    ],
)
def test_what_is_no_tree_is_refused_and_nothing_lies_elsewhere(
    tmp_path: Path, content: Callable[[str], Path], entries: list[TreeEntry]
) -> None:
    with pytest.raises((ArchiveFormatError, AlreadyExistsError)) as caught:
        write_tree(entries, content, tmp_path / "into")
    assert str(caught.value).isprintable()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([SHA256, "into"])


@pytest.mark.parametrize("twice", [file("a"), folder("a"), link("a", "b")])
def test_a_path_that_is_there_twice_is_out_of_order(
    tmp_path: Path, content: Callable[[str], Path], twice: TreeEntry
) -> None:
    """And not said to be one of two names that the file system takes for one."""
    with pytest.raises(ArchiveFormatError, match="out of order"):
        write_tree([twice, twice], content, tmp_path / "into")


def test_many_folders_do_not_need_as_many_open_files(tmp_path: Path, content: Callable[[str], Path]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        write_tree([file(f"{number:03}/a") for number in range(300)], content, tmp_path / "into")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(list((tmp_path / "into").iterdir())) == 300


def test_a_file_system_that_takes_a_few_bytes_at_a_time(
    tmp_path: Path, content: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(writing.os, "write", lambda handle, data: write(handle, bytes(data)[:3]))
    write_tree([file("a")], content, tmp_path / "into")
    assert (tmp_path / "into" / "a").read_bytes() == DATA


@pytest.mark.parametrize(
    "entry", [file("a", sha256="0" * 64), file("a", size=6), file("a", size=8), file("a", sha256="1" * 64)]
)
def test_content_that_is_not_what_the_tree_says(
    tmp_path: Path, content: Callable[[str], Path], entry: TreeEntry
) -> None:
    (tmp_path / ("0" * 64)).write_bytes(DATA)
    os.mkfifo(tmp_path / ("1" * 64))
    with pytest.raises(DigestMismatchError, match="the content of a"):
        write_tree([entry], content, tmp_path / "into")


def test_content_that_is_not_there(tmp_path: Path, content: Callable[[str], Path]) -> None:
    with pytest.raises(ArchiveFormatError, match="the content of a is not there"):
        write_tree([file("a", sha256="2" * 64)], content, tmp_path / "into")


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path, content: Callable[[str], Path]) -> None:
    (tmp_path / "into").mkdir()
    with pytest.raises(AlreadyExistsError) as caught:
        write_tree([file("a")], content, tmp_path / "into")
    assert caught.value.remedy == "restore into a folder that is not there yet"
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize("second", [file("b"), folder("b"), link("b", "x"), file("b/c")])
def test_two_paths_that_are_one_for_the_file_system(tmp_path: Path, second: TreeEntry) -> None:
    """As where `A` and `a` are one name: what is to be made is there."""
    (tmp_path / SHA256).write_bytes(DATA)

    def content(sha256: str) -> Path:
        (tmp_path / "into" / "b").mkdir(exist_ok=True)
        return tmp_path / sha256

    with pytest.raises(AlreadyExistsError, match="is there already") as caught:
        write_tree([file("a"), second], content, tmp_path / "into")
    assert "differ only in case" in (caught.value.remedy or "")


def test_a_folder_that_is_swapped_for_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / SHA256).write_bytes(DATA)
    (tmp_path / "outside").mkdir()

    def content(sha256: str) -> Path:
        if (tmp_path / "into" / "b").is_dir() and not (tmp_path / "into" / "b").is_symlink():
            (tmp_path / "into" / "b").rename(tmp_path / "moved")
            (tmp_path / "into" / "b").symlink_to(tmp_path / "outside")
        return tmp_path / sha256

    entries = [folder("a"), folder("b"), folder("b-"), file("b-/x"), file("b/y")]
    with pytest.raises(ArchiverError):
        write_tree(entries, content, tmp_path / "into")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path, content: Callable[[str], Path]) -> None:
    with pytest.raises(InputNotFoundError, match="cannot be written"):
        write_tree([file("a")], content, tmp_path / "missing" / "into")


def test_a_full_disk_is_a_typed_error(
    tmp_path: Path, content: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "write", full)
    with pytest.raises(StoreFullError, match="No space left"):
        write_tree([file("a")], content, tmp_path / "into")


def test_a_time_that_the_file_system_does_not_have_is_told(
    tmp_path: Path, content: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OverflowError("timestamp out of range")

    monkeypatch.setattr(writing.os, "utime", refuse)
    notes = write_tree([file("a"), folder("b"), link("c", "a")], content, tmp_path / "into")
    assert [(note.path, note.reason) for note in notes] == [
        (path, "its time cannot be set") for path in ("a", "c", "b")
    ]
    assert (tmp_path / "into" / "a").read_bytes() == DATA
