"""Git work trees in every state that users leave them in: saved, made again, and the same as before."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.git.repository import Repository
from archiver.git.worktree import is_dirty

from .git_saving import git, save, saved_and_made_again, state_of, tree_of

Change = Callable[[Repo], object]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with two commits, a folder, a program and a link."""
    made = Repo(tmp_path / "work tree")
    write(made, "folder/inner.txt", "inner\n")
    write(made, "run.sh", "#!/bin/sh\n").chmod(0o755)
    (made.folder / "link").symlink_to("folder/inner.txt")
    made.commit("one")
    made.commit("two")
    return made


def write(repo: Repo, name: str, text: str = "changed\n") -> Path:
    path = repo.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fails(repo: Repo, *arguments: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("-c", "core.editor=true", *arguments)


def two_sides(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "other")
    write(repo, "theirs.txt")
    repo.commit("their side")
    repo.git("checkout", "-q", "main")
    repo.git("rm", "-q", "link")
    repo.commit("our side")


def merge(repo: Repo) -> None:
    two_sides(repo)
    fails(repo, "merge", "other")


def rebase(repo: Repo) -> None:
    two_sides(repo)
    repo.git("checkout", "-q", "other")
    fails(repo, "rebase", "main")


def cherry_pick(repo: Repo) -> None:
    two_sides(repo)
    fails(repo, "cherry-pick", "other")


def revert(repo: Repo) -> None:
    repo.commit("three")
    fails(repo, "revert", "--no-edit", "HEAD~1")


def mail(repo: Repo) -> None:
    two_sides(repo)
    patch = repo.git("format-patch", "--stdout", "-1", "other")
    (repo.folder.parent / "patch").write_text(patch + "\n")
    fails(repo, "am", str(repo.folder.parent / "patch"))


def bisect(repo: Repo) -> None:
    for text in ("three", "four", "five"):
        repo.commit(text)
    repo.git("bisect", "start", "HEAD", "HEAD~4")


def deleted_there(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "other")
    repo.git("rm", "-q", "file.txt")
    repo.git("commit", "-q", "-m", "without it")
    repo.git("checkout", "-q", "main")
    repo.commit("our side")
    fails(repo, "merge", "other")


def swapped(repo: Repo) -> None:
    """A folder where a file was, and a file where a folder was."""
    (repo.folder / "file.txt").unlink()
    write(repo, "file.txt/now/a/folder")
    (repo.folder / "folder" / "inner.txt").unlink()
    (repo.folder / "folder").rmdir()
    write(repo, "folder", "now a file")
    (repo.folder / "run.sh").unlink()
    (repo.folder / "run.sh").symlink_to("/nowhere/at all")


def strange_names(repo: Repo) -> None:
    for name in (
        b"inv\xff\xfelid",
        b"line\nbreak",
        "ünï".encode(),
        b" sp ace ",
        b"-rf",
        b"\x01",
        b":(top)x",
        b"*",
    ):
        (repo.folder / os.fsdecode(name)).write_bytes(name)
    repo.git("add", "--", ":(literal)*", "./-rf")
    git(repo.folder, "add", "-N", "--", b"inv\xff\xfelid".decode("utf-8", "surrogateescape"))


def line_ends(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    write(repo, "lines.txt", "a\nb\n")
    repo.commit("one")
    (repo.folder / "lines.txt").unlink()
    repo.git("checkout", "-q", "lines.txt")
    write(repo, "more.txt", "x\r\n")


def staged_only(repo: Repo) -> None:
    """A content that neither HEAD nor the work tree has."""
    write(repo, "file.txt", "in the index alone")
    write(repo, "new.txt", "also in the index")
    repo.git("add", "-A")
    write(repo, "file.txt", "two")
    (repo.folder / "new.txt").unlink()


def sparse(repo: Repo) -> None:
    write(repo, "kept/a", "a")
    repo.commit("three")
    repo.git("sparse-checkout", "set", "kept")
    write(repo, "kept/a", "b")


def unborn(repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.git("rm", "-q", "--cached", "link")
    write(repo, "file.txt", "other")


def ignored(repo: Repo) -> None:
    write(repo, ".gitignore", "*.log\nbuild/\n")
    write(repo, "a.log")
    write(repo, "build/x")
    write(repo, ".git/info/exclude", "*.tmp\n")
    write(repo, "a.tmp")
    write(repo, "kept.txt")


def announced(repo: Repo) -> None:
    write(repo, "new.txt", "announced")
    repo.git("add", "-N", "new.txt")


def changed(repo: Repo) -> None:
    write(repo, "file.txt")
    (repo.folder / "run.sh").chmod(0o644)
    (repo.folder / "link").unlink()
    write(repo, "secret.txt").chmod(0o600)
    write(repo, "open.sh").chmod(0o777)
    repo.git("update-index", "--assume-unchanged", "folder/inner.txt")


def staged(repo: Repo) -> None:
    repo.git("mv", "file.txt", "moved.txt")
    repo.git("rm", "-q", "link")
    write(repo, "x/y/z")
    (repo.folder / "run.sh").chmod(0o644)
    repo.git("add", "-A")
    write(repo, "x/y/z", "later\n")


def forgotten(repo: Repo) -> None:
    repo.git("rm", "-q", "--cached", "file.txt", "run.sh")
    (repo.folder / "run.sh").unlink()


def nothing(_: Repo) -> None:
    """As it was made."""


STATES: list[Change] = [
    nothing, merge, rebase, cherry_pick, revert, mail, bisect, deleted_there, swapped, strange_names,
    line_ends, staged_only, sparse, unborn, ignored, announced,
    changed, staged, forgotten,
    lambda r: r.git("checkout", "-q", "--detach", "HEAD~1"),
    lambda r: (r.git("checkout", "-q", "-b", "feature/with-a/slash"), write(r, "file.txt"), r.git("stash")),
    lambda r: (r.git("checkout", "-q", "--orphan", "empty"), r.git("rm", "-q", "-r", "-f", ".")),
]  # fmt: skip


@pytest.mark.parametrize("change", STATES, ids=lambda change: change.__name__)
def test_a_work_tree_is_made_again_as_it_was(repo: Repo, tmp_path: Path, change: Change) -> None:
    change(repo)
    _, written, _ = saved_and_made_again(repo, tmp_path / "saved")
    assert not [note for note in written.notes if "left out" in note or "not put back" in note]


def test_what_is_in_progress_goes_on(repo: Repo, tmp_path: Path) -> None:
    rebase(repo)
    _, _, into = saved_and_made_again(repo, tmp_path / "saved")
    for folder in (repo.folder, into):
        (folder / "file.txt").write_text("both sides")
        git(folder, "add", "file.txt")
        git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "rebase", "--continue")
    assert tree_of(into) == tree_of(repo.folder)
    assert git(into, "symbolic-ref", "HEAD") == git(repo.folder, "symbolic-ref", "HEAD")
    git(into, "fsck", "--full", "--strict")
    assert git(into, "log", "--format=%T %s") == git(repo.folder, "log", "--format=%T %s")


def test_objects_are_named_by_sha256_where_the_repository_does(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "sha256", "--object-format=sha256")
    repo.commit("one")
    staged_only(repo)
    repo.git("rm", "-q", "-f", "--cached", "file.txt")
    saved, _, _ = saved_and_made_again(repo, tmp_path / "saved")
    assert any(one.is_removed for one in saved.document.staged)
    assert (saved.document.object_format, len(saved.document.head or "")) == ("sha256", 64)


def test_a_linked_work_tree_becomes_a_repository_of_its_own(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = tmp_path / "linked"
    (linked / "file.txt").write_text("changed")
    git(linked, "add", "-A")
    saved = save(linked, tmp_path / "saved")
    assert (saved.document.linked_worktree, saved.document.branch) == (True, "side")
    written = saved.write(tmp_path / "again")
    assert any("linked work tree" in note for note in written.notes)
    assert (tmp_path / "again" / ".git").is_dir()
    assert state_of(tmp_path / "again") == state_of(linked)


def test_a_folder_below_the_top_stands_for_the_whole_work_tree(repo: Repo, tmp_path: Path) -> None:
    write(repo, "file.txt")
    saved = save(repo.folder / "folder", tmp_path / "saved")
    assert saved.named() == {"file.txt": "file"}


def test_submodules_are_named_and_not_carried(repo: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "module")
    inside = other.commit("inside")
    address = f"https://user:{'pass' + 'word'}@host.example/m.git?private_token={'t' * 20}"
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "a module")
    repo.git("config", "--file", ".gitmodules", "submodule.a module.url", address)
    repo.git("add", "-A")
    write(repo, "a module/file.txt", "changed there")
    saved, written, _ = saved_and_made_again(repo, tmp_path / "saved")
    module = saved.document.submodules[0]
    assert (module.path, module.commit, module.checked_out) == ("a module", inside, inside)
    assert (module.url, module.dirty) == ("https://host.example/m.git", True)
    assert "a module/file.txt" not in saved.named()
    assert any("git submodule update --init -- 'a module'" in note for note in written.notes)
    assert [one.commit for one in saved.document.staged if one.commit] == [inside]


def test_marks_that_hide_changes_hide_nothing(repo: Repo, tmp_path: Path) -> None:
    repo.git("update-index", "--assume-unchanged", "file.txt")
    write(repo, "file.txt", "hidden")
    repo.git("update-index", "--skip-worktree", "run.sh")
    write(repo, "run.sh", "hidden too")
    assert is_dirty(Repository(repo.folder, 20)) is True
    saved = save(repo.folder, tmp_path / "saved")
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_content_behind_a_filter_travels_as_it_lies_there(repo: Repo, tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n"
    write(repo, ".gitattributes", "*.bin filter=lfs\n*.key filter=crypt\n")
    write(repo, "large.bin", pointer)
    write(repo, "pointer.bin", pointer)
    write(repo, "hidden.key", "ciphertext")
    repo.commit("pointers")
    # As after a checkout with the filters: the index believes that the work tree is as it should be.
    for name, text in (("large.bin", "real content"), ("hidden.key", "plain text")):
        blob = repo.git("rev-parse", f":{name}")
        write(repo, name, text)
        repo.git("-c", "filter.lfs.clean=cat", "update-index", "--cacheinfo", f"100644,{blob},{name}")
        believing(repo, name)
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.document.lfs == ("large.bin", "pointer.bin")
    assert saved.named() == {"hidden.key": "file", "large.bin": "file"}
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def believing(repo: Repo, name: str) -> None:
    """Have the index note the file as it lies there, under the object that it holds already."""
    blob = repo.git("rev-parse", f":{name}")
    text = (repo.folder / name).read_text()
    script = repo.folder.parent / "clean.sh"
    script.write_text(f"#!/bin/sh\ncat > /dev/null\ngit cat-file blob {blob}\n")
    script.chmod(0o755)
    os.utime(repo.folder / name, (1, 1))  # older than the index, so that git looks at times alone
    kind = "lfs" if name.endswith(".bin") else "crypt"
    repo.git("-c", f"filter.{kind}.clean={script}", "add", name)
    assert (repo.git("rev-parse", f":{name}"), (repo.folder / name).read_text()) == (blob, text)
    assert repo.git("status", "--porcelain", "--", name) == ""
