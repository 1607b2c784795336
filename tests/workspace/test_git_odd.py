"""Repositories of rare forms, in rare surroundings: saved and made again as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from freshness.repos import Repo

from .git_saving import git, save, saved_and_made_again, state_of, tree_of


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Two commits, and something of each kind of change."""
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    (made.folder / "d").mkdir()
    for name in ("f1", "f2", "d/x"):
        (made.folder / name).write_text(f"{name}\n")
    made.commit("two")
    (made.folder / "f1").write_text("changed\n")
    (made.folder / "f2").unlink()
    (made.folder / "staged").write_text("staged\n")
    made.git("add", "staged")
    (made.folder / "new").write_text("new\n")
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("update-index", "--untracked-cache"),
        ("config", "feature.manyFiles", "true"),
        ("sparse-checkout", "set", "--cone", "--sparse-index", "d"),
        ("pack-refs", "--all"),
    ],
    ids=lambda words: words[-2].strip("-"),
)
def test_forms_of_an_index_and_of_refs(repo: Repo, tmp_path: Path, words: tuple[str, ...]) -> None:
    repo.git(*words)
    git(repo.folder, "status")
    saved_and_made_again(repo, tmp_path / "saved")


def test_variables_of_git_lead_nobody_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    other.commit("other")
    with monkeypatch.context() as patch:
        for name, value in {
            "GIT_DIR": str(other.folder / ".git"),
            "GIT_WORK_TREE": str(other.folder),
            "GIT_INDEX_FILE": str(other.folder / ".git" / "index"),
            "GIT_OBJECT_DIRECTORY": str(other.folder / ".git" / "objects"),
            "GIT_NAMESPACE": "x",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "/bin/false",
            "GIT_EXTERNAL_DIFF": "/bin/false",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_DEFAULT_HASH": "sha256",
            "GIT_TRACE": str(tmp_path / "trace"),
        }.items():
            patch.setenv(name, value)
        save(repo.folder, tmp_path / "saved").write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)
    assert state_of(tmp_path / "again") == state_of(repo.folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_of_another_user_is_read(repo: Repo, tmp_path: Path) -> None:
    for path in (repo.folder, *repo.folder.rglob("*")):
        os.lchown(path, 65534, 65534)
    save(repo.folder, tmp_path / "saved").write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_commit_that_is_replaced_is_taken_as_it_is(repo: Repo, tmp_path: Path) -> None:
    repo.git("replace", "HEAD", "HEAD~1")
    saved = save(repo.folder, tmp_path / "saved")
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_text_in_another_encoding_travels_as_it_lies_there(repo: Repo, tmp_path: Path) -> None:
    """Git has it in UTF-8, with as many bytes where each character has one in both."""
    (repo.folder / ".gitattributes").write_text(
        "*.e working-tree-encoding=IBM037 filter=lfs\n*.u working-tree-encoding=UTF-16\n"
    )
    (repo.folder / "a.e").write_bytes("hello".encode("cp037"))
    (repo.folder / "a.u").write_bytes("hello".encode("utf-16"))
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "encoded")
    saved = save(repo.folder, tmp_path / "saved")
    assert set(saved.named()) == {"a.e", "a.u"}
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_line_ends_that_are_staged_stay_as_they_are(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "core.autocrlf", "true")
    (repo.folder / "ends.txt").write_bytes(b"one\r\ntwo\r\n")
    blob = repo.git("hash-object", "-w", "--no-filters", "ends.txt")
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},ends.txt")
    _, _, into = saved_and_made_again(repo, tmp_path / "saved")
    assert git(into, "cat-file", "blob", ":ends.txt") == b"one\r\ntwo\r\n"


def test_what_is_staged_is_known_as_unchanged_to_those_who_do_not_look(repo: Repo, tmp_path: Path) -> None:
    """Commands below `git status` believe what the index noted of a file, and nothing else."""
    (repo.folder / "staged").write_text("new\n")
    repo.git("add", "staged")
    _, _, into = saved_and_made_again(repo, tmp_path / "saved")
    assert git(into, "diff-files", "--name-only") == b"f1\nf2\n"


@pytest.mark.parametrize("name", [".GIT", "git~1", ".git ", ".git\u200c", ".git:x", "x\\.git"])
def test_a_folder_that_some_system_takes_for_that_of_git_is_named(
    repo: Repo, tmp_path: Path, name: str
) -> None:
    """It would be refused when the tree is made again: all else must come back."""
    (repo.folder / name).mkdir()
    (repo.folder / name / "config").write_text("x")
    saved = save(repo.folder, tmp_path / "saved")
    assert "git folder on some systems" in saved.reasons()[f"{name}/config"]
    saved.write(tmp_path / "again")
    (repo.folder / name / "config").unlink()
    (repo.folder / name).rmdir()
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_such_a_folder_in_the_index_is_named(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "git~1").mkdir()
    (repo.folder / "git~1" / "config").write_text("x")
    repo.git("-c", "core.protectNTFS=false", "add", "-A")
    repo.git("config", "core.protectNTFS", "false")
    saved = save(repo.folder, tmp_path / "saved")
    assert "git folder on some systems" in saved.reasons()["git~1/config"]
    saved.write(tmp_path / "again")
    assert (tmp_path / "again" / "new").read_text() == "new\n"
    assert not (tmp_path / "again" / "git~1").exists()
