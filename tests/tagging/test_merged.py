"""What a run made counts as merged when its own commit is in the default branch upstream, as fetched last."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli.test_commands import session
from test_retention import committed

from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.retention import Standing
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.tagging import Known, settle
from archiver.tagging.merged import Merge, look

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Tree:
    """A work tree with a branch of its own and a remote's default branch, as fetched last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "work")

    def git(self, *words: str, at: datetime = MADE) -> str:
        stamp = f"{int(at.timestamp())} +0000"
        environ = {
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
        }
        names = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(self.folder))
        done = subprocess.run(
            ["git", *names, *words], check=True, capture_output=True, text=True, env=environ
        )
        return done.stdout.strip()

    def commit(self, text: str, at: datetime = MADE) -> str:
        (self.folder / "file").write_text(text)
        self.git("add", "file")
        self.git("commit", "-q", "-m", text, at=at)
        return self.git("rev-parse", "HEAD")

    def fetched(self, commit: str, branch: str = "origin/main") -> None:
        self.git("update-ref", f"refs/remotes/{branch}", commit)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def known(tree: Tree, commit: str | None, **more: Any) -> Known:
    probes = {
        "git_commit": {"path": str(tree.folder), "commit": commit, "branch": "work"},
        "git_dirty": {"count": 0, "files": [], "digest": None},
    } | more.pop("probes", {})
    fields = {"outcome": "failed", "retention": "failure", "created_at": MADE - HOUR, "probes": probes} | more
    return Known([committed(1, MADE + HOUR, **fields)])


def test_a_commit_of_the_run_that_came_upstream(tree: Tree) -> None:
    before = tree.commit("before", MADE - 2 * HOUR)
    commit = tree.commit("the work")
    assert look(known(tree, commit)) is None  # nothing upstream is known here
    tree.fetched(before)
    assert look(known(tree, commit)) is None
    tree.fetched(tree.git("commit-tree", "-p", before, "-p", commit, "-m", "merge", f"{commit}^{{tree}}"))
    assert look(known(tree, commit)) == Merge(commit, "origin/main")
    tree.git("update-ref", "-d", "refs/remotes/origin/main")
    tree.fetched(commit, "origin/trunk")
    assert look(known(tree, commit)) is None
    tree.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert look(known(tree, commit)) == Merge(commit, "origin/HEAD")
    tree.fetched(before, "upstream/master")  # a fork has it, and where it comes from has not
    assert look(known(tree, commit)) is None


def test_what_does_not_count(tree: Tree) -> None:
    base = tree.commit("before", MADE - 2 * HOUR)
    commit = tree.commit("the work")
    tree.fetched(commit)
    assert look(known(tree, commit)) is not None
    one = known(tree, commit)
    dirty = {"git_dirty": {"count": 1, "files": ["file"], "digest": None}}
    unread = {"git_dirty": {"unread": "too large"}}
    for wrong in (
        known(tree, base),
        known(tree, commit, outcome="running", retention="live"),
        known(tree, commit, outcome="succeeded", retention="success"),
        known(tree, commit, probes=dirty),
        known(tree, commit, probes=unread),
        known(tree, commit, probes={"git_dirty": None}),
        known(tree, None),
        known(tree, "f" * 40),
        known(tree, "--all"),
        known(tree, commit, probes={"git_commit": {"path": "/nonexistent", "commit": commit}}),
        known(tree, commit, probes={"git_commit": {"path": "tree", "commit": commit}}),
        known(tree, commit, created_at=MADE + timedelta(seconds=2)),
        replace(one, standing=Standing(held=MADE)),
        replace(one, standing=Standing(merged=MADE)),
        replace(one, whole=False),
        Known([]),
    ):
        assert look(wrong) is None
    squashed = tree.git("commit-tree", "-p", base, "-m", "squash", f"{commit}^{{tree}}")
    tree.fetched(squashed)
    assert look(one) is None


def saved(setup: Setup, tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A run that failed in the work tree, and its commit fetched as upstream's."""
    monkeypatch.chdir(tree.folder)
    began = (datetime.now(UTC) - timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
    told = session(tmp_path / "told.jsonl", tree.folder, at=began)
    tree.commit("before", datetime.now(UTC) - HOUR)
    at = datetime.now(UTC) - timedelta(minutes=5)
    archive(Source((told,)), setup, options=Options(given=Given(run_id="r")), now=lambda: at)
    tree.fetched(tree.commit("the work", datetime.now(UTC) - timedelta(minutes=1)))
    archive(Source((told,)), setup, options=Options(given=Given(run_id="r", outcome="failed")))
    return "r"


def test_a_sweep_signs_that_it_is_merged_and_shortens(
    setup: Setup, tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = saved(setup, tree, monkeypatch, tmp_path)
    record = Catalog(setup).chain(run).head.record
    assert record.probes["git_commit"]
    now = datetime.now(UTC)
    nobody = replace(setup, signing_key=SigningKey.generate())
    refused = settle(nobody, run, now=now, look_for_merge=True)
    assert not refused.merged
    assert "is merged" in refused.warnings[0]
    assert "stays as long as before" in refused.warnings[0]
    planned = settle(setup, run, now=now, look_for_merge=True, dry_run=True)
    assert planned.merged
    assert not list(setup.store.list("notes/"))
    done = settle(setup, run, now=now, look_for_merge=True)
    assert done.merged
    assert {change.to for change in done.changes} == {"success"}
    assert {change.why for change in done.changes} == {"what the run made is merged"}
    (believed,) = Catalog(setup).notes.of(run)
    assert (believed.note.kind, believed.note.last) == ("merged", 2)
    assert "origin/main" in believed.note.reason
    again = settle(setup, run, now=now, look_for_merge=True)
    assert (again.merged, again.changes, again.due) == (False, (), None)


def test_a_run_that_may_come_to_be_merged_is_looked_at_again(
    setup: Setup, tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = saved(setup, tree, monkeypatch, tmp_path)
    tree.git("update-ref", "-d", "refs/remotes/origin/main")
    now = datetime.now(UTC)
    assert settle(setup, run, now=now, look_for_merge=True).due == now + HOUR
    tree.folder.rename(tree.folder.with_name("away"))
    assert settle(setup, run, now=now, look_for_merge=True).due is None
