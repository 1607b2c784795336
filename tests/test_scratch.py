"""Scratch folders are private and go away, also those of processes that were killed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workspace.trees import as_nobody

from archiver.errors import InputNotFoundError, StoreFullError
from archiver.scratch import PREFIX, Scratch, Tape

CHILD = """
import sys, time
from pathlib import Path
from archiver.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "secret").write_text("left behind")
print("made", flush=True)
sys.stdin.readline()
"""


def folders(place: Path) -> list[Path]:
    return sorted(place.glob(f"{PREFIX}*"))


def test_it_is_private_and_goes_away(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        assert scratch.path.stat().st_mode & 0o777 == 0o700
        spool = scratch.spool()
        spool.write(b"abc")
        done = spool.close()
        assert done.size == 3
        assert done.path.read_bytes() == b"abc"
    assert folders(tmp_path) == []


def test_folders_that_are_closed_to_their_owner_go_away_too(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    tmp_path.chmod(0o777)
    with as_nobody(tmp_path), Scratch(tmp_path) as scratch:
        for mode in (0o555, 0):
            folder = scratch.path / "out" / f"{mode:o}"
            (folder / "deep").mkdir(parents=True)
            (folder / "deep" / "file").write_text("x")
            (folder / "link").symlink_to(tmp_path)
            (folder / "deep").chmod(mode)
            folder.chmod(mode)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert tmp_path.stat().st_mode & 0o777 == 0o777


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    dead, living = children
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"made\n"
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate()
    assert len(folders(tmp_path)) == 2
    with Scratch(tmp_path) as mine:
        left = [folder for folder in folders(tmp_path) if folder != mine.path]
        assert len(left) == 1
        assert (left[0] / "secret").exists()
    living.kill()
    living.communicate()


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        (f"{PREFIX}notes", True),  # not a name that is made for one
        (f"{PREFIX}abcd_123", False),  # such a name, without the mark
        ("checkpoint-archiver-main", True),
    ],
)
def test_other_peoples_folders_stay(tmp_path: Path, name: str, mark: bool) -> None:
    mine = tmp_path / name
    mine.mkdir(mode=0o700)
    (mine / "work.py").write_text("weeks of work")
    if mark:
        with Scratch(tmp_path) as scratch:
            (mine / ".scratch").write_bytes((scratch.path / ".scratch").read_bytes())
    with Scratch(tmp_path):
        pass
    assert (mine / "work.py").read_text() == "weeks of work"


def test_a_folder_that_is_just_being_made_and_links_stay(tmp_path: Path) -> None:
    young = tmp_path / f"{PREFIX}aaaaaaaa"
    young.mkdir(mode=0o700)
    (tmp_path / f"{PREFIX}bbbbbbbb").symlink_to(young)
    with Scratch(tmp_path):
        pass
    assert young.is_dir()
    os.utime(young, (1, 1))
    with Scratch(tmp_path):
        pass
    assert not young.exists()


def test_no_place_for_it_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="scratch"):
        Scratch(tmp_path / "missing")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_typed_error_that_names_the_folder(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        for size in (1 << 19, 1):  # found by the write, and only by the close
            spool = scratch.spool()
            spool._file.close()
            spool._file = open("/dev/full", "wb")  # noqa: PTH123, SIM115 - a spool only makes new files itself
            with pytest.raises(StoreFullError, match="No space left") as caught:
                spool.write(bytes(size))
                spool.close()
            assert str(scratch.path) in str(caught.value)
            assert caught.value.exit_code == 8


def test_a_tape_gives_back_what_was_written_and_is_cut(tmp_path: Path) -> None:
    with Tape(tmp_path / "tape", 0) as tape:
        tape.write(b"one two")
        assert tape.read(4, 3) == b"two"
        tape.cut(4)
        tape.write(b"2")
        assert tape.read(0, 9) == b"one 2"


@pytest.mark.parametrize("how", ["cut", "read", "flush"])
def test_a_disk_without_room_for_a_tape_is_said(how: str, tmp_path: Path) -> None:
    """What was written waits in memory, so anything that writes it down may find the disk full."""
    tape = Tape(tmp_path / "tape", 0)
    work = {"cut": lambda: tape.cut(0), "read": lambda: tape.read(0, 1), "flush": tape.flush}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    tape.write(bytes(5000))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreFullError, match="cannot be written"):
            work[how]()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        tape.flush()
        tape.__exit__(None, None, None)
