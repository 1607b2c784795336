"""The probe `git_dirty` on real repositories, and on hostile ones."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.freshness import Verdict, git_dirty
from archiver.freshness.git_dirty import GitDirtyProbe
from archiver.model import JsonValue

from .repos import Repo, context, hostile

PROBE = GitDirtyProbe()


def judge(captured: JsonValue, folder: Path | None) -> Verdict:
    return PROBE.judge(captured, context(folder))


def test_clean_then_and_now(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    assert captured == {"count": 0, "files": [], "digest": None}
    assert judge(captured, repo.folder).state == "FRESH"
    (repo.folder / "file.txt").write_text("changed")
    verdict = judge(captured, repo.folder)
    assert verdict.state == "STALE"
    assert verdict.evidence == "uncommitted changes that were not there: then none, now 1 file: file.txt"
    assert "git diff HEAD" in str(verdict.remedy)


def test_the_same_changes_are_fresh_wherever_they_lie(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "file.txt").write_text("changed")
    (repo.folder / "new").mkdir()
    (repo.folder / "new" / "a.py").write_text("x")
    captured = PROBE.capture(context(repo.folder))
    assert isinstance(captured, dict)
    assert (captured["count"], captured["files"]) == (2, ["file.txt", "new/a.py"])
    assert judge(captured, repo.folder).evidence == "the same uncommitted changes in 2 files"
    repo.git("add", "-A")
    assert judge(captured, repo.folder).state == "FRESH"  # staged or not, the content is what counts
    other = Repo(tmp_path / "other")
    other.commit("one")
    (other.folder / "file.txt").write_text("changed")
    (other.folder / "new").mkdir()
    (other.folder / "new" / "a.py").write_text("x")
    assert judge(captured, other.folder).state == "FRESH"


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (f / "file.txt").write_text("changed again"),
        lambda f: (f / "file.txt").unlink(),
        lambda f: (f / "file.txt").chmod(0o755),
        lambda f: (f / "more.txt").write_text(""),
        lambda f: ((f / "file.txt").unlink(), (f / "file.txt").symlink_to("changed")),
        lambda f: (f / "link").unlink(),
        lambda f: ((f / "link").unlink(), (f / "link").symlink_to("elsewhere")),
    ],
    ids=["content", "deleted", "mode", "one more", "a link of that text", "link gone", "link moved"],
)
def test_other_changes_are_stale(repo: Repo, change: Callable[[Path], object]) -> None:
    (repo.folder / "file.txt").write_text("changed")
    (repo.folder / "link").symlink_to("file.txt")
    captured = PROBE.capture(context(repo.folder))
    assert judge(captured, repo.folder).state == "FRESH"
    change(repo.folder)
    verdict = judge(captured, repo.folder)
    assert verdict.state == "STALE"
    assert verdict.evidence.startswith("other uncommitted changes: then 2 files: file.txt, link")


def test_changes_that_were_committed_are_gone(repo: Repo) -> None:
    (repo.folder / "file.txt").write_text("changed")
    captured = PROBE.capture(context(repo.folder))
    repo.git("commit", "-q", "-a", "-m", "two")
    verdict = judge(captured, repo.folder)
    assert verdict.state == "STALE"
    assert verdict.evidence == "uncommitted changes then (1 file: file.txt), none now"
    assert "git stash list" in str(verdict.remedy)


def test_the_store_in_the_work_tree_is_no_change(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(repo.folder / "store")
    world = context(repo.folder, apart=(tmp_path / "linked", repo.folder / "audit.jsonl"))
    captured = PROBE.capture(world)
    (repo.folder / "store" / "runs").mkdir(parents=True)
    (repo.folder / "store" / "runs" / "one").write_text("x")
    (repo.folder / "audit.jsonl").write_text("x")
    assert PROBE.judge(captured, world).state == "FRESH"
    (repo.folder / "store.txt").write_text("x")
    assert PROBE.judge(captured, world).evidence.endswith("now 1 file: store.txt")


def test_before_the_first_commit(tmp_path: Path) -> None:
    for options in ((), ("--object-format=sha256",)):
        unborn = Repo(tmp_path / f"unborn{len(options)}", *options)
        captured = PROBE.capture(context(unborn.folder))
        assert judge(captured, unborn.folder).state == "FRESH"
        (unborn.folder / "a").write_text("x")
        assert judge(captured, unborn.folder).state == "STALE"


def test_a_short_secret_cannot_be_guessed_from_the_record(repo: Repo) -> None:
    (repo.folder / ".env").write_text("PIN=1234")
    first, second = (PROBE.capture(context(repo.folder)) for _ in range(2))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["digest"] != second["digest"]
    assert judge(first, repo.folder).state == judge(second, repo.folder).state == "FRESH"


def test_names_that_steer_terminals_or_are_no_text(repo: Repo) -> None:
    (repo.folder / "line\nbreak\x1b[31m").write_text("x")
    Path(os.fsdecode(os.fsencode(repo.folder) + b"/\xff\xfe")).write_text("x")
    captured = PROBE.capture(context(repo.folder))
    assert isinstance(captured, dict)
    assert captured["count"] == 2
    assert judge(captured, repo.folder).state == "FRESH"


@pytest.mark.parametrize("size", [git_dirty.MAX_CONTENT + 1, 10 << 30])
def test_more_than_can_be_read_is_unknown_then_and_now(repo: Repo, size: int) -> None:
    clean = PROBE.capture(context(repo.folder))
    with (repo.folder / "huge").open("wb") as file:
        file.truncate(size)
    captured = PROBE.capture(context(repo.folder))
    assert captured == {"unread": "the uncommitted changes have more than 64 MiB"}
    assert judge(captured, repo.folder).state == "UNKNOWN"
    assert judge(clean, repo.folder).state == "UNKNOWN"
    (repo.folder / "huge").unlink()
    assert judge(captured, repo.folder).state == "UNKNOWN"
    assert judge(clean, repo.folder).state == "FRESH"


def test_too_many_files_are_unknown(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        (repo.folder / f"new{number}").write_text("x")
    captured = PROBE.capture(context(repo.folder))
    monkeypatch.setattr(git_dirty, "MAX_FILES", 5)
    assert "more than 5 files" in judge(captured, repo.folder).evidence
    monkeypatch.setattr(git_dirty, "MAX_NAMES", 20)
    verdict = judge(captured, repo.folder)
    assert (verdict.state, "too many files" in verdict.evidence) == ("UNKNOWN", True)


def test_a_pipe_is_not_opened(repo: Repo) -> None:
    os.mkfifo(repo.folder / "pipe")
    captured = PROBE.capture(context(repo.folder))
    assert judge(captured, repo.folder).state == "FRESH"


def test_a_hostile_repository_executes_nothing(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hostile(repo, marker)
    (repo.folder / "file.txt").write_text("owt")
    captured = PROBE.capture(context(repo.folder))
    assert isinstance(captured, dict)
    assert "file.txt" in captured["files"]
    assert judge(captured, repo.folder).state == "FRESH"
    assert not marker.exists()
    subprocess.run(
        ["git", "status"], cwd=repo.folder, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True
    )
    assert marker.exists()  # so the silence above proves something


def test_a_work_tree_elsewhere_is_not_looked_at(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    other = Repo(tmp_path / "other")
    (other.folder / "private.txt").write_text("x")
    for tree in ("/", str(tmp_path), str(other.folder)):
        repo.git("config", "core.worktree", tree)
        verdict = judge(captured, repo.folder)
        assert (verdict.state, "private.txt" in verdict.evidence) == ("UNKNOWN", False)
        assert "private.txt" not in str(PROBE.capture(context(repo.folder)))


@pytest.mark.parametrize("name", [b"../abcdefgh", b"zz//bcdefgh", b"./zabcdefgh"])
def test_an_index_that_leads_outside_is_not_followed(repo: Repo, tmp_path: Path, name: bytes) -> None:
    (tmp_path / "abcdefgh").write_text("private")
    (repo.folder / "zz-abcdefgh").write_text("x")
    repo.git("add", "-A")
    index = repo.folder / ".git/index"
    content = index.read_bytes().replace(b"zz-abcdefgh", name)[:-20]
    index.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())
    verdict = judge({"count": 0}, repo.folder)
    assert (verdict.state, "outside the work tree" in verdict.evidence) == ("UNKNOWN", True)


@pytest.mark.parametrize("name", [".git/index", ".gitignore", ".gitattributes"])
def test_a_pipe_that_git_waits_for_meets_the_time_limit(repo: Repo, name: str) -> None:
    captured = PROBE.capture(context(repo.folder))
    (repo.folder / name).unlink(missing_ok=True)
    os.mkfifo(repo.folder / name)
    verdict = PROBE.judge(captured, context(repo.folder, timeout=1.0))
    assert verdict.state in {"UNKNOWN", "STALE"}


def test_what_cannot_be_compared_is_unknown(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for folder in (tmp_path, tmp_path / "gone", loop, None):
        assert judge(captured, folder).state == "UNKNOWN"
        assert PROBE.capture(context(folder)) is None
    (repo.folder / ".git/refs/heads/main").write_text("c" * 40 + "\n")
    assert judge(captured, repo.folder).state == "UNKNOWN"


@pytest.mark.parametrize(
    "captured",
    [
        None,
        1,
        {},
        {"count": "1"},
        {"count": -1},
        {"count": True},
        {"count": 1, "digest": None},
        {"count": 1, "digest": {}},
    ],
)
def test_a_record_without_a_digest_is_refused(repo: Repo, captured: JsonValue) -> None:
    (repo.folder / "file.txt").write_text("changed")
    with pytest.raises((TypeError, ValueError)):
        judge(captured, repo.folder)
