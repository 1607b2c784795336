"""A commit that git does not check out whole, and a machine without git: all else comes back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from freshness.repos import Repo

from .git_saving import git, save, state_of, tree_of

FOLDERS = [".git", ".GIT", "git~1", ".git ", ".git.", ".git::$INDEX_ALLOCATION", ".git\\x", "a\\.git"]
MODULES = [".gitmodules", ".GitModules", "gitmod~1", "GI7EBA~1"]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    (made.folder / "folder").mkdir()
    (made.folder / "folder" / "inner.txt").write_text("inner\n")
    made.commit("one")
    return made


def mktree(repo: Repo, *lines: str) -> str:
    return subprocess.run(
        ["git", "mktree", "-z"], cwd=repo.folder, input="".join(f"{line}\0" for line in lines), text=True,
        capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip


def plant(repo: Repo, *lines: str, below: str = "") -> str:
    """A commit with these lines in its tree, or in that of a folder, beside all that was there."""
    old = git(repo.folder, "ls-tree", "-z", f"HEAD:{below}").decode().split("\0")[:-1]
    tree = mktree(repo, *old, *lines)
    if below:
        tree = mktree(repo, f"040000 tree {tree}\t{below}", f"100644 blob {blob(repo)}\tfile.txt")
    commit = repo.git("commit-tree", tree, "-p", "HEAD", "-m", "planted")
    repo.git("update-ref", "refs/heads/main", commit)
    return commit


def blob(repo: Repo) -> str:
    return repo.git("rev-parse", "HEAD:file.txt")


@pytest.mark.parametrize("below", ["", "folder"])
def test_what_some_system_takes_for_a_git_folder_is_left_out_of_a_commit(
    repo: Repo, tmp_path: Path, below: str
) -> None:
    hook = mktree(repo, f"100755 blob {blob(repo)}\tconfig", f"100755 blob {blob(repo)}\tpost-checkout")
    commit = plant(repo, *(f"040000 tree {hook}\t{name}" for name in FOLDERS), below=below)
    (repo.folder / "file.txt").write_text("changed\n")
    (repo.folder / "new.txt").write_text("staged\n")
    repo.git("add", "new.txt")
    saved = save(repo.folder, tmp_path / "saved")
    again = tmp_path / "outside" / "again"
    again.parent.mkdir()
    written = saved.write(again)
    (said,) = (note for note in written.notes if "are not written" in note)
    assert said.startswith(f"commit {commit} has paths")
    assert f"({2 * len(FOLDERS)}): " in said
    assert f"{below}/.git/config".lstrip("/") in said.lower()
    assert tree_of(again) == tree_of(repo.folder)
    assert [path.name for path in again.parent.iterdir()] == ["again"]
    assert git(again, "config", "core.bare") == b"false\n"  # its own file, not that of the commit
    assert not (again / ".git" / "post-checkout").exists()
    assert git(again, "rev-parse", "HEAD").decode().strip() == commit
    assert git(again, "diff", "--cached", "--name-only", "--diff-filter=A") == b"new.txt\n"
    assert git(again, "diff", "--name-only") == b"file.txt\n"


def test_a_link_in_the_place_of_the_addresses_of_submodules_is_left_out(repo: Repo, tmp_path: Path) -> None:
    target = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=repo.folder, input="/etc/passwd", text=True,
        capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    plant(repo, *(f"120000 blob {target}\t{name}" for name in [*MODULES, "link"]))
    saved = save(repo.folder, tmp_path / "saved")
    saved.entries.clear()
    written = saved.write(tmp_path / "again")
    assert any(f"({len(MODULES)}): " in note for note in written.notes)
    assert sorted(tree_of(tmp_path / "again")) == ["file.txt", "folder/inner.txt", "link"]


def test_commits_of_a_clone_that_did_not_travel_are_looked_at_too(repo: Repo, tmp_path: Path) -> None:
    """HEAD then stands at another commit than the one that the files are relative to."""
    first = repo.git("rev-parse", "HEAD")
    repo.git("remote", "add", "origin", "https://host.example/a.git")
    repo.git("update-ref", "refs/remotes/origin/main", first)
    hook = mktree(repo, f"100755 blob {blob(repo)}\tconfig")
    commit = plant(repo, f"040000 tree {hook}\t.GIT")
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    assert (saved.document.head, saved.document.base) == (commit, first)
    written = saved.write(tmp_path / "again", repo.folder)
    assert any(note.endswith("(1): .GIT/config") for note in written.notes)
    assert git(tmp_path / "again", "rev-parse", "HEAD").decode().strip() == commit
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_commit_that_leads_elsewhere_writes_nothing_there(repo: Repo, tmp_path: Path) -> None:
    """No capture has such a base: it is one that somebody else wrote into a bundle."""
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    outside = mktree(repo, f"100644 blob {blob(repo)}\tplanted")
    head = plant(repo, *(f"040000 tree {outside}\t{name}" for name in ("..", ".")))
    saved.document = saved.document.model_copy(update={"head": head, "base": head})
    saved.entries.clear()
    written = saved.write(tmp_path / "outside" / "again", repo.folder)
    assert written.notes[0].endswith("lead elsewhere (2): ../planted, ./planted")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["again"]
    assert sorted(tree_of(tmp_path / "outside" / "again")) == ["file.txt", "folder/inner.txt"]


def test_of_a_usual_commit_nothing_is_left_out(repo: Repo, tmp_path: Path) -> None:
    for name in (".gitignore", ".github", "git", ".gitmodules", "a:b", "git~2"):
        (repo.folder / name).write_text("# x\n")
    (repo.folder / "gitmodules").symlink_to("a:b")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "usual")
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.write(tmp_path / "again").notes == ()
    assert state_of(tmp_path / "again") == state_of(repo.folder)


def test_without_git_the_changed_files_are_written(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo.folder / "new.txt").write_text("new\n")
    (repo.folder / "file.txt").unlink()
    saved = save(repo.folder, tmp_path / "saved")
    (tmp_path / "nothing").mkdir()
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path / "nothing"))
        written = saved.write(tmp_path / "again")
    assert "git is not installed" in written.notes[0]
    assert written.notes[1].startswith("install git")
    assert "not there any more: file.txt" in written.notes
    assert sorted(os.listdir(tmp_path / "again")) == [".checkpoint-git", "new.txt"]
    bundle = tmp_path / "again" / ".checkpoint-git" / "commits.bundle"
    assert saved.bundle is not None
    assert bundle.read_bytes() == saved.bundle.read_bytes()
