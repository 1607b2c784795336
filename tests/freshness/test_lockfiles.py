"""The probe `lockfiles`: real files that change, and folders made to hurt whoever looks at them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver import jsonio
from archiver.freshness import Verdict, judge_all, lockfiles
from archiver.freshness.lockfiles import NAMES, LockfilesProbe
from archiver.freshness.registry import MAX_CAPTURE
from archiver.model import JsonValue

from .repos import context

PROBE = LockfilesProbe()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "web").mkdir(parents=True)
    (folder / "uv.lock").write_text("requests==2.31.0\n")
    (folder / "web" / "package-lock.json").write_text("{}")
    return folder


def judge(captured: JsonValue, folder: Path | None) -> Verdict:
    return judge_all({"lockfiles": captured}, context(folder), probes=[PROBE]).verdicts[0]


def test_what_is_captured_cannot_be_guessed_from(work: Path) -> None:
    captured = PROBE.capture(context(work))
    assert isinstance(captured, dict)
    assert captured["path"] == str(work)
    assert captured["files"].keys() == {"uv.lock", "web/package-lock.json"}
    assert captured["more"] is False
    assert hashlib.sha256(b"{}").hexdigest() not in str(captured)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "uv.lock").write_text("requests==2.32.0\n"), "uv.lock changed"),
        (lambda f: (f / "web" / "package-lock.json").write_text("{ }"), "web/package-lock.json changed"),
        (lambda f: (f / "uv.lock").unlink(), "uv.lock vanished"),
        (lambda f: (f / "poetry.lock").write_text(""), "poetry.lock appeared"),
        (
            lambda f: (f / "web").rename(f / "ui"),
            "ui/package-lock.json appeared; web/package-lock.json vanished",
        ),
    ],
)
def test_a_lock_file_that_changes_is_named(work: Path, change: Callable[[Path], object], words: str) -> None:
    captured = PROBE.capture(context(work))
    assert judge(captured, work).state == "FRESH"
    change(work)
    verdict = judge(captured, work)
    assert verdict.state == "STALE"
    assert verdict.evidence.startswith(words)
    assert "--accept lockfiles" in str(verdict.remedy)


def test_no_lock_files_then_is_an_answer(tmp_path: Path) -> None:
    captured = PROBE.capture(context(tmp_path))
    verdict = judge(captured, tmp_path)
    assert (verdict.state, "no lock files" in verdict.evidence) == ("FRESH", True)
    (tmp_path / "Cargo.lock").write_text("x")
    assert judge(captured, tmp_path).evidence == "Cargo.lock appeared"


def test_a_folder_that_may_be_no_work_tree_is_unknown(work: Path, tmp_path: Path) -> None:
    captured = PROBE.capture(context(work))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "yarn.lock").write_text("x")
    assert judge(captured, tmp_path / "other").state == "UNKNOWN"
    assert judge(captured, None).state == "UNKNOWN"
    (tmp_path / "bare").mkdir()
    assert judge(PROBE.capture(context(tmp_path / "bare")), tmp_path).state == "UNKNOWN"
    moved = work.rename(tmp_path / "moved")
    assert judge(captured, moved).state == "FRESH"
    (moved / "uv.lock").write_text("x")
    assert judge(captured, moved).state == "STALE"


def swapped_for_a_loop(work: Path) -> None:
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    work.rmdir()
    work.symlink_to(work)


def replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(work: Path) -> None:
        (work / "uv.lock").unlink()
        make(work / "uv.lock")

    return change


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replaced(os.mkfifo), "uv.lock is not read now: it is no file"),
        (replaced(lambda path: path.mkdir()), "uv.lock is not read now: it is no file"),
        (replaced(lambda path: path.symlink_to("/etc/passwd")), "uv.lock is not read now: it is a link"),
        (replaced(lambda path: path.symlink_to(path)), "uv.lock is not read now: it is a link"),
        (replaced(sparse), "uv.lock is not read now: it has more than 32 MiB"),
        (swapped_for_a_loop, "symbolic links"),
    ],
    ids=["pipe", "folder", "link", "loop", "10 GB", "workspace a loop"],
)
def test_a_file_that_cannot_be_read_is_unknown(
    work: Path, change: Callable[[Path], object], words: str
) -> None:
    captured = PROBE.capture(context(work))
    change(work)
    verdict = judge(captured, work)
    assert verdict.state == "UNKNOWN"
    assert words in verdict.evidence


def test_a_file_that_could_not_be_read_at_the_save_is_unknown(work: Path) -> None:
    (work / "go.sum").symlink_to("uv.lock")
    captured = PROBE.capture(context(work))
    assert isinstance(captured, dict)
    assert captured["files"]["go.sum"] == {"unread": "it is a link"}
    (work / "go.sum").unlink()
    (work / "go.sum").write_text("x")
    verdict = judge(captured, work)
    assert (verdict.state, "go.sum was not read" in verdict.evidence) == ("UNKNOWN", True)
    (work / "uv.lock").unlink()
    assert judge(captured, work).state == "STALE"


def test_a_folder_that_is_closed_is_unknown(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = PROBE.capture(context(work))

    def closed(path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    verdict = judge(captured, work)
    assert (verdict.state, "Permission denied" in verdict.evidence) == ("UNKNOWN", True)


def test_many_lock_files_are_bounded_and_said(work: Path) -> None:
    for number in range(30):
        (work / f"part{number:02}").mkdir()
        (work / f"part{number:02}" / "uv.lock").write_text(str(number))
    captured = PROBE.capture(context(work))
    assert isinstance(captured, dict)
    assert (len(captured["files"]), captured["rest"]["count"]) == (lockfiles.MAX_FILES, 16)
    assert len(jsonio.dumps(captured)) < MAX_CAPTURE
    assert judge(captured, work).state == "FRESH"
    (work / "uv.lock").write_text("changed")
    assert judge(captured, work).evidence.startswith("uv.lock changed")
    (work / "uv.lock").write_text("requests==2.31.0\n")
    (work / "part29" / "uv.lock").write_text("changed")
    verdict = judge(captured, work)
    assert (verdict.state, verdict.evidence.partition(";")[0]) == (
        "STALE",
        "16 other lock files then, 16 now: not the same",
    )
    (work / "part29" / "uv.lock").unlink()
    assert judge(captured, work).evidence.startswith("16 other lock files then, 15 now")
    (work / "part29" / "uv.lock").symlink_to("/dev/zero")
    assert judge(captured, work).state == "UNKNOWN"
    assert judge(PROBE.capture(context(work)), work).state == "UNKNOWN"


@pytest.mark.parametrize("name", ["MAX_ALL", "MAX_FOLDERS"])
def test_more_than_is_looked_at_is_unknown(work: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole = PROBE.capture(context(work))
    monkeypatch.setattr(lockfiles, name, 1)
    bounded = PROBE.capture(context(work))
    monkeypatch.undo()
    assert "more folders or lock files" in judge(bounded, work).evidence
    monkeypatch.setattr(lockfiles, name, 1)
    assert judge(whole, work).state != "FRESH"


def test_the_lock_file_of_the_whole_repository_counts_for_a_part(work: Path) -> None:
    part = work / "packages" / "api"
    part.mkdir(parents=True)
    (work.parent / "uv.lock").write_text("not of this repository")
    (work / ".git").mkdir()
    captured = PROBE.capture(context(part))
    assert isinstance(captured, dict)
    assert list(captured["files"]) == ["../../uv.lock"]
    assert judge(captured, part).state == "FRESH"
    (work / "packages" / "yarn.lock").write_text("x")
    assert judge(captured, part).evidence.startswith("../yarn.lock appeared")
    (work / "packages" / "yarn.lock").unlink()
    (work / "uv.lock").write_text("requests==2.32.0\n")
    assert judge(captured, part).evidence == "../../uv.lock changed"


def test_lock_files_two_levels_below_count(work: Path) -> None:
    (work / "apps" / "site").mkdir(parents=True)
    captured = PROBE.capture(context(work))
    (work / "apps" / "site" / "yarn.lock").write_text("x")
    verdict = judge(captured, work)
    assert (verdict.state, "apps/site/yarn.lock appeared" in verdict.evidence) == ("STALE", True)


def test_a_folder_of_data_is_not_entered(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "data" / "inner").mkdir(parents=True)
    for number in range(3):
        (work / "data" / f"file{number}").write_text("x")
    (work / "data" / "inner" / "uv.lock").write_text("x")
    monkeypatch.setattr(lockfiles, "_MAX_ENTRIES", 3)
    captured = PROBE.capture(context(work))
    assert isinstance(captured, dict)
    assert list(captured["files"]) == ["uv.lock", "web/package-lock.json"]


def test_folders_that_are_no_part_of_the_work_are_not_entered(work: Path) -> None:
    captured = PROBE.capture(context(work))
    for name in ("node_modules", ".git", "venv", "line\nbreak"):
        (work / name).mkdir()
        (work / name / "uv.lock").write_text("x")
    (work / "linked").symlink_to(work / "web")
    assert judge(captured, work).state == "FRESH"


@pytest.mark.parametrize(
    "captured",
    [
        None,
        [],
        {},
        {"files": []},
        {"files": {"uv.lock": None}},
        {"files": {"uv.lock": {"salt": "x", "scrypt": "y"}}},
    ],
)
def test_a_record_without_digests_is_unknown(work: Path, captured: JsonValue) -> None:
    assert judge(captured, work).state in {"UNKNOWN", "STALE"}
    assert judge({"path": str(work), **captured} if captured else captured, work).state != "FRESH"


@pytest.mark.parametrize("rest", [{}, [], 0, "x", {"count": "1"}])
def test_a_record_that_does_not_count_the_others_is_unknown(work: Path, rest: JsonValue) -> None:
    captured = PROBE.capture(context(work))
    assert isinstance(captured, dict)
    assert judge({**captured, "rest": rest}, work).state == "UNKNOWN"


def test_a_hostile_record_reads_no_file_outside(work: Path) -> None:
    """Only names that were found here are read; a name in the record leads nowhere."""
    (work.parent / "secret").write_text("x")
    captured = {"path": str(work), "files": {"../secret": {"salt": "00" * 16, "scrypt": "00" * 32}}}
    assert "../secret vanished" in judge(captured, work).evidence


def test_the_names_are_in_order() -> None:
    assert list(NAMES) == sorted(set(NAMES))
