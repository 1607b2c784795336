"""A workspace in an unpacked bundle that was tampered with, or is not whole, is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver import archive
from archiver.archive import Given, Options, Source
from archiver.errors import ArchiveFormatError, ArchiverError, DigestMismatchError, LimitExceededError
from archiver.model.workspace import MAX_DOCUMENT, WORKSPACE
from archiver.progress import Silent
from archiver.restore import plan
from archiver.saved import fetch
from archiver.setup import Setup
from archiver.workspace_out import LaidOut, lay_out

MANY = 8


@pytest.fixture(params=["folder", "git"])
def unpacked(request: pytest.FixtureRequest, setup: Setup, note: Path, tmp_path: Path) -> Path:
    """The members of a bundle with a workspace: a file that is committed, one that is staged, and others."""
    work = tmp_path / "work"
    if request.param == "git":
        repo = Repo(work)
        repo.commit("one\n")
    else:
        work.mkdir()
        (work / "file.txt").write_text("one\n")
    (work / "staged.txt").write_text("staged\n")
    if request.param == "git":
        repo.git("add", "staged.txt")
    (work / "new.txt").write_text("new\n")
    for number in range(MANY):
        (work / f"login-{number}.ini").write_text(
            f"[a]\nuser = u{number}\npassword = Zq7{number}kP2vLw9xTm4\n"
        )
    archive.archive(Source(paths=(note,), workspace=work), setup, options=Options(given=Given(run_id="r")))
    place = tmp_path / "unpacked"
    fetch(plan("r", setup).record, setup, place, Silent(), ())
    return place


def laid(unpacked: Path, *, entries: int = 1000) -> LaidOut:
    found = lay_out(unpacked, unpacked.with_name("again"), entries=entries, repository=None)
    assert found is not None
    return found


def test_what_is_whole_is_laid_out_and_names_some_placeholders(unpacked: Path) -> None:
    found = laid(unpacked)
    assert found.redacted == tuple(f"login-{number}.ini" for number in range(5))
    assert (unpacked.with_name("again") / "new.txt").read_text() == "new\n"


def _content(text: bytes) -> Callable[[Path], Path]:
    def find(unpacked: Path) -> Path:
        folder = unpacked / "workspace" / "objects"
        (found,) = (path for path in folder.iterdir() if path.read_bytes() == text)
        return found

    return find


def _another(text: bytes) -> Callable[[Path], object]:
    return lambda unpacked: _content(text)(unpacked).write_bytes(text.swapcase())


def _no_tree(unpacked: Path) -> None:
    (unpacked / json.loads((unpacked / WORKSPACE).read_bytes())["trees"][0]).unlink()


def _grown(unpacked: Path) -> None:
    with (unpacked / WORKSPACE).open("ab") as file:
        file.write(b" " * MAX_DOCUMENT)


def _a_folder(unpacked: Path) -> None:
    (unpacked / WORKSPACE).unlink()
    (unpacked / WORKSPACE).mkdir()


BROKEN: list[tuple[str, Callable[[Path], object], type[ArchiverError], str]] = [
    ("a content of the same size", _another(b"new\n"), DigestMismatchError, "the content"),
    ("one of the index", _another(b"staged\n"), DigestMismatchError, "the content"),
    ("no content", lambda one: _content(b"new\n")(one).unlink(), ArchiveFormatError, "holds no content"),
    ("no tree", _no_tree, ArchiveFormatError, "which its workspace names"),
    ("a document too large", _grown, ArchiveFormatError, "more than"),
    ("no document", lambda one: (one / WORKSPACE).write_bytes(b"[]"), ArchiverError, "document"),
    ("a folder as document", _a_folder, ArchiveFormatError, "cannot be read"),
]


def test_what_is_not_whole_is_refused(unpacked: Path, tmp_path: Path) -> None:
    for name, change, error, said in BROKEN:
        broken = tmp_path / name / "unpacked"
        shutil.copytree(unpacked, broken)
        change(broken)
        with pytest.raises(error, match=said):
            laid(broken)
    with pytest.raises(LimitExceededError, match="more than 3 entries"):
        laid(unpacked, entries=3)


def test_a_bundle_without_a_workspace(tmp_path: Path) -> None:
    assert lay_out(tmp_path, tmp_path / "again", entries=9, repository=None) is None
