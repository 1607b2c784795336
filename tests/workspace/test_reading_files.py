"""What was looked at is what is read, or the file is not carried."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archiver.workspace.found import Found
from archiver.workspace.reading import BLOCK, ChangedWhileReadError, NotReadError, content, stable
from workspace.trees import captured


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    path = tmp_path / "root" / "folder" / "file"
    path.write_bytes(b"first")
    return path


def found(file: Path) -> Found:
    return next(one for one in captured(file.parent.parent).found if one.entry.path == "folder/file")


def taking(data: list[bytes], meanwhile: Callable[[], None] = lambda: None) -> Callable[..., bytes]:
    """Reads everything, and then something happens."""

    def take(blocks: Iterator[bytes], size: int) -> bytes:
        data.append(b"".join(blocks))
        assert len(data[-1]) == size
        meanwhile()
        return data[-1]

    return take


def test_blocks_are_bounded(file: Path) -> None:
    file.write_bytes(bytes(2 * BLOCK + 1))
    assert [len(block) for block in content(found(file))] == [BLOCK, BLOCK, 1]


def test_an_empty_file_has_no_blocks(file: Path) -> None:
    file.write_bytes(b"")
    assert list(content(found(file))) == []


def test_what_is_held_in_memory_is_cut_likewise() -> None:
    from archiver.model.workspace import TreeEntry
    from archiver.workspace.found import Stamp

    held = Found(TreeEntry("a", "file", 0, 0, BLOCK + 1), bytes(BLOCK + 1), Stamp(0, 0, 0, 0, 0))
    assert [len(block) for block in content(held)] == [BLOCK, 1]
    assert stable(held, taking([])) == (bytes(BLOCK + 1), held)


def test_a_file_that_was_changed_since_it_was_found_is_looked_at_again(file: Path) -> None:
    old = found(file)
    file.write_bytes(b"a second content")
    file.chmod(0o600)
    with pytest.raises(ChangedWhileReadError):
        list(content(old))
    data, now = stable(old, taking([]))
    assert data == b"a second content"
    assert (now.entry.size, now.entry.mode, now.stamp.size) == (16, 0o600, 16)
    assert now == found(file)


def test_a_file_that_changes_once_is_read_again(file: Path) -> None:
    read: list[bytes] = []

    def change_once() -> None:
        if len(read) == 1:
            file.write_bytes(b"second")

    data, _ = stable(found(file), taking(read, change_once))
    assert read == [b"first", b"second"]
    assert data == b"second"


def test_a_file_that_grows_for_ever_is_given_up_after_three_times(file: Path) -> None:
    read: list[bytes] = []

    def grow() -> None:
        with file.open("ab") as more:
            more.write(b"more")

    with pytest.raises(ChangedWhileReadError, match="it changed while it was read"):
        stable(found(file), taking(read, grow))
    assert read == [b"first", b"firstmore", b"firstmoremore"]


def test_a_change_that_leaves_size_and_time_of_content_as_they_were_is_seen(file: Path) -> None:
    old = found(file)
    file.write_bytes(b"FIRST")
    os.utime(file, ns=(old.stamp.mtime_ns, old.stamp.mtime_ns))
    with pytest.raises(ChangedWhileReadError):
        list(content(old))


def test_no_more_is_read_than_was_found_and_a_file_cut_short_is_seen(file: Path) -> None:
    file.write_bytes(bytes(3 * BLOCK))
    blocks = content(found(file))
    next(blocks)
    with file.open("ab") as more:
        more.write(bytes(BLOCK))
    assert len(next(blocks)) == len(next(blocks)) == BLOCK
    with pytest.raises(ChangedWhileReadError):
        next(blocks)
    blocks = content(found(file))
    next(blocks)
    os.truncate(file, BLOCK)
    with pytest.raises(ChangedWhileReadError):
        next(blocks)


def test_a_file_that_grows_over_the_limit_is_not_read_again(file: Path) -> None:
    old = found(file)
    os.truncate(file, 2**40)
    with pytest.raises(NotReadError, match=f"it has {2**40} bytes by now, the limit of a file is 100"):
        stable(old, taking([]), limit=100)


def replaced_by_a_link(file: Path, other: Path) -> None:
    file.unlink()
    file.symlink_to(other)


def replaced_by_a_pipe(file: Path, other: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def removed(file: Path, other: Path) -> None:
    file.unlink()


def folder_replaced_by_a_link(file: Path, other: Path) -> None:
    file.parent.rename(other.parent / "moved")
    file.parent.symlink_to(other.parent)


@pytest.mark.parametrize(
    "change", [replaced_by_a_link, replaced_by_a_pipe, removed, folder_replaced_by_a_link]
)
def test_a_path_that_leads_elsewhere_by_now_is_not_read(
    file: Path, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"not ours")
    old, read = found(file), list[bytes]()
    change(file, tmp_path / "outside" / "file")
    with pytest.raises(NotReadError, match="while it was read"):
        stable(old, taking(read))
    assert read == []


def test_errors_of_who_takes_pass_and_the_file_is_closed(file: Path) -> None:
    def refuse(blocks: Iterator[bytes], size: int) -> None:
        raise KeyError("full")

    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    with pytest.raises(KeyError):
        stable(found(file), refuse)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_who_takes_need_not_read_to_the_end(file: Path) -> None:
    file.write_bytes(bytes(2 * BLOCK))
    assert stable(found(file), lambda blocks, size: len(next(blocks)))[0] == BLOCK


def test_a_folder_has_no_content(file: Path) -> None:
    folder = next(captured(file.parent.parent).found)
    with pytest.raises(NotReadError, match="no content"):
        list(content(folder))
