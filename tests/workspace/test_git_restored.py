"""What is easily lost where a work tree is made again: each has a line in the state, and comes back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.model.git_document import Remote, StateFile
from archiver.workspace import git_overlay

from .git_saving import Saved, git, save, saved_and_made_again, state_of, tree_of


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    return made


def test_the_upstream_is_that_of_the_remote_with_the_longest_name(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    remotes = tuple(Remote(name=name, url="https://host.example/a") for name in ("team", "team/x", "tea"))
    saved.document = saved.document.model_copy(update={"remotes": remotes, "upstream": "team/x/main"})
    saved.write(tmp_path / "again")
    assert git(tmp_path / "again", "config", "branch.main.remote") == b"team/x\n"
    assert git(tmp_path / "again", "config", "branch.main.merge") == b"refs/heads/main\n"


@pytest.mark.parametrize("announced", [0o644, 0o755, "link"])
@pytest.mark.parametrize("later", [0o644, 0o755, "link"])
def test_what_was_announced_is_what_it_was_then(
    repo: Repo, tmp_path: Path, announced: int | str, later: int | str
) -> None:
    """The index has its kind, and the work tree may have another by now."""
    place = repo.folder / "folder" / "announced"
    place.parent.mkdir()
    for kind in (announced, later):
        place.unlink(missing_ok=True)
        if isinstance(kind, int):
            place.touch()
            place.chmod(kind)
        else:
            place.symlink_to("file.txt")
        if kind is announced:
            repo.git("add", "--intent-to-add", "folder/announced")
    _, written, _ = saved_and_made_again(repo, tmp_path / "saved")
    assert written.notes == ()


def test_what_was_announced_and_is_not_carried_costs_that_file_alone(repo: Repo, tmp_path: Path) -> None:
    for name in ("kept", "lost"):
        (repo.folder / name).write_text("new\n")
    repo.git("add", "--intent-to-add", "kept", "lost")
    saved = save(repo.folder, tmp_path / "saved")
    saved.entries = [entry for entry in saved.entries if entry.path != "lost"]
    written = saved.write(tmp_path / "again")
    assert written.notes == ("`git add --intent-to-add` of lost is forgotten: the file was not carried",)
    assert git(tmp_path / "again", "diff", "--name-only", "--diff-filter=A") == b"kept\n"


def in_conflict(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("their side")
    repo.git("checkout", "-q", "main")
    repo.commit("our side")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "side")


def test_a_clone_that_has_one_side_of_a_merge_is_no_reason_to_leave_the_other(
    repo: Repo, tmp_path: Path
) -> None:
    in_conflict(repo)
    saved = save(repo.folder, tmp_path / "saved")
    assert len(set(saved.document.commit_refs.values())) == 2
    clone = Repo(tmp_path / "clone")
    clone.git("fetch", "-q", str(repo.folder), "side")
    assert saved.write(tmp_path / "again", clone.folder).missing is None
    assert state_of(tmp_path / "again") == state_of(repo.folder)


def test_a_merge_goes_on_with_the_other_side_from_a_clone(repo: Repo, tmp_path: Path) -> None:
    """It is on no remote, and no ancestor of HEAD."""
    in_conflict(repo)
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    saved.write(tmp_path / "again", repo.folder)
    assert state_of(tmp_path / "again") == state_of(repo.folder)
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_what_is_laid_beside_takes_no_name_of_the_work_tree(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / ".checkpoint-git").mkdir()
    (repo.folder / ".checkpoint-git" / "mine").write_text("mine")
    (repo.folder / ".checkpoint-git-1").write_text("mine")
    repo.git("remote", "add", "origin", "https://host.example/a.git")
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    saved = save(repo.folder, tmp_path / "saved")
    written = saved.write(tmp_path / "again")
    assert any(note.endswith("lie in .checkpoint-git-2") for note in written.notes)
    assert (tmp_path / "again" / ".checkpoint-git-2" / "git.json").is_file()
    assert sorted(tree_of(tmp_path / "again" / ".checkpoint-git")) == ["mine"]


def test_commits_that_the_state_does_not_name_are_not_taken(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    saved.bundle = save(repo.folder, tmp_path / "other").bundle
    assert saved.bundle is not None
    written = saved.write(tmp_path / "again")
    assert any("did not travel" in note for note in written.notes)
    assert git(tmp_path / "again", "rev-list", "--all") == b""
    assert git(tmp_path / "again", "count-objects").startswith(b"0 objects")


def test_where_head_was_before_is_not_needed_to_go_on(repo: Repo, tmp_path: Path) -> None:
    """After `git reset` and `git gc` that commit may be anywhere."""
    in_conflict(repo)
    (repo.folder / ".git" / "ORIG_HEAD").write_text(f"{'a' * 40}\n")
    saved_and_made_again(repo, tmp_path / "saved")


def in_rebase(repo: Repo, saved: Saved, files: dict[str, str]) -> None:
    files = {"head-name": "refs/heads/main\n", "orig-head": repo.git("rev-parse", "HEAD") + "\n"} | files
    states = tuple(StateFile(name=f"rebase-merge/{name}", text=text) for name, text in files.items())
    saved.document = saved.document.model_copy(update={"in_progress": "rebase", "in_progress_files": states})


def test_of_the_list_of_a_rebase_all_but_its_commands_stays(repo: Repo, tmp_path: Path) -> None:
    """A subject may hold what some programs take for the end of a line, or begin like a command."""
    kept = "pick 1234567 one\u2028two\x0cthree\x85\n# exec x\nexecute\nx-ray\n\nlabel x"
    saved = save(repo.folder, tmp_path / "saved")
    in_rebase(repo, saved, {"git-rebase-todo": f"exec\n{kept}\n\texec a\rb\n  x a\nx\r\n"})
    (said,) = saved.write(tmp_path / "again").notes
    assert said.startswith("4 commands of the rebase")
    todo = tmp_path / "again" / ".git" / "rebase-merge" / "git-rebase-todo"
    assert todo.read_bytes().decode() == f"{kept}\n"


def test_only_a_branch_is_put_where_it_was_before_a_rebase(repo: Repo, tmp_path: Path) -> None:
    for number, name in enumerate(("refs/tags/v1", "refs/remotes/origin/main", "HEAD", "refs/heads/other")):
        saved = save(repo.folder, tmp_path / f"saved {number}")
        in_rebase(repo, saved, {"head-name": f"{name}\n"})
        saved.write(tmp_path / f"again {number}")
        refs = git(tmp_path / f"again {number}", "for-each-ref", "--format=%(refname)").decode().split()
        assert refs == ["refs/heads/main", *([name] if name.startswith("refs/heads/") else [])]


def test_a_clone_of_another_object_format_has_nothing_of_use(repo: Repo, tmp_path: Path) -> None:
    """Though the first digits of an id may be those of a commit there."""
    saved = save(repo.folder, tmp_path / "saved")
    other = Repo(tmp_path / "other", "--object-format=sha256")
    step = StateFile(name="sequencer/todo", text=f"pick {other.commit('elsewhere')[:10]} x\n")
    saved.document = saved.document.model_copy(
        update={"in_progress": "cherry-pick", "in_progress_files": (step,)}
    )
    saved.write(tmp_path / "again", other.folder)
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_times_are_those_of_files_and_links_and_of_nothing_that_a_link_leads_to(
    repo: Repo, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    (repo.folder / "link").symlink_to(outside)
    (repo.folder / "new.txt").write_text("new")
    for name, moment in (("link", 5_000_000_007), ("new.txt", 7_000_000_009)):
        os.utime(repo.folder / name, ns=(moment, moment), follow_symlinks=False)
    before = outside.stat().st_mtime_ns
    saved_and_made_again(repo, tmp_path / "saved")
    made = tmp_path / "saved" / "again"
    assert [(made / name).lstat().st_mtime_ns for name in ("link", "new.txt")] == [
        5_000_000_007,
        7_000_000_009,
    ]
    assert outside.stat().st_mtime_ns == before


def test_no_empty_folder_is_left_where_all_that_lay_in_it_is_gone(repo: Repo, tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d/e", "f/g"):
        (repo.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.folder / name).write_text("x")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "two")
    for name in ("a/b/c", "f/g"):
        (repo.folder / name).unlink()
    saved_and_made_again(repo, tmp_path / "saved")
    made = tmp_path / "saved" / "again"
    assert sorted(str(one.relative_to(made)) for one in made.glob("[!.]*/**")) == ["a", "a/d"]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_time_that_the_file_system_does_not_have_is_told(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_git: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(22, "Invalid argument")

    (repo.folder / "new.txt").write_text("new\n")
    saved = save(repo.folder, tmp_path / "saved")
    if not with_git:
        monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(git_overlay.os, "utime", refuse)
    written = saved.write(tmp_path / "again")
    assert "new.txt: its time cannot be set" in written.notes
    assert (tmp_path / "again" / "new.txt").read_text() == "new\n"
