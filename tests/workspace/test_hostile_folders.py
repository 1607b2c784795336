"""A folder that anybody may have made: a reason for what is not carried, and nothing to wait for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from archiver.errors import ConfigError, InputNotFoundError
from archiver.workspace import walking
from archiver.workspace.captured import WorkspaceLimits
from workspace.trees import as_nobody, captured, kept


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_special_files(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        saved = kept(root, tmp_path / "objects")
    assert saved.entries == []
    assert saved.skipped == {"pipe": "it is a named pipe", "socket": "it is a socket"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_devices(root: Path, tmp_path: Path) -> None:
    try:
        os.mknod(root / "null", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    assert kept(root, tmp_path / "objects").skipped == {"null": "it is a device"}


def test_links_are_never_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not ours")
    (root / "loop").symlink_to("loop")
    (root / "round").symlink_to(".")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "nowhere").symlink_to("missing")
    saved = kept(root, tmp_path / "objects")
    assert {entry.path: entry.target for entry in saved.entries} == {
        "loop": "loop", "nowhere": "missing", "out": str(tmp_path / "outside"), "round": ".",
    }  # fmt: skip
    assert saved.capture.skipped == []


def test_a_folder_that_becomes_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not ours")
    (root / "a").mkdir()
    (root / "a" / "file").write_text("ours")
    capture = captured(root)
    assert next(capture.found).entry.path == "a"
    (root / "a").rename(tmp_path / "moved")
    (root / "a").symlink_to(tmp_path / "outside")
    assert list(capture.found) == []
    assert [one.path for one in capture.skipped] == ["a"]


def test_a_folder_that_is_replaced_by_another_is_not_entered(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("not ours")
    (root / "a").mkdir()
    capture = captured(root)
    next(capture.found)
    (root / "a").rename(tmp_path / "moved")
    (tmp_path / "other").rename(root / "a")
    assert list(capture.found) == []
    assert [one.reason for one in capture.skipped] == ["it was replaced while it was looked at"]


def test_odd_names(root: Path, tmp_path: Path) -> None:
    names = [b"a\nb", b"\xff\xfe", "ä".encode(), "ä".encode("latin-1"), b" ", b"*", b"-rf", b"\\", b"\x1b[2J"]
    for name in names:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(name)
    saved = kept(root, tmp_path / "objects")
    assert [os.fsencode(path) for path in saved.paths] == sorted(names)
    assert all(saved.content(path) == os.fsencode(path) for path in saved.paths)


def test_a_folder_and_a_file_without_permission(root: Path, tmp_path: Path) -> None:
    for name in ("closed", "listed"):
        (root / name).mkdir()
        (root / name / "inside").write_text("")
    (root / "secret").write_text("not for you")
    for name, mode in (("closed", 0o000), ("listed", 0o444), ("secret", 0o000)):
        (root / name).chmod(mode)
    objects = tmp_path / "objects"
    objects.mkdir(mode=0o777)
    objects.chmod(0o777)
    try:
        with as_nobody(root):
            capture = captured_without_scratch(root)
    finally:
        for name in ("closed", "listed"):
            (root / name).chmod(0o755)
    assert capture == {
        "closed": "what lies in it cannot be read: Permission denied",
        "listed/inside": "it cannot be looked at: Permission denied",
        "secret": "it cannot be read: Permission denied",
    }


def captured_without_scratch(root: Path) -> dict[str, str]:
    """What is skipped, where no folder for a scratch may be made."""
    from archiver.workspace.captured import CaptureOptions, capture_folder
    from archiver.workspace.reading import NotReadError, content

    capture = capture_folder(root, CaptureOptions(), None, ())  # type: ignore[arg-type]
    skipped = {}
    for found in capture.found:
        try:
            if found.entry.type == "file":
                list(content(found))
        except NotReadError as error:
            skipped[found.entry.path] = str(error)
    return skipped | {one.path: one.reason for one in capture.skipped}


def test_a_sparse_file_meets_the_limit_before_it_is_read(root: Path, tmp_path: Path) -> None:
    (root / "sparse").touch()
    os.truncate(root / "sparse", 2**30)
    saved = kept(root, tmp_path / "objects")
    assert saved.skipped == {"sparse": f"it has {2**30} bytes, the limit of a file is {64 * 2**20}"}


def test_holes_are_zeros(root: Path, tmp_path: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.seek(3 << 20)
        file.write(b"end")
    assert kept(root, tmp_path / "objects").content("sparse") == bytes(3 << 20) + b"end"


def test_the_limit_of_all_files_takes_what_still_fits(root: Path, tmp_path: Path) -> None:
    for name, size in (("a", 6), ("b", 6), ("c", 4)):
        (root / name).write_bytes(bytes(size))
    saved = kept(root, tmp_path / "objects", limits=WorkspaceLimits(total=10))
    assert saved.paths == ["a", "c"]
    assert saved.skipped == {"b": "with it the files have more than 10 bytes"}


def test_the_limit_of_entries_ends_the_walk(root: Path, tmp_path: Path) -> None:
    for name in "abc":
        (root / name).mkdir()
        for number in range(3):
            (root / name / str(number)).touch()
    saved = kept(root, tmp_path / "objects", limits=WorkspaceLimits(files=6))
    assert saved.paths == ["a", "a/0", "a/1", "a/2", "b", "b/0"]
    assert saved.skipped == {"b/1": "the tree has more than 6 entries: this and all after it"}


def test_a_crowded_folder_is_not_listed_whole(root: Path, tmp_path: Path) -> None:
    (root / "crowd").mkdir()
    for number in range(7):
        (root / "crowd" / str(number)).touch()
    (root / "z").touch()
    saved = kept(root, tmp_path / "objects", limits=WorkspaceLimits(files=6))
    assert saved.paths == ["crowd", "z"]
    assert saved.skipped == {"crowd": "it has more than 6 entries, so none of them is carried"}


def test_depth_has_a_limit(root: Path, tmp_path: Path) -> None:
    (root / "a/b/c/d").mkdir(parents=True)
    saved = kept(root, tmp_path / "objects", limits=WorkspaceLimits(depth=3))
    assert saved.paths == ["a", "a/b", "a/b/c"]
    assert saved.skipped == {"a/b/c": "what lies in it is deeper than 3 folders"}


def test_a_path_longer_than_the_system_takes(root: Path, tmp_path: Path) -> None:
    at = os.open(root, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("n" * 120, dir_fd=at)
        below = os.open("n" * 120, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    saved = kept(root, tmp_path / "objects")
    assert len(saved.entries) == 33
    assert list(saved.skipped.values()) == ["its path has more than 4096 bytes"]


def test_many_reasons_are_counted_and_not_all_named(root: Path, tmp_path: Path) -> None:
    for number in range(1100):
        os.mkfifo(root / f"{number:04}")
    skipped = kept(root, tmp_path / "objects").capture.skipped
    assert len(skipped) == 1001
    assert (skipped[-1].path, skipped[-1].reason) == (".", "100 more of its paths are left out")


def test_another_file_system_is_not_entered(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "mounted" / "in").mkdir(parents=True)
    (root / "own").mkdir()
    inode = (root / "mounted").stat().st_ino
    real = os.stat_result

    class Entry:
        """An entry as the system lists it, of which one lies on another device."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self._entry = entry.name, entry

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            return self._entry.is_dir(follow_symlinks=follow_symlinks)

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            seen = self._entry.stat(follow_symlinks=follow_symlinks)
            if seen.st_ino != inode:
                return seen
            values = {name: getattr(seen, name) for name in dir(seen) if name.startswith("st_")}
            return real([*seen[:2], seen.st_dev + 1, *seen[3:]], values | {"st_dev": seen.st_dev + 1})

    class Listing:
        def __init__(self, handle: int) -> None:
            self._listing = listing(handle)

        def __enter__(self) -> object:
            return (Entry(entry) for entry in self._listing)  # type: ignore[arg-type]

        def __exit__(self, *_: object) -> None:
            self._listing.close()

    listing = os.scandir
    monkeypatch.setattr(walking.os, "scandir", Listing)
    capture = captured(root)
    assert [found.entry.path for found in capture.found] == ["own"]
    assert [(one.path, one.reason) for one in capture.skipped] == [
        ("mounted", "it is on another file system")
    ]


