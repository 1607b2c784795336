"""The probe `git_commit` on real repositories in which the world really changed, and on hostile ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.describe import workspace_folder
from archiver.freshness import Verdict, workspace_of
from archiver.freshness.git_commit import GitCommitProbe
from archiver.git.repository import Distance, GitError, Repository
from archiver.git.worktree import is_dirty
from archiver.model import Checkpoint, JsonValue, Workspace

from .repos import NOW, Repo, context, hostile

PROBE = GitCommitProbe()


def judge(captured: JsonValue, folder: Path | None) -> Verdict:
    return PROBE.judge(captured, context(folder))


def test_the_same_commit_is_fresh_and_the_work_tree_is_described(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    assert captured == {
        "path": str(repo.folder),
        "commit": repo.git("rev-parse", "HEAD"),
        "branch": "main",
    }
    verdict = judge(captured, repo.folder)
    assert (verdict.state, verdict.remedy) == ("FRESH", None)
    assert "now:" not in verdict.evidence
    (repo.folder / "file.txt").write_text("changed")
    # Records of earlier releases also say here whether there were changes.
    verdict = judge({**captured, "dirty": False}, repo.folder)
    assert verdict.state == "FRESH"
    assert "then: clean, now: uncommitted changes" in verdict.evidence


def test_a_subfolder_asks_for_the_repository_around_it(repo: Repo) -> None:
    inner = repo.folder / "a" / "b"
    inner.mkdir(parents=True)
    outer = PROBE.capture(context(repo.folder))
    assert isinstance(outer, dict)
    assert PROBE.capture(context(inner)) == {**outer, "path": str(inner), "within": "a/b"}


@pytest.mark.parametrize(
    ("change", "dirty"),
    [
        (lambda f: None, False),
        (lambda f: (f / "new.txt").write_text("x"), True),
        (lambda f: (f / "file.txt").unlink(), True),
        (lambda f: (f / "file.txt").chmod(0o755), True),
        (lambda f: ((f / ".git/info/exclude").write_text("*.log\n"), (f / "a.log").write_text("x")), False),
    ],
    ids=["nothing", "untracked", "deleted", "mode", "ignored"],
)
def test_dirty(repo: Repo, change: Callable[[Path], object], dirty: bool) -> None:
    change(repo.folder)
    assert is_dirty(Repository(repo.folder, 20)) is dirty


def test_staged_changes_are_dirty_and_asking_changes_nothing(repo: Repo) -> None:
    (repo.folder / "staged.txt").write_text("x")
    repo.git("add", "staged.txt")
    index = (repo.folder / ".git/index").read_bytes()
    before = sorted(str(path) for path in (repo.folder / ".git").rglob("*"))
    assert is_dirty(Repository(repo.folder, 20)) is True
    assert (repo.folder / ".git/index").read_bytes() == index
    assert sorted(str(path) for path in (repo.folder / ".git").rglob("*")) == before


def test_ahead_behind_and_diverged_are_stale_with_their_counts(repo: Repo) -> None:
    first = PROBE.capture(context(repo.folder))
    repo.commit("two")
    repo.commit("three")
    ahead = judge(first, repo.folder)
    assert ahead.state == "STALE"
    assert "2 commits ahead of the checkpoint" in ahead.evidence
    assert ahead.remedy is not None
    assert "--accept git_commit" in ahead.remedy

    latest = PROBE.capture(context(repo.folder))
    repo.git("reset", "-q", "--hard", "HEAD~1")
    behind = judge(latest, repo.folder)
    assert behind.state == "STALE"
    assert "1 commit behind the checkpoint" in behind.evidence

    repo.commit("another three")
    diverged = judge(latest, repo.folder)
    assert diverged.state == "STALE"
    assert "diverged" in diverged.evidence
    assert "1 commit of its own, 1 commit missing" in diverged.evidence


def test_another_branch_at_the_same_commit_is_said(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.git("checkout", "-q", "-b", "topic")
    assert "branch then: main, now: topic" in judge(captured, repo.folder).evidence
    repo.git("checkout", "-q", "--detach")
    assert "branch then: main, now: none" in judge(captured, repo.folder).evidence


def test_what_cannot_be_compared_is_unknown(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    other = Repo(tmp_path / "other")
    other.commit("elsewhere")
    unborn = Repo(tmp_path / "unborn")
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "there is no commit" in judge(captured, unborn.folder).evidence
    assert judge(captured, unborn.folder).state == "UNKNOWN"
    verdicts = {
        "there is no commit": judge(captured, other.folder),
        "no git repository": judge(captured, plain),
        "no folder": judge(captured, tmp_path / "gone"),
        "no workspace": judge(captured, None),
    }
    for words, verdict in verdicts.items():
        assert verdict.state == "UNKNOWN"
        assert words in verdict.evidence


def test_without_a_repository_nothing_is_captured(tmp_path: Path) -> None:
    assert PROBE.capture(context(tmp_path)) is None
    assert PROBE.capture(context(None)) is None


def test_sha256_repositories(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "sha256", "--object-format=sha256")
    repo.commit("one")
    captured = PROBE.capture(context(repo.folder))
    assert isinstance(captured, dict)
    assert len(str(captured["commit"])) == 64
    assert is_dirty(Repository(repo.folder, 20)) is False
    repo.commit("two")
    assert "1 commit ahead" in judge(captured, repo.folder).evidence


def test_linked_work_trees(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    captured = PROBE.capture(context(tmp_path / "linked"))
    assert isinstance(captured, dict)
    assert captured["branch"] == "side"
    assert is_dirty(Repository(tmp_path / "linked", 20)) is False
    (tmp_path / "linked" / "file.txt").write_text("changed")
    assert is_dirty(Repository(tmp_path / "linked", 20)) is True
    assert is_dirty(Repository(repo.folder, 20)) is False


@pytest.mark.parametrize("path", ["line\nbreak", "-rf", "--upload-pack=touch x", "sp ace'\"$(touch x)"])
def test_strange_folder_names(tmp_path: Path, path: str) -> None:
    repo = Repo(tmp_path / path)
    repo.commit("one")
    assert PROBE.capture(context(repo.folder)) is not None
    assert is_dirty(Repository(repo.folder, 20)) is False


@pytest.mark.parametrize(
    "commit", ["--output=/tmp/x", "HEAD", "main", "a" * 39, "A" * 40, "a" * 40 + "\n", "a" * 41, "", 5]
)
def test_a_record_that_holds_no_commit_id_never_reaches_git(repo: Repo, commit: JsonValue) -> None:
    with pytest.raises((ValueError, TypeError)):
        judge({"branch": None}, repo.folder)
    with pytest.raises((ValueError, TypeError)):
        judge({"commit": commit, "branch": None, "dirty": None}, repo.folder)
    if isinstance(commit, str):
        with pytest.raises(GitError, match="commit id"):
            Repository(repo.folder, 20).has_commit(commit)


def test_a_hostile_repository_executes_nothing(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.commit("two")
    marker = tmp_path / "marker"
    hostile(repo, marker)
    # Same size, other content and time: git has to read the file to compare it.
    (repo.folder / "file.txt").write_text("owt")

    assert judge(captured, repo.folder).state == "STALE"
    assert PROBE.capture(context(repo.folder)) is not None
    assert judge({"commit": "b" * 40}, repo.folder).state == "UNKNOWN"
    assert is_dirty(Repository(repo.folder, 20)) is True
    assert not marker.exists()


def test_the_hostile_repository_is_armed(repo: Repo, tmp_path: Path) -> None:
    """The payloads above do run under a git without our measures, so their silence proves something."""
    marker = tmp_path / "marker"
    hostile(repo, marker)
    (repo.folder / "file.txt").write_text("owt")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(
        ["git", "status", "--porcelain"], cwd=repo.folder, env=environ, capture_output=True, timeout=30
    )
    assert marker.exists()


def test_a_hostile_submodule_executes_nothing(repo: Repo, tmp_path: Path) -> None:
    inner = Repo(tmp_path / "inner")
    inner.commit("inside")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "inner")
    repo.git("commit", "-q", "-m", "with a submodule")
    marker = tmp_path / "marker"
    script = tmp_path / "payload.sh"
    script.write_text(f"#!/bin/sh\necho ran >> '{marker}'\n")
    script.chmod(0o755)
    for folder in (repo.folder / "inner", repo.folder):
        subprocess.run(["git", "config", "core.fsmonitor", str(script)], cwd=folder, check=True)
    (repo.folder / "inner" / "file.txt").write_text("changed")
    assert PROBE.capture(context(repo.folder)) is not None
    assert not marker.exists()


def test_a_bare_repository_hidden_in_a_tree_is_not_entered(tmp_path: Path) -> None:
    folder = tmp_path / "plain" / "docs"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    assert PROBE.capture(context(folder)) is None


def test_a_git_program_in_the_suspect_folder_is_not_found(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    trap = repo.folder / "git"
    trap.write_text(f"#!/bin/sh\necho ran > '{marker}'\n")
    trap.chmod(0o755)
    monkeypatch.chdir(repo.folder)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert PROBE.capture(context(repo.folder)) is not None
    assert not marker.exists()
    monkeypatch.setenv("PATH", ".")
    verdict = judge({"commit": "a" * 40}, repo.folder)
    assert (verdict.state, verdict.evidence) == ("UNKNOWN", "git is not installed on this machine")


def test_variables_of_the_caller_do_not_steer_git(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    other.commit("elsewhere")
    expected = PROBE.capture(context(repo.folder))
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert PROBE.capture(context(repo.folder)) == expected


def test_a_repository_that_hangs_git_meets_the_time_limit(repo: Repo) -> None:
    os.mkfifo(repo.folder / ".git" / "pipe")
    with (repo.folder / ".git/config").open("a") as file:
        file.write("[include]\n\tpath = pipe\n")
    verdict = PROBE.judge({"commit": "a" * 40}, context(repo.folder, timeout=0.5))
    assert (verdict.state, verdict.evidence) == ("UNKNOWN", "git did not answer in time")


def test_distance_that_cannot_be_counted_is_still_stale(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.commit("two")

    def fail(*arguments: object) -> Distance:
        raise GitError("out of time")

    monkeypatch.setattr(Repository, "distance", fail)
    verdict = judge(captured, repo.folder)
    assert verdict.state == "STALE"
    assert "how far away is not known" in verdict.evidence


def test_the_folder_to_compare_with(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    captured = PROBE.capture(context(repo.folder))
    assert workspace_of({"git_commit": captured}) == repo.folder
    moved = repo.folder.rename(tmp_path / "moved")
    assert workspace_of({"git_commit": captured}) == tmp_path
    monkeypatch.chdir(moved)
    verdict = judge(captured, workspace_of({"git_commit": captured}))
    assert verdict.state == "FRESH"
    assert str(moved) in verdict.evidence
    for strange in (None, 1, {}, {"path": 1}, {"path": "a\0b"}, {"path": "relative"}, {"path": "-x"}):
        assert workspace_of({"git_commit": strange}) == moved  # type: ignore[dict-item]  # mixed examples
    assert workspace_of({}) == moved


def test_folders_that_cannot_be_looked_at_are_unknown(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = GitCommitProbe().capture(context(repo.folder))
    too_long = f"/{'x' * 5000}"
    assert workspace_of({"git_commit": {"path": too_long}}) == Path.cwd()

    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "is_dir", closed)
        assert workspace_of({"git_commit": {"path": str(repo.folder)}}) == Path.cwd()
        assert judge(captured, repo.folder).state == "UNKNOWN"
        assert GitCommitProbe().capture(context(repo.folder)) is None
        run = Checkpoint(
            run_id="r",
            task_id="t",
            created_at=NOW,
            checkpoint_at=NOW,
            workspace=Workspace(path=str(repo.folder)),
        )
        assert workspace_folder(run) is None
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert workspace_of({}) is None


def test_a_commit_that_was_collected_is_unknown_and_has_a_command(repo: Repo) -> None:
    repo.commit("two")
    captured = PROBE.capture(context(repo.folder))
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    verdict = judge(captured, repo.folder)
    assert verdict.state == "UNKNOWN"
    assert "there is no commit" in verdict.evidence
    assert verdict.remedy is not None
    assert "git fetch --all" in verdict.remedy


def test_a_shallow_clone_does_not_say_how_far(repo: Repo, tmp_path: Path) -> None:
    old = PROBE.capture(context(repo.folder))
    repo.commit("two")
    recent = PROBE.capture(context(repo.folder))
    repo.commit("three")
    shallow = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth", "2", repo.folder.as_uri(), str(shallow))
    gone = judge(old, shallow)
    assert (gone.state, "git fetch --unshallow" in str(gone.remedy)) == ("UNKNOWN", True)
    moved = judge(recent, shallow)
    assert (moved.state, "cut history does not say" in moved.evidence) == ("STALE", True)
    assert "ahead" not in moved.evidence


def test_before_the_first_commit(tmp_path: Path) -> None:
    unborn = Repo(tmp_path / "unborn")
    captured = PROBE.capture(context(unborn.folder))
    assert captured == {"path": str(unborn.folder), "commit": None, "branch": "main"}
    assert judge(captured, unborn.folder).state == "FRESH"
    first = unborn.commit("one")
    verdict = judge(captured, unborn.folder)
    assert (verdict.state, first in verdict.evidence) == ("STALE", True)
    captured = PROBE.capture(context(unborn.folder))
    unborn.git("checkout", "-q", "--orphan", "empty")
    verdict = judge(captured, unborn.folder)
    assert (verdict.state, "without any commit" in verdict.evidence) == ("STALE", True)


def test_a_head_that_leads_nowhere_is_unknown(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    (repo.folder / ".git/refs/heads/main").write_text("c" * 40 + "\n")
    verdict = judge(captured, repo.folder)
    assert (verdict.state, "HEAD leads to no commit" in verdict.evidence) == ("UNKNOWN", True)
    assert PROBE.capture(context(repo.folder)) is None


def test_other_probes_also_say_where_the_run_worked(repo: Repo, tmp_path: Path) -> None:
    assert workspace_of({"lockfiles": {"path": str(repo.folder)}}) == repo.folder
    assert workspace_of({"git_commit": {"path": 1}, "installed": {"path": str(tmp_path)}}) == tmp_path


@pytest.mark.parametrize("start", ["", "a", "a/b", "other"])
def test_the_same_part_of_another_work_tree_is_compared(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    for folder in ("a/b", "other"):
        (repo.folder / folder).mkdir(parents=True)
    captured = PROBE.capture(context(repo.folder / "a" / "b"))
    moved = repo.folder.rename(tmp_path / "moved")
    monkeypatch.chdir(moved / start)
    assert workspace_of({"git_commit": captured}) == moved / "a" / "b"


@pytest.mark.parametrize("within", ["gone", "../..", "/", "out", "\0", "x" * 5000, "loop", 7])
def test_a_part_that_is_not_here_leaves_the_current_folder(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: JsonValue
) -> None:
    (repo.folder / "out").symlink_to(tmp_path)
    (repo.folder / "loop").symlink_to(repo.folder / "loop")
    monkeypatch.chdir(repo.folder)
    assert workspace_of({"git_commit": {"path": "/gone", "within": within}}) == repo.folder
    monkeypatch.chdir(tmp_path)
    assert workspace_of({"git_commit": {"path": "/gone", "within": "work tree"}}) == tmp_path
