"""The handed-over folder: names that never collide, and a target that appears whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from workspace.trees import as_nobody

from archiver import target
from archiver.errors import AlreadyExistsError, ArchiverError, InputNotFoundError, StoreFullError
from archiver.handover import native_paths
from archiver.model import Transcript, TranscriptPart

_NAME = st.lists(st.sampled_from(["a", "A", "é", "e\u0301", "part-0001", "PART-0002", "..", ""]), max_size=4)


@given(st.lists(st.one_of(_NAME.map("/".join), st.text(max_size=8)), max_size=12))
@example(["a", "a/b", "a/B"])
@example(["part-0002", ".."])
@example(["..", "part-0001/x", "part-0001"])
@example(["a/b", "A"])
@example(["é", "e\u0301"])
@example(["a/" * 100 + "a"])
def test_any_names_become_paths_that_are_apart(names: list[str]) -> None:
    paths = native_paths(Transcript(parts=tuple(TranscriptPart(name=name) for name in names)))
    files = {str(path).lower() for path in paths}
    assert len(files) == len(paths) == len(names)
    for path in paths:
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert 1 <= len(path.parts) <= 16
        assert not files & {str(parent).lower() for parent in path.parents}


def test_a_safe_and_free_name_is_kept() -> None:
    names = ["s.jsonl", "s/subagents/b.jsonl", "s/subagents/c.jsonl"]
    paths = native_paths(Transcript(parts=tuple(TranscriptPart(name=name) for name in names)))
    assert [str(path) for path in paths] == names


# --- the target ---------------------------------------------------------------------------------------------


def hand_over(into: Path) -> None:
    """The last step of a restore, with a folder of two files and one below."""
    with target.beside(into) as scratch:
        out = scratch.path / "out"
        (out / "transcript").mkdir(parents=True)
        for name in ("report.json", "zero", "transcript/a"):
            (out / name).write_text(name)
            (out / name).chmod(0o600)
        target.appear(out, into, scratch)


def failing(monkeypatch: pytest.MonkeyPatch, into: Path, code: int) -> None:
    """Renaming onto `into` fails as it does on a mount point or a bad disk."""
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if target == into:
            raise OSError(code, os.strerror(code))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV, errno.EACCES])
def test_an_empty_mount_point_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    into = tmp_path / "mount"
    into.mkdir()
    failing(monkeypatch, into, code)
    hand_over(into)
    assert names(tmp_path) == ["mount"] + [
        f"mount/{name}" for name in ("report.json", "transcript", "transcript/a", "zero")
    ]
    assert (into / "transcript/a").stat().st_mode & 0o777 == 0o600


def test_what_is_copied_to_a_mount_point_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "not for you").write_text("secret")
    into = tmp_path / "mount"
    into.mkdir()
    for folder in (tmp_path, into):
        folder.chmod(0o777)
    failing(monkeypatch, into, errno.EXDEV)
    with as_nobody(tmp_path), target.beside(into) as scratch:
        out = scratch.path / "out"
        work = out / "workspace"
        (work / "closed").mkdir(parents=True)
        (work / "closed" / "run.sh").write_text("#!/bin/sh")
        (work / "closed" / "run.sh").chmod(0o750)
        (work / "sealed").write_bytes(b"sealed")
        (work / "out").symlink_to(tmp_path / "private")
        (work / "self").symlink_to(".")
        (work / "nowhere").symlink_to("nothing")
        Path(os.fsdecode(os.fsencode(work) + b"/\n\xff")).write_bytes(b"")
        for path, mode in ((work / "sealed", 0), (work / "closed", 0)):
            os.utime(path, ns=(5, 7_000_000_009))
            path.chmod(mode)
        target.appear(out, into, scratch)
    work = into / "workspace"
    assert {os.fsencode(path.name) for path in work.iterdir()} == {
        b"closed", b"sealed", b"out", b"self", b"nowhere", b"\n\xff",
    }  # fmt: skip
    assert [(work / name).readlink() for name in ("out", "self", "nowhere")] == [
        tmp_path / "private", Path(), Path("nothing"),
    ]  # fmt: skip
    for name in ("closed", "sealed"):
        about = (work / name).lstat()
        assert (about.st_mode & 0o777, about.st_mtime_ns) == (0, 7_000_000_009)
    (work / "closed").chmod(0o700)
    assert (work / "closed" / "run.sh").stat().st_mode & 0o777 == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mount", "private"]


@pytest.mark.parametrize("at", ["fsync", "rename"])
def test_a_mount_point_that_fills_up_stays_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    into = tmp_path / "mount"
    into.mkdir()
    failing(monkeypatch, into, errno.EBUSY)
    rename: Callable[[Path, Path], Path] = Path.rename

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def full_for_the_report(self: Path, target: Path) -> Path:
        if target == into / "report.json":
            full()
        return rename(self, target)

    monkeypatch.setattr(*((os, "fsync", full) if at == "fsync" else (Path, "rename", full_for_the_report)))
    with pytest.raises(StoreFullError, match="No space left"):
        hand_over(into)
    assert names(tmp_path) == ["mount"]


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (errno.ENOTEMPTY, AlreadyExistsError, "came into being"),
        (errno.ENOSPC, StoreFullError, "No space left"),
        (errno.EIO, StoreFullError, "Input/output"),
        (errno.EACCES, InputNotFoundError, "Permission denied"),
    ],
)
def test_what_else_fails_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[ArchiverError], said: str
) -> None:
    into = tmp_path / "deep/down/new"
    failing(monkeypatch, into, code)
    with pytest.raises(error, match=said):
        hand_over(into)
    assert names(tmp_path) == []  # the parents that it made are gone too


def test_parents_stay_when_it_works_or_somebody_else_uses_them(tmp_path: Path) -> None:
    hand_over(tmp_path / "a/b/new")
    assert (tmp_path / "a/b/new/report.json").exists()

    def fail() -> None:
        with target.beside(tmp_path / "c/d/e/new"):
            (tmp_path / "c/mine").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(tmp_path / "c") == ["mine"]


def test_a_parent_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputNotFoundError, match="cannot be made"):
        hand_over(tmp_path / "file/x/new")
    with pytest.raises(InputNotFoundError, match="cannot be made"):
        hand_over(tmp_path / "new" / ("x" * 300) / "new")
    assert names(tmp_path) == ["file"]