def test_folders_of_the_archiver_are_never_captured(root: Path, tmp_path: Path) -> None:
    (root / "store" / "records").mkdir(parents=True)
    (root / "work").write_text("")
    (tmp_path / "by-another-name").symlink_to(root / "store")
    saved = kept(root, tmp_path / "objects", apart=[tmp_path / "by-another-name", tmp_path / "missing"])
    assert saved.paths == ["work"]
    assert saved.capture.ignored.count == 1


def test_a_root_within_a_folder_of_the_archiver(root: Path, tmp_path: Path) -> None:
    (root / "inner").mkdir()
    (root / "inner" / "file").touch()
    saved = kept(root / "inner", tmp_path / "objects", apart=[root])
    assert saved.entries == []
    assert saved.skipped == {".": "it lies in a folder of the archiver's own"}


@pytest.mark.parametrize("kind", ["missing", "file", "loop", "pipe", "nul"])
def test_a_root_that_is_no_folder_is_a_typed_error(tmp_path: Path, kind: str) -> None:
    root = tmp_path / ("nul\0" if kind == "nul" else "root")
    if kind == "file":
        root.touch()
    elif kind == "loop":
        root.symlink_to("root")
    elif kind == "pipe":
        os.mkfifo(root)
    with pytest.raises(InputNotFoundError, match="cannot be captured") as caught:
        captured(root)
    assert caught.value.remedy


def test_a_root_that_goes_away_meanwhile_ends_the_walk(root: Path) -> None:
    (root / "file").touch()
    capture = captured(root)
    (root / "file").unlink()
    root.rmdir()
    assert list(capture.found) == []
    assert [one.path for one in capture.skipped] == ["."]


def test_a_walk_that_is_left_closes_what_it_opened(root: Path) -> None:
    (root / "a/b/c").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        capture = captured(root)
        next(capture.found)
        next(capture.found)
        capture.found.close()  # type: ignore[attr-defined]
        captured(root)  # never begun
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_goes_away_before_it_is_looked_at_was_never_there(root: Path, tmp_path: Path) -> None:
    (root / "a").touch()
    (root / "b").touch()
    capture = captured(root)
    assert next(capture.found).entry.path == "a"
    (root / "b").unlink()
    assert list(capture.found) == []
    assert capture.skipped == []


def test_a_pattern_of_the_caller_that_is_none_is_an_error(root: Path) -> None:
    for options in ({"ignore": ("a\\",)}, {"include": ("a\\",)}, {"ignore": ("[z-a]",)}):
        with pytest.raises(ConfigError, match="cannot be used"):
            captured(root, **options)
