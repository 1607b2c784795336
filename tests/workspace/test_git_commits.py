"""Commits that no remote has: what travels, what is scanned before, and what is needed to make it again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.errors import ArchiveFormatError
from archiver.workspace.options import WorkspaceLimits

from .git_saving import git, inside_of, save, saved_and_made_again, state_of, tree_of


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path, remote: Path) -> Repo:
    """A repository of which the first commit is on a remote."""
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    made.git("remote", "add", "origin", str(remote))
    made.git("push", "-q", "-u", "origin", "main")
    return made


def test_only_the_difference_travels_where_a_remote_has_the_commit(
    repo: Repo, remote: Path, tmp_path: Path
) -> None:
    (repo.folder / "new.txt").write_text("new")
    saved, _, into = saved_and_made_again(repo, tmp_path / "saved", repository=remote)
    document = saved.document
    assert (saved.bundle, document.commits, document.base) == (None, None, document.head)
    assert saved.named() == {"new.txt": "file"}
    assert (document.upstream, document.ahead, document.behind) == ("origin/main", 0, 0)
    assert git(into, "config", "branch.main.merge") == b"refs/heads/main\n"
    assert git(into, "remote", "get-url", "origin").decode().strip() == str(remote)


def test_commits_that_no_remote_has_travel(repo: Repo, remote: Path, tmp_path: Path) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.commit("two")
    last = repo.commit("three")
    before = inside_of(remote)
    saved, _, into = saved_and_made_again(repo, tmp_path / "saved", repository=remote)
    assert inside_of(remote) == before
    document = saved.document
    assert (document.base, document.prerequisites, document.ahead) == (last, (first,), 2)
    assert document.commit_refs == {"HEAD": last, "refs/heads/main": last}
    assert git(into, "log", "--format=%H %an %s") == git(repo.folder, "log", "--format=%H %an %s")


def test_every_object_of_the_bundle_was_given_to_be_scanned(repo: Repo, tmp_path: Path) -> None:
    for number in range(5):
        (repo.folder / "large.txt").write_text(f"line {number}\n" * 2000)
        repo.commit(f"text {number}")
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.bundle is not None
    clone = Repo(tmp_path / "clone")
    clone.git("fetch", "-q", str(tmp_path / "remote.git"), "main")
    before = set(clone.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())
    clone.git("bundle", "verify", "-q", str(saved.bundle))
    clone.git("fetch", "-q", str(saved.bundle), "refs/heads/main")
    after = clone.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    carried = {line.split()[0]: line.split()[1] for line in after.splitlines()}
    new = {one: kind for one, kind in carried.items() if one not in before}
    assert {one: kind for one, kind, _, _ in saved.objects} == new
    assert set(new.values()) == {"commit", "tree", "blob"}
    for one, kind, size, content in saved.objects:
        assert len(content) == size
        assert git(clone.folder, "cat-file", kind, one) == content


def test_the_bundle_has_no_text_that_was_not_scanned(repo: Repo, tmp_path: Path) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "the subject of a commit on the remote")
    repo.git("push", "-q")
    repo.commit("two")
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.bundle is not None
    assert b"the subject" not in saved.bundle.read_bytes().partition(b"PACK")[0]


def test_the_same_state_without_its_commits(repo: Repo, remote: Path, tmp_path: Path) -> None:
    first = repo.git("rev-parse", "HEAD")
    (repo.folder / "added.txt").write_text("added")
    repo.commit("two")
    repo.git("mv", "added.txt", "moved.txt")
    last = repo.commit("three")
    (repo.folder / "file.txt").write_text("staged")
    repo.git("add", "-A")
    (repo.folder / "file.txt").write_text("later")
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    assert (saved.bundle, saved.document.head, saved.document.base) == (None, last, first)
    assert saved.named() == {"file.txt": "file", "moved.txt": "file"}
    written = saved.write(tmp_path / "again", remote)
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)
    assert git(tmp_path / "again", "rev-parse", "HEAD").decode().strip() == first
    assert git(tmp_path / "again", "show", ":file.txt") == b"staged"
    assert any("did not travel" in note for note in written.notes)
    # A clone at hand that has the commits after all gives the very same state.
    exact = saved.write(tmp_path / "exact", repo.folder)
    assert not any("did not travel" in note for note in exact.notes)
    assert state_of(tmp_path / "exact") == state_of(repo.folder)


def test_without_any_remote_and_without_commits_everything_travels(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "work tree")
    repo.commit("one")
    repo.commit("two")
    (repo.folder / "new.txt").write_text("new")
    saved = save(repo.folder, tmp_path / "saved", commits=False)
    assert saved.document.base is None
    assert saved.named() == {"file.txt": "file", "new.txt": "file"}
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_base_that_is_nowhere_at_hand_is_named_and_nothing_is_lost(repo: Repo, tmp_path: Path) -> None:
    first = repo.git("rev-parse", "HEAD")
    (repo.folder / "other.txt").write_text("x")
    repo.commit("two")
    (repo.folder / "file.txt").unlink()
    (repo.folder / "new.txt").write_text("new")
    (repo.folder / "other.txt").write_text("staged")
    repo.git("add", "other.txt")
    saved = save(repo.folder, tmp_path / "saved")
    written = saved.write(tmp_path / "again")
    assert written.missing is not None
    assert written.missing.commits[0] == first
    assert written.missing.gone == ("file.txt",)
    assert f"git clone {tmp_path / 'remote.git'}" in written.missing.remedy
    assert first in written.missing.remedy
    again = tmp_path / "again"
    beside = again / ".checkpoint-git"
    assert sorted(path.name for path in again.iterdir()) == [".checkpoint-git", "new.txt", "other.txt"]
    assert saved.bundle is not None
    assert (beside / "commits.bundle").read_bytes() == saved.bundle.read_bytes()
    assert [path.read_text() for path in (beside / "staged").iterdir()] == ["staged"]
    # A clone that has not what is needed is as good as none.
    other = Repo(tmp_path / "unrelated")
    other.commit("elsewhere")
    assert saved.write(tmp_path / "again2", other.folder).missing is not None


def test_refs_of_what_is_no_remote_count_for_nothing(repo: Repo, tmp_path: Path) -> None:
    last = repo.commit("two")
    repo.git("update-ref", "refs/remotes/nobody/main", last)
    repo.git("update-ref", "refs/remotes/originally/main", last)
    assert save(repo.folder, tmp_path / "saved").bundle is not None
    repo.git("update-ref", "refs/remotes/origin/main", last)
    assert save(repo.folder, tmp_path / "again").bundle is None


def test_commits_of_a_merge_travel_with_both_sides(repo: Repo, remote: Path, tmp_path: Path) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("their side")
    repo.git("checkout", "-q", "main")
    repo.commit("our side")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "side")
    saved, _, _ = saved_and_made_again(repo, tmp_path / "saved", repository=remote)
    assert "refs/checkpoint/MERGE_HEAD/0" in saved.document.commit_refs


@pytest.mark.parametrize(
    "limits", [WorkspaceLimits(file=5000), WorkspaceLimits(total=5000)], ids=["one file", "all files"]
)
def test_commits_over_the_limits_stay_and_their_changes_travel(
    repo: Repo, remote: Path, tmp_path: Path, limits: WorkspaceLimits
) -> None:
    (repo.folder / "large.txt").write_text("x" * 6000)
    repo.commit("large")
    (repo.folder / "large.txt").write_text("small again")
    repo.commit("small")
    saved = save(repo.folder, tmp_path / "saved", limits=limits)
    assert "are not carried, their changes are" in saved.reasons()[".git"]
    assert (saved.bundle, saved.document.base) == (None, git(remote, "rev-parse", "main").decode().strip())
    saved.write(tmp_path / "again", remote)
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_shallow_clone(repo: Repo, remote: Path, tmp_path: Path) -> None:
    repo.commit("two")
    repo.git("push", "-q")
    shallow = Repo.__new__(Repo)
    shallow.folder = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth", "1", remote.as_uri(), str(shallow.folder))
    shallow.git("config", "user.name", "A")
    shallow.git("config", "user.email", "a@example.org")
    shallow.commit("three")
    saved, _, _ = saved_and_made_again(shallow, tmp_path / "saved", repository=remote)
    assert (saved.document.shallow, saved.document.ahead) == (True, None)
    saved.write(tmp_path / "from shallow", shallow.folder)
    assert state_of(tmp_path / "from shallow") == state_of(shallow.folder)
    shallow.git("remote", "remove", "origin")
    alone = save(shallow.folder, tmp_path / "alone")
    assert "history is cut" in alone.reasons()[".git"]
    alone.write(tmp_path / "alone again")
    assert tree_of(tmp_path / "alone again") == tree_of(shallow.folder)


def test_damaged_commits_are_refused(repo: Repo, remote: Path, tmp_path: Path) -> None:
    repo.commit("two")
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.bundle is not None
    whole = saved.bundle.read_bytes()
    start = whole.index(b"PACK")
    damaged = {
        "flipped": whole[: start + 40] + bytes([whole[start + 40] ^ 1]) + whole[start + 41 :],
        "cut": whole[:-30],
        "no pack": whole[:start],
        "no bundle": b"x" + whole,
        "no end": whole[:60],
        "an id that is none": whole.replace(b"-", b"-g", 1),
    }
    for name, content in damaged.items():
        saved.bundle.write_bytes(content)
        with pytest.raises(ArchiveFormatError):
            saved.write(tmp_path / name, remote)


def test_commits_without_all_that_they_lead_to_are_refused(repo: Repo, tmp_path: Path) -> None:
    """Also where the files of the newest are there: the history would end in an error one day."""
    lost = repo.git("rev-parse", "HEAD:file.txt")
    head = repo.commit("two")
    saved = save(repo.folder, tmp_path / "saved")
    refs = {"HEAD": head}
    saved.document = saved.document.model_copy(update={"commit_refs": refs, "prerequisites": ()})
    ids = repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    pack = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"], cwd=repo.folder, capture_output=True, check=True,
        input="".join(f"{one}\n" for one in ids if one != lost).encode(),
    ).stdout  # fmt: skip
    assert saved.bundle is not None
    saved.bundle.write_bytes(f"# v2 git bundle\n{head} HEAD\n\n".encode() + pack)
    with pytest.raises(ArchiveFormatError, match="not whole"):
        saved.write(tmp_path / "again")


def test_a_bundle_that_is_not_what_the_document_says_is_missing_something(
    repo: Repo, remote: Path, tmp_path: Path
) -> None:
    repo.commit("two")
    earlier = save(repo.folder, tmp_path / "earlier")
    repo.commit("three")
    saved = save(repo.folder, tmp_path / "saved")
    saved.bundle = earlier.bundle
    missing = saved.write(tmp_path / "again", remote).missing
    assert missing is not None
    assert missing.commits == (saved.document.head,)
