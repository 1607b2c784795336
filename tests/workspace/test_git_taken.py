"""Which files of a git work tree are captured, and what is said of the others."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.errors import InputNotFoundError
from archiver.workspace.options import WorkspaceLimits

from .git_saving import save


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    return made


def write(repo: Repo, name: str, text: str = "x") -> Path:
    path = repo.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_rules_of_the_repository_and_of_the_caller(repo: Repo, tmp_path: Path) -> None:
    write(repo, ".gitignore", "*.log\nbuild/\n")
    write(repo, "sub/.gitignore", "!kept.log\n*.tmp\n")
    write(repo, ".git/info/exclude", "excluded\n")
    for name in (
        "a.log", "sub/kept.log", "sub/a.tmp", "excluded", "build/out/deep.bin", "build/out/other", "plain",
        "left.out", "node_modules/x/index.js", ".cache/y",
    ):  # fmt: skip
        write(repo, name)
    taken = {".gitignore", "sub/.gitignore", "sub/kept.log", "plain", "left.out"}
    assert save(repo.folder, tmp_path / "1").named().keys() == taken
    assert save(repo.folder, tmp_path / "2", ignore=("*.out", "!x")).named().keys() == taken - {"left.out"}
    included = save(repo.folder, tmp_path / "3", include=("a.log", "build/out/*.bin")).named().keys()
    assert included == taken | {"a.log", "build/out/deep.bin"}
    whole = save(repo.folder, tmp_path / "4", include=("build/",), ignore=("build/out/deep.bin",))
    assert whole.named().keys() == taken | {"build/out/deep.bin", "build/out/other"}
    everything = save(repo.folder, tmp_path / "5", defaults=False).named().keys()
    assert everything == taken | {"node_modules/x/index.js", ".cache/y"}


def test_what_the_repository_says_itself_counts_more_than_defaults(repo: Repo, tmp_path: Path) -> None:
    write(repo, ".gitignore", "!.cache/\n")
    write(repo, ".cache/mine")
    assert ".cache/mine" in save(repo.folder, tmp_path / "saved").named()


def test_changes_in_tracked_files_count_whatever_is_ignored(repo: Repo, tmp_path: Path) -> None:
    write(repo, ".gitignore", "file.txt\n")
    write(repo, "file.txt", "changed")
    assert "file.txt" in save(repo.folder, tmp_path / "saved", ignore=("*",)).named()


def test_rules_of_the_user_do_not_count(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "rules"
    rules.write_text("*\n")
    repo.git("config", "core.excludesFile", str(rules))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (tmp_path / "config").write_text(f"[core]\n\texcludesFile = {rules}\n")
    write(repo, "new.txt")
    assert save(repo.folder, tmp_path / "saved").named() == {"new.txt": "file"}


def test_what_is_no_file_is_named(repo: Repo, tmp_path: Path) -> None:
    write(repo, ".gitignore", "ignored*\n")
    os.mkfifo(repo.folder / "pipe")
    os.mkfifo(repo.folder / "ignored pipe")
    os.mkfifo(repo.folder / "folder pipe\n")
    (repo.folder / "file.txt").unlink()
    os.mkfifo(repo.folder / "file.txt")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(repo.folder)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        Repo(repo.folder / "inner").commit("inside")
        saved = save(repo.folder, tmp_path / "saved")
    special = "no file, link or folder"
    assert saved.reasons() == {
        "pipe": special,
        "folder pipe\n": special,
        "socket": special,
        "file.txt": special,
        "inner": "a repository of its own",
    }
    assert saved.named() == {".gitignore": "file"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_cannot_be_read_is_named(repo: Repo, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    write(repo, "closed/x")
    (repo.folder / "closed").chmod(0)
    place = tmp_path / "place"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    os.seteuid(65534)
    try:
        saved = save(repo.folder, place / "saved")
    finally:
        os.seteuid(0)
        (repo.folder / "closed").chmod(0o755)
    assert saved.reasons() == {"closed": "the folder cannot be read: Permission denied"}


def test_limits_name_what_is_over_them(repo: Repo, tmp_path: Path) -> None:
    write(repo, "a", "small")
    with (repo.folder / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    write(repo, "x/y/z")
    limits = WorkspaceLimits(file=1 << 20, depth=2)
    saved = save(repo.folder, tmp_path / "1", limits=limits)
    assert saved.named() == {"a": "file"}
    assert "1073741824 bytes" in saved.reasons()["sparse"]
    assert "deeper than 2 folders" in saved.reasons()["x/y/z"]
    few = save(repo.folder, tmp_path / "2", limits=WorkspaceLimits(file=1 << 20, files=1))
    assert (list(few.named()), few.reasons()["x/y/z"]) == (["a"], "the limits of a workspace are met")
    little = save(repo.folder, tmp_path / "3", limits=WorkspaceLimits(file=1 << 20, total=5))
    assert list(little.named()) == ["a"]


def test_staged_content_over_the_limit_is_named(repo: Repo, tmp_path: Path) -> None:
    write(repo, "file.txt", "x" * 2000)
    repo.git("add", "-A")
    write(repo, "file.txt", "small")
    saved = save(repo.folder, tmp_path / "saved", limits=WorkspaceLimits(file=1000))
    assert "staged content has 2000 bytes" in saved.reasons()["file.txt"]
    assert saved.document.staged == ()
    assert saved.named() == {"file.txt": "file"}


def test_folders_apart_are_never_captured(repo: Repo, tmp_path: Path) -> None:
    write(repo, "store/records/x")
    write(repo, "stored")
    os.mkfifo(repo.folder / "store" / "pipe")
    saved = save(repo.folder, tmp_path / "saved", apart=(repo.folder / "store", tmp_path))
    assert (saved.named(), saved.reasons()) == ({"stored": "file"}, {})


def test_a_file_behind_a_link_is_gone(repo: Repo, tmp_path: Path) -> None:
    write(repo, "folder/inner")
    repo.commit("two")
    elsewhere = tmp_path / "elsewhere"
    (repo.folder / "folder").rename(elsewhere)
    (repo.folder / "folder").symlink_to(elsewhere)
    saved = save(repo.folder, tmp_path / "saved")
    assert saved.named() == {"folder": "link", "folder/inner": "gone"}


def test_remotes_lose_their_credentials(repo: Repo, tmp_path: Path) -> None:
    secret = "s3" + "cr3t" * 5
    for name, address in {
        "a": f"https://user:{secret}@host.example/a.git",
        "b": f"https://host.example/b.git?private_token={secret}",
        "c": f"{secret}@host.example:c.git",
        "d": f"https://user:with/{secret}@host.example/d.git",
        "e": f"ext::sh -c {secret}",
        "f": "https://host.example/f.git",
    }.items():
        repo.git("config", f"remote.{name}.url", address)
    repo.git("config", "http.extraHeader", f"Authorization: Basic {secret}")
    saved = save(repo.folder, tmp_path / "saved")
    assert {remote.name: remote.url for remote in saved.document.remotes} == {
        "a": "https://host.example/a.git",
        "b": "https://host.example/b.git",
        "c": "host.example:c.git",
        "f": "https://host.example/f.git",
    }
    assert secret not in str(saved.document) + str(saved.skipped)
    assert sum("a remote is not carried" in one.reason for one in saved.skipped) == 2
    saved.write(tmp_path / "again")
    assert secret not in (tmp_path / "again" / ".git" / "config").read_text()


@pytest.mark.parametrize("name", ["plain", "gone", "bare.git", "file"])
def test_what_is_no_work_tree_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    Repo(tmp_path / "other").git("init", "-q", "--bare", str(tmp_path / "bare.git"))
    with pytest.raises(InputNotFoundError, match="cannot be captured") as caught:
        save(tmp_path / name, tmp_path / "saved")
    assert caught.value.remedy
