"""Repositories and captures made to harm: nothing is run, nothing is written elsewhere, nothing waits."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo, hostile
from pydantic import ValidationError

from archiver.errors import ArchiveFormatError, ArchiverError, InputNotFoundError
from archiver.model.git_document import GitDocument, Remote, StagedEntry, StateFile
from archiver.model.workspace import TreeEntry
from archiver.workspace.git_difference import git_difference
from archiver.workspace.git_writing import BaseMissing, write_git

from .git_saving import git, inside_of, save, tree_of


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    return made


def test_a_hostile_repository_starts_nothing(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    repo.commit("two")
    hostile(repo, marker)
    (repo.folder / "file.txt").write_text("owt")
    (repo.folder / "new.txt").write_text("new")
    marker.unlink(missing_ok=True)
    before = inside_of(repo.folder)
    saved = save(repo.folder, tmp_path / "saved")
    without = save(repo.folder, tmp_path / "without", commits=False)
    assert inside_of(repo.folder) == before
    assert saved.bundle is not None
    assert saved.named().keys() >= {"file.txt", "new.txt", ".gitattributes"}
    for place, one in (("again", saved), ("again without", without)):
        one.write(tmp_path / place)
        one.write(tmp_path / f"{place} from it", repo.folder)
        assert tree_of(tmp_path / place) == tree_of(repo.folder)
    assert git_difference(saved.document, saved.entries, repo.folder) == []
    assert inside_of(repo.folder) == before
    assert not marker.exists()
    config = (tmp_path / "again from it" / ".git" / "config").read_text()
    assert not [word for word in ("payload", "evil", "ext::", "include") if word in config]
    assert not (tmp_path / "again" / ".git" / "hooks").exists()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(["git", "status"], cwd=repo.folder, env=environ, capture_output=True)
    assert marker.exists()  # so the silence above proves something


def pipe(name: str) -> Callable[[Repo], object]:
    def change(repo: Repo) -> None:
        path = repo.folder / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    change.__name__ = f"pipe {name}"
    return change


@pytest.mark.parametrize(
    "change",
    [
        *map(pipe, ["HEAD", "config", "index", "packed-refs", "refs/heads/x", "refs/remotes/o/x"]),
        *map(pipe, ["info/exclude", "info/attributes", "objects/info/alternates", "shallow", "MERGE_HEAD"]),
    ],
    ids=lambda change: change.__name__,
)
def test_a_pipe_in_a_git_folder_is_an_error_at_once(repo: Repo, tmp_path: Path, change: Any) -> None:
    change(repo)
    with pytest.raises(InputNotFoundError, match="is no file"):
        save(repo.folder, tmp_path / "saved", timeout=500.0)


@pytest.mark.parametrize("place", ["objects/pack/pack-x.idx", "objects"])
def test_what_makes_git_wait_meets_the_time_limit(repo: Repo, tmp_path: Path, place: str) -> None:
    """Behind an alternate, where nobody looks before git does."""
    away = tmp_path / "away"
    (away / place).parent.mkdir(parents=True)
    os.mkfifo(away / place)
    alternates = repo.folder / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{away / 'objects'}\n")
    try:
        saved = save(repo.folder, tmp_path / "saved", timeout=3.0)
    except InputNotFoundError as error:
        assert "in time" in str(error)
    else:
        saved.write(tmp_path / "again")
        assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_an_index_that_is_damaged_costs_what_was_staged(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "file.txt").write_text("changed")
    (repo.folder / "new.txt").write_text("new")
    repo.git("add", "new.txt")
    index = repo.folder / ".git" / "index"
    index.write_bytes(index.read_bytes()[:8] + b"\xff" * 200)
    saved = save(repo.folder, tmp_path / "saved")
    assert "what was staged is not carried" in saved.reasons()[".git/index"]
    assert saved.named() == {"file.txt": "file", "new.txt": "file"}
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_missing_object_keeps_the_commits_here_and_not_the_files(repo: Repo, tmp_path: Path) -> None:
    blob = repo.git("rev-parse", "HEAD:file.txt")
    repo.commit("two")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (repo.folder / "new.txt").write_text("new")
    saved = save(repo.folder, tmp_path / "saved")
    assert "are not carried, their changes are" in saved.reasons()[".git"]
    assert (saved.bundle, saved.document.base) == (None, None)
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_staged_content_that_is_missing_is_named(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "file.txt").write_text("staged")
    repo.git("add", "-A")
    blob = repo.git("rev-parse", ":file.txt")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    saved = save(repo.folder, tmp_path / "saved")
    assert "missing" in saved.reasons()["file.txt"]
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def test_a_head_without_its_commit_is_an_error(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / ".git/refs/heads/main").write_text("c" * 40 + "\n")
    with pytest.raises(InputNotFoundError, match="HEAD leads to no commit"):
        save(repo.folder, tmp_path / "saved")


def test_a_repository_with_its_work_tree_elsewhere_is_an_error(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("x")
    repo.git("config", "core.worktree", str(tmp_path / "private"))
    with pytest.raises(InputNotFoundError, match="elsewhere"):
        save(repo.folder, tmp_path / "saved")


def test_refs_that_look_like_options(repo: Repo, tmp_path: Path) -> None:
    head = repo.git("rev-parse", "HEAD")
    repo.git("remote", "add", "origin", "https://host.example/a.git")
    strange = repo.folder / ".git/refs/heads/--upload-pack=x"
    strange.write_text(f"{head}\n")
    there = repo.folder / ".git/refs/remotes/origin/--exec=x"
    there.parent.mkdir(parents=True)
    there.write_text(f"{head}\n")
    (repo.folder / ".git/HEAD").write_text("ref: refs/heads/--upload-pack=x\n")
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.document.head == head
    written = saved.write(tmp_path / "again", repo.folder)
    assert any("no name that git takes" in note for note in written.notes)
    assert git(tmp_path / "again", "rev-parse", "HEAD").decode().strip() == head


def test_many_loops_of_links_are_links(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "loop").symlink_to("loop")
    (repo.folder / "up").symlink_to("..")
    (repo.folder / ".gitignore").symlink_to("loop")
    (repo.folder / ".gitmodules").symlink_to("/etc/passwd")
    saved = save(repo.folder, tmp_path / "saved")
    assert set(saved.named().values()) == {"link"}
    saved.write(tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree_of(repo.folder)


def entry(path: str, kind: Any = "file", **fields: Any) -> TreeEntry:
    return TreeEntry(path, kind, 0o644, 0, **fields)


HARMFUL = [
    ".git/hooks/post-checkout", ".git/config", ".GIT/config", "sub/.git/config", ".git /config", ".git./x",
    ".git\\config", "a\\git~1\\config",
    "git~1/config", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/config", "../outside", "a/../../outside",
    "/etc/outside", "a//b", "", ".", "nul\0byte",
]  # fmt: skip


@pytest.mark.parametrize("path", HARMFUL)
def test_entries_that_leave_the_work_tree_are_refused(repo: Repo, tmp_path: Path, path: str) -> None:
    (repo.folder / "new.txt").write_text("new")
    saved = save(repo.folder, tmp_path / "saved")
    digest = saved.entries[0].sha256
    for number, harmful in enumerate(
        [entry(path, size=3, sha256=digest), entry(path, "gone"), entry(path, "link", target="x")]
    ):
        into = tmp_path / f"again {number}"
        with pytest.raises(ArchiveFormatError):
            write_git(saved.document, [harmful], saved.content, saved.bundle, into)
        assert sorted(tree_of(into)) in ([], ["file.txt"])
    assert not (tmp_path / "outside").exists()


def test_nothing_is_written_through_a_link(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (repo.folder / "folder").symlink_to(outside)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "a link that leads out")
    (repo.folder / "new.txt").write_text("new")
    saved = save(repo.folder, tmp_path / "saved")
    digest = saved.entries[0].sha256
    for number, harmful in enumerate(
        [
            [entry("folder/planted", size=3, sha256=digest)],
            [entry("other", "link", target=str(outside)), entry("other/planted", size=3, sha256=digest)],
            [entry("other/planted", size=3, sha256=digest), entry("other", "link", target=str(outside))],
        ]
    ):
        with pytest.raises(ArchiveFormatError):
            write_git(saved.document, harmful, saved.content, saved.bundle, tmp_path / f"again {number}")
    write_git(saved.document, [entry("folder/kept", "gone")], saved.content, saved.bundle, tmp_path / "gone")
    assert [path.name for path in outside.iterdir()] == ["kept"]


def test_a_folder_in_the_place_of_a_link_does_not_change_what_that_leads_to(
    repo: Repo, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(0o700)
    for name in ("folder", "file"):
        (repo.folder / name).symlink_to(outside)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "links that lead out")
    saved = save(repo.folder, tmp_path / "saved")
    harmful = [entry("file.txt", "folder"), entry("folder", "folder"), entry("folder/in", "folder")]
    write_git(saved.document, harmful, saved.content, saved.bundle, tmp_path / "again")
    assert outside.stat().st_mode & 0o777 == 0o700
    assert list(outside.iterdir()) == []
    for name in ("file.txt", "folder", "folder/in"):
        place = tmp_path / "again" / name
        assert not place.is_symlink()
        assert place.is_dir()


def test_content_of_another_size_is_refused(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / "new.txt").write_text("new")
    saved = save(repo.folder, tmp_path / "saved")
    saved.entries[0] = replace(saved.entries[0], size=4)
    with pytest.raises(ArchiverError, match="size"):
        saved.write(tmp_path / "again")


DONE = {"rebase-merge/done": "exec touch MARK\n", "rebase-merge/git-rebase-todo.backup": "x touch MARK\n"}


def rebase_with(todo: str) -> dict[str, str]:
    return {"rebase-merge/git-rebase-todo": todo, "rebase-merge/head-name": "refs/heads/main\n"}


@pytest.mark.parametrize(
    ("operation", "files", "said"),
    [
        ("rebase", rebase_with("exec touch MARK\nx touch MARK\nbreak\n"), "2 commands of the rebase"),
        ("rebase", rebase_with(" exec touch MARK\nx\ttouch MARK\n\t x touch MARK\n"), "3 commands of the"),
        ("rebase", DONE | rebase_with("exec touch MARK\n"), "1 commands of the rebase"),
        ("rebase", {"rebase-merge/author-script": "GIT_AUTHOR_NAME='x'; touch MARK\n"}, "author-script"),
        ("cherry-pick", {"sequencer/opts": "[options]\n\tstrategy = MARK\n"}, "sequencer/opts"),
        ("cherry-pick", {"sequencer/opts": "[options]\n\tstrategy = true\n"}, "sequencer/opts"),
        ("cherry-pick", {"sequencer/opts": "[options]\n\tgpg-sign = true\n"}, "sequencer/opts"),
        ("cherry-pick", {"sequencer/opts": "[include]\n\tpath = MARK\n"}, "sequencer/opts"),
        ("bisect", {"BISECT_LOG": "git bisect start; touch MARK\n"}, "BISECT_LOG"),
        ("am", {"rebase-apply/apply-opt": " '--directory=/'\n"}, "apply-opt"),
        ("merge", {"MERGE_HEAD": "--output=MARK\n"}, "MERGE_HEAD"),
        ("merge", {"MERGE_HEAD": "a" * 40 + "\n"}, "is not in progress any more"),
        ("rebase", {"rebase-merge/head-name": "refs/heads/x\nrefs/y\n"}, "head-name"),
    ],
)
def test_state_files_start_nothing(
    repo: Repo, tmp_path: Path, operation: Any, files: dict[str, str], said: str
) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    saved.document = saved.document.model_copy(
        update={
            "in_progress": operation,
            "in_progress_files": tuple(StateFile(name=n, text=t) for n, t in files.items()),
        }
    )
    written = saved.write(tmp_path / "again")
    assert any(said in note for note in written.notes), written.notes
    texts = [path.read_bytes() for path in (tmp_path / "again" / ".git").rglob("*") if path.is_file()]
    assert not [text for text in texts if b"MARK" in text]


@pytest.mark.parametrize(
    "name",
    [
        "hooks/post-checkout",
        "config",
        "../x",
        "rebase-merge/../config",
        "HEAD",
        "rebase-merge/strategy",
        "/x",
    ],
)
def test_no_other_file_of_a_git_folder_can_travel(name: str) -> None:
    with pytest.raises(ValidationError):
        StateFile(name=name, text="x")


@pytest.mark.parametrize(
    "fields",
    [
        {"head": "main"},
        {"head": "a" * 41},
        {"base": "a" * 64},
        {"prerequisites": ["a" * 40]},
        {"commits": "elsewhere"},
        {"commits": "workspace/git/commits.bundle", "commit_refs": {"HEAD": "-x"}},
        {"staged": [{"path": "../x", "mode": "100644"}]},
        {"staged": [{"path": "x", "mode": "100777"}]},
        {"staged": [{"path": "x", "mode": "100644", "stage": 4}]},
        {"submodules": [{"path": "x", "commit": "y"}]},
        {"remotes": [{"name": "x" * 5000, "url": "y"}]},
        {"in_progress": "hack"},
        {"line_ends": {"core.editor": "true"}},
        {"line_ends": {"core.eol": "false; x"}},
        {"lfs": ["/etc/passwd"]},
        {"other": 1},
    ],
)
def test_documents_that_no_capture_writes_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GitDocument.model_validate(fields)


def test_names_that_redaction_or_an_attacker_wrote_are_not_used(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    for number, name in enumerate(
        ["--exec=x", "[REDACTED:token]", "a b", "../x", "x.lock", "line\nend", "@{-1}"]
    ):
        saved.document = saved.document.model_copy(
            update={
                "branch": name,
                "upstream": f"origin/{name}",
                "remotes": (Remote(name=name, url="https://host.example/a"), Remote(name="b", url="ext::x")),
            }
        )
        into = tmp_path / f"again {number}"
        written = saved.write(into)
        assert sum("a remote was left out" in note for note in written.notes) == 2
        assert git(into, "remote") == b""
        assert git(into, "rev-parse", "HEAD").decode().strip() == saved.document.head
        assert git(into, "symbolic-ref", "-q", "HEAD", check=False) == b""


def test_a_remote_that_is_no_plain_address_gets_into_no_command() -> None:
    remotes = ("ext::sh -c touch% x", "--upload-pack=x", "https://host.example/a b;touch x")
    said = BaseMissing(("c",), remotes, ()).remedy
    assert said.startswith("`git clone 'https://host.example/a b;touch x'`, then ")
    assert BaseMissing(("c",), remotes[:2], ()).remedy.startswith("find a clone of it")


def test_a_name_in_the_index_that_is_too_long_costs_that_name(repo: Repo, tmp_path: Path) -> None:
    long = "/".join(["d" * 200] * 23)
    (repo.folder / "new.txt").write_text("new")
    repo.git("add", "new.txt")
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{repo.git('rev-parse', ':new.txt')},{long}")
    saved = save(repo.folder, tmp_path / "saved")
    assert [one.path for one in saved.document.staged] == ["new.txt"]
    assert "its name in the index is too long" in [one.reason for one in saved.skipped if one.path == long]


def test_an_index_entry_in_a_git_folder_is_refused(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    staged = StagedEntry(path=".git/config", mode="160000", commit="a" * 40)
    saved.document = saved.document.model_copy(update={"staged": (staged,)})
    with pytest.raises(ArchiveFormatError):
        saved.write(tmp_path / "again")


def test_a_clone_that_cannot_be_read_is_an_error(repo: Repo, tmp_path: Path) -> None:
    saved = save(repo.folder, tmp_path / "saved")
    (tmp_path / "plain").mkdir()
    for name in ("plain", "gone"):
        with pytest.raises(InputNotFoundError, match="cannot be read"):
            saved.write(tmp_path / f"from {name}", tmp_path / name)
    shutil.rmtree(repo.folder / ".git" / "refs")
    with pytest.raises(InputNotFoundError, match="cannot be read"):
        saved.write(tmp_path / "from broken", repo.folder)
