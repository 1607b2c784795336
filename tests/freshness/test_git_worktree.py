"""Changes that git was told not to see, or sees in part: submodules, marks in the index, sparse checkouts."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.freshness import git_dirty
from archiver.freshness.git_dirty import GitDirtyProbe
from archiver.git import running, worktree
from archiver.git.repository import Repository

from .repos import Repo, context, hostile

PROBE = GitDirtyProbe()
Change = Callable[[Repo], object]


def write(repo: Repo, text: str = "changed", name: str = "file.txt") -> None:
    (repo.folder / name).parent.mkdir(exist_ok=True)
    (repo.folder / name).write_text(text)


def folders(repo: Repo) -> None:
    for folder in ("a", "b", "c"):
        write(repo, "x", f"{folder}/f")
    repo.commit("one")


def only_a(repo: Repo, *options: str) -> None:
    folders(repo)
    repo.git("sparse-checkout", "set", *options, "a")


def submodule(repo: Repo) -> None:
    other = Repo(repo.folder.parent / "module")
    other.commit("inside")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "module")
    repo.git("-C", "module", "config", "user.name", "A")
    repo.git("-C", "module", "config", "user.email", "a@example.org")
    repo.git("commit", "-q", "-m", "with a module")


def leave_out_in_module(repo: Repo) -> None:
    repo.git("-C", "module", "update-index", "--skip-worktree", "file.txt")
    (repo.folder / "module" / "file.txt").unlink()


def commit_in(repo: Repo, folder: str) -> None:
    write(repo, "more", f"{folder}/file.txt")
    repo.git("-C", folder, "commit", "-q", "-a", "-m", "inside")


def ignoring_stat(repo: Repo) -> None:
    repo.git("config", "core.ignoreStat", "true")
    write(repo, "two")
    repo.git("commit", "-q", "-a", "-m", "two")


def inner(repo: Repo) -> None:
    Repo(repo.folder / "inner").commit("inside")


def staged(text: str) -> Change:
    """A version that neither HEAD nor the work tree has."""

    def change(repo: Repo) -> None:
        write(repo, text)
        repo.git("add", "file.txt")
        write(repo, "one")

    return change


def conflict(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "other")
    repo.commit("two")
    repo.git("checkout", "-q", "main")
    repo.commit("three")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "other")


def nothing(_: Repo) -> None:
    """The work tree as it was made."""


@pytest.mark.parametrize(
    ("before", "change", "words"),
    [
        (lambda r: r.git("update-index", "--assume-unchanged", "file.txt"), write, "now 1 file: file.txt"),
        (
            lambda r: r.git("update-index", "--assume-unchanged", "file.txt"),
            lambda r: (r.folder / "file.txt").unlink(),
            "now 1 file: file.txt",
        ),
        (nothing, lambda r: (r.git("update-index", "--assume-unchanged", "file.txt"), write(r)), "file.txt"),
        (ignoring_stat, write, "now 1 file: file.txt"),
        (lambda r: r.git("update-index", "--skip-worktree", "file.txt"), write, "now 1 file: file.txt"),
        (
            lambda r: r.git("update-index", "--skip-worktree", "file.txt"),
            lambda r: (r.folder / "file.txt").unlink(),
            "left out of the work tree: 0 then, 1 now",
        ),
        (folders, lambda r: r.git("sparse-checkout", "set", "a"), "0 then, 2 now"),
        (only_a, lambda r: r.git("sparse-checkout", "set", "b"), "2 then, 2 now"),
        (only_a, lambda r: write(r, "y", "b/f"), "now 1 file: b/f"),
        (lambda r: only_a(r, "--cone", "--sparse-index"), lambda r: write(r, "y", "a/f"), "now 1 file: a/f"),
        (submodule, lambda r: commit_in(r, "module"), "now 1 file: module"),
        (submodule, lambda r: write(r, "y", "module/file.txt"), "now 1 file: module"),
        (submodule, lambda r: write(r, "y", "module/new"), "now 1 file: module"),
        (submodule, lambda r: r.git("submodule", "deinit", "-f", "module"), "0 then, 1 now"),
        (submodule, leave_out_in_module, "now 1 file: module"),
        (inner, lambda r: commit_in(r, "inner"), "other uncommitted changes"),
        (inner, lambda r: write(r, "y", "inner/file.txt"), "other uncommitted changes"),
        (staged("X"), staged("Y"), "other uncommitted changes"),
        (lambda r: r.git("rm", "-q", "--cached", "file.txt"), lambda r: r.git("add", "."), "none now"),
        (
            write,
            lambda r: r.git("rm", "-q", "--cached", "-f", "file.txt"),
            "other uncommitted changes",
        ),
        (conflict, lambda r: r.git("add", "-A"), "other uncommitted changes"),
    ],
)  # fmt: skip
def test_what_git_does_not_show_is_seen(repo: Repo, before: Change, change: Change, words: str) -> None:
    before(repo)
    captured = PROBE.capture(context(repo.folder))
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"
    index = (repo.folder / ".git/index").read_bytes()
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"
    assert (repo.folder / ".git/index").read_bytes() == index  # looked at in a copy
    change(repo)
    verdict = PROBE.judge(captured, context(repo.folder))
    assert (verdict.state, words in verdict.evidence) == ("STALE", True), verdict.evidence


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (nothing, lambda r: os.utime(r.folder / "file.txt", (1, 1))),
        (write, lambda r: r.git("add", "-A")),
        (lambda r: write(r, name="new"), lambda r: r.git("add", "-N", "new")),
        (lambda r: (r.folder / "file.txt").unlink(), lambda r: r.git("rm", "-q", "--cached", "file.txt")),
        (only_a, lambda r: r.git("sparse-checkout", "disable")),  # all of the commit is here now
        (submodule, lambda r: r.git("submodule", "absorbgitdirs")),
        (nothing, lambda r: r.git("update-index", "--assume-unchanged", "file.txt")),
    ],
)
def test_what_is_no_change_is_fresh(repo: Repo, before: Change, change: Change) -> None:
    before(repo)
    captured = PROBE.capture(context(repo.folder))
    change(repo)
    verdict = PROBE.judge(captured, context(repo.folder))
    assert verdict.state == "FRESH", verdict.evidence


def test_line_ends_that_git_converts_are_no_change(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    write(repo, "a\nb\n", "lines.txt")
    repo.commit("one")
    (repo.folder / "lines.txt").unlink()
    repo.git("checkout", "-q", "lines.txt")
    assert b"\r\n" in (repo.folder / "lines.txt").read_bytes()
    captured = PROBE.capture(context(repo.folder))
    assert captured == {"count": 0, "files": [], "digest": None}
    os.utime(repo.folder / "lines.txt", (1, 1))
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"
    write(repo, "a\r\nc\r\n", "lines.txt")
    assert PROBE.judge(captured, context(repo.folder)).state == "STALE"


def test_a_line_end_setting_cannot_add_others(repo: Repo) -> None:
    repo.git("config", "core.eol", "lf\n\tfsmonitor = /bin/false")
    repo.git("config", "core.autocrlf", "input")
    assert Repository(repo.folder, 20).line_ends() == {"core.autocrlf": "input"}


def test_many_repositories_inside_are_unknown(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    inner(repo)
    Repo(repo.folder / "inner" / "second").commit("x")
    captured = PROBE.capture(context(repo.folder))
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"
    Repo(repo.folder / "inner" / "second" / "third").commit("x")
    monkeypatch.setattr(git_dirty, "MAX_REPOSITORIES", 2)
    verdict = PROBE.judge(captured, context(repo.folder))
    assert (verdict.state, "more than 2 repositories" in verdict.evidence) == ("UNKNOWN", True)


def test_many_submodules_are_unknown(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = PROBE.capture(context(repo.folder))
    submodule(repo)
    monkeypatch.setattr(worktree, "MAX_MODULES", 0)
    verdict = PROBE.judge(captured, context(repo.folder))
    assert (verdict.state, "more than 0 submodules" in verdict.evidence) == ("UNKNOWN", True)


def test_a_repository_inside_that_leads_elsewhere_is_unknown(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    other = Repo(tmp_path / "other")
    other.commit("private")
    write(other, "x", "private.txt")
    (repo.folder / "inner").mkdir()
    other.git("config", "core.worktree", str(other.folder))
    (repo.folder / "inner" / ".git").write_text(f"gitdir: {other.folder}/.git\n")
    write(repo, "x", "inner/file.txt")
    verdict = PROBE.judge(captured, context(repo.folder))
    assert (verdict.state, "private" in verdict.evidence) == ("UNKNOWN", False)


def test_a_submodule_that_is_no_repository_any_more_is_unknown(repo: Repo) -> None:
    submodule(repo)
    captured = PROBE.capture(context(repo.folder))
    (repo.folder / "module" / ".git").unlink()
    (repo.folder / "module" / ".git").mkdir()
    verdict = PROBE.judge(captured, context(repo.folder))
    assert (verdict.state, "a repository inside this one" in verdict.evidence) == ("UNKNOWN", True)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system cannot limit another process")
def test_a_file_that_git_reads_whole_is_held_to_a_limit(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = PROBE.capture(context(repo.folder))
    monkeypatch.setattr(running, "_MAX_MEMORY", 64 << 20)
    with (repo.folder / ".gitignore").open("wb") as file:
        file.truncate(90 << 20)
    assert PROBE.judge(captured, context(repo.folder)).evidence.startswith("cannot be compared")


@pytest.mark.parametrize("kind", ["inner", "module"])
def test_hostile_repositories_inside_execute_nothing(repo: Repo, tmp_path: Path, kind: str) -> None:
    marker = tmp_path / "marker"
    repo.git("update-index", "--assume-unchanged", "file.txt")
    if kind == "module":
        submodule(repo)
        inside = Repo.__new__(Repo)
        inside.folder = repo.folder / "module"
        (inside.folder / ".git").unlink()
        (repo.folder / ".git" / "modules" / "module").rename(inside.folder / ".git")
        inside.git("config", "--unset", "core.worktree")
    else:
        inside = Repo(repo.folder / "inner")
        inside.commit("inside")
    hostile(inside, marker)
    hostile(repo, marker)
    write(repo, "edisni", f"{kind}/file.txt")  # of the same size, so that git has to look inside
    marker.unlink(missing_ok=True)
    captured = PROBE.capture(context(repo.folder))
    assert isinstance(captured, dict)
    assert any(name.startswith(kind) for name in captured["files"])
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"
    assert not marker.exists()
    subprocess.run(
        ["git", "status"], cwd=inside.folder, env={**os.environ, "HOME": str(tmp_path)}, check=False
    )
    assert marker.exists()  # so the silence above proves something
