"""What a restore that only shows says of a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.model.git_document import GitDocument
from archiver.model.workspace import TreeEntry
from archiver.workspace import git_difference as room

from .git_saving import inside_of, save


def git_difference(document: GitDocument, entries: Iterable[TreeEntry], folder: Path) -> list[str]:
    return [one.said for one in room.git_difference(document, entries, folder)]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    (made.folder / "kept.txt").write_text("kept")
    made.commit("one")
    (made.folder / "file.txt").write_text("changed")
    (made.folder / "link").symlink_to("file.txt")
    (made.folder / "new.txt").write_text("new")
    (made.folder / "kept.txt").unlink()
    return made


def in_conflict(repo: Repo) -> None:
    repo.git("stash", "-q", "-u")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("side")
    repo.git("checkout", "-q", "main")
    repo.commit("main")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "side")


def test_nothing_differs_from_the_same_state(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    before = inside_of(repo.folder)
    assert git_difference(saved.document, saved.entries, repo.folder) == []
    saved.write(tmp_path / "again")
    assert git_difference(saved.document, saved.entries, tmp_path / "again") == []
    assert inside_of(repo.folder) == before


def test_every_difference_has_a_line(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    head = saved.document.head
    (repo.folder / "file.txt").write_text("another")
    (repo.folder / "link").unlink()
    (repo.folder / "link").symlink_to("new.txt")
    (repo.folder / "new.txt").chmod(0o600)
    (repo.folder / "kept.txt").write_text("back")
    (repo.folder / "only here\n").write_text("x")
    repo.git("checkout", "-q", "-b", "other")
    repo.git("commit", "-q", "--allow-empty", "-m", "two")
    now = repo.git("rev-parse", "HEAD")
    assert git_difference(saved.document, saved.entries, repo.folder) == [
        f"HEAD: {head} was captured, here it is {now}",
        "branch: main was captured, here it is other",
        "file.txt: has another content here",
        "kept.txt: is here, was not there any more",
        "link: is not the link that was captured",
        "new.txt: has mode 600 here, 644 was captured",
        "only here⏎: changed here, and not in what was captured",
    ]


def test_what_was_committed_meanwhile_is_otherwise_too(repo: Repo, tmp_path: Path) -> None:
    for name in ("deleted", "changed"):
        (repo.folder / name).write_text("one")
    repo.git("add", "deleted", "changed")
    repo.git("commit", "-q", "-m", "two")
    saved = save(repo.folder, tmp_path / "saved")
    (repo.folder / "changed").write_text("two")
    (repo.folder / "added").write_text("one")
    repo.git("rm", "-q", "deleted")
    repo.git("add", "changed", "added")
    repo.git("commit", "-q", "-m", "three")
    head, *lines = git_difference(saved.document, saved.entries, repo.folder)
    assert head.startswith("HEAD: ")
    what = "changed here, and not in what was captured"
    assert lines == [f"{name}: {what}" for name in ("added", "changed", "deleted")]


def test_what_was_captured_before_the_first_commit(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "unborn")
    saved = save(repo.folder, tmp_path / "saved")
    assert git_difference(saved.document, saved.entries, repo.folder) == []
    repo.commit("one")
    head, *lines = git_difference(saved.document, saved.entries, repo.folder)
    assert head.startswith("HEAD: no commit was captured")
    assert lines == ["file.txt: changed here, and not in what was captured"]


def test_all_three_sides_of_a_conflict_are_compared(repo: Repo, tmp_path: Path) -> None:
    in_conflict(repo)
    saved = save(repo.folder, tmp_path / "saved")
    assert {one.stage for one in saved.document.staged} == {1, 2, 3}
    assert git_difference(saved.document, saved.entries, repo.folder) == []


def test_what_is_staged_and_lies_nowhere_differs_in_the_index_alone(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    (repo.folder / "other.txt").write_text("x")
    repo.git("add", "other.txt")
    (repo.folder / "other.txt").unlink()
    assert git_difference(saved.document, saved.entries, repo.folder) == [
        "other.txt: is staged here, was not"
    ]


def test_of_what_is_redacted_the_mode_in_the_index_is_compared(repo: Repo, tmp_path: Path) -> None:
    repo.git("add", "new.txt")
    saved = save(repo.folder, tmp_path / "saved")
    entries = [replace(one, redacted=one.path == "new.txt") for one in saved.entries]
    repo.git("update-index", "--chmod=+x", "new.txt")
    assert "new.txt: is staged otherwise here" in git_difference(saved.document, entries, repo.folder)


def test_a_folder_in_the_place_of_what_was_gone_has_lines_for_what_lies_in_it(
    repo: Repo, tmp_path: Path
) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    (repo.folder / "kept.txt").mkdir()
    (repo.folder / "kept.txt" / "in").write_text("x")
    assert git_difference(saved.document, saved.entries, repo.folder) == [
        "kept.txt/in: changed here, and not in what was captured"
    ]


def test_what_cannot_be_compared_is_said(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    entries = [replace(one, redacted=one.path == "new.txt") for one in saved.entries]
    other = Repo(tmp_path / "other")
    other.commit("changed")
    lines = git_difference(saved.document, entries, other.folder)
    assert f"commit {saved.document.base} is not here" in "\n".join(lines)
    assert "new.txt: was captured, is not here" in lines
    assert "new.txt: cannot be compared: credentials in it were replaced when it was captured" in (
        git_difference(saved.document, entries, repo.folder)
    )


def test_a_folder_without_git_is_compared_file_by_file(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "file.txt").mkdir()
    (plain / "link").write_text("no link")
    (plain / "new.txt").write_text("new")
    lines = git_difference(saved.document, saved.entries, plain)
    assert lines[0].startswith("only the captured files are compared: there is no git repository")
    assert lines[1:] == [
        "file.txt: is a folder here, a file was captured",
        "link: is a file here, a link was captured",
    ]


def test_an_operation_in_progress_is_said(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    in_conflict(repo)
    lines = git_difference(saved.document.model_copy(update={"staged": ()}), saved.entries, repo.folder)
    assert "in progress: nothing was captured, here it is merge" in lines
    assert "the index is not compared: it belongs to another commit here" in lines
