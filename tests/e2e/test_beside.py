"""The workspace of a checkpoint beside a folder on disk: every difference is told, and nothing is touched."""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from freshness.repos import Repo
from inside import command
from workspace.git_saving import inside_of

from archiver import archive, looking
from archiver.archive import Given, Options, Source
from archiver.beside import beside
from archiver.errors import InputNotFoundError
from archiver.model.difference import FolderDifference
from archiver.progress import Silent
from archiver.setup import Setup
from archiver.workspace import git_places

RUN = "r"


def save(setup: Setup, note: Path, workspace: Path | None) -> None:
    archive.archive(
        Source(paths=(note,), workspace=workspace), setup, options=Options(given=Given(run_id=RUN))
    )


def compared(setup: Setup, folder: Path) -> FolderDifference:
    chain = looking.chain_of(RUN, setup, datetime.now(UTC))
    return beside(looking.newest(chain, 1)[0], chain, setup, folder, Silent(), "diff")


def told(found: FolderDifference) -> set[tuple[str, object]]:
    return {(one.kind, one.path) for one in (*found.changes, *found.unknown)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "src" / "empty").mkdir(parents=True)
    (place / "src" / "same.txt").write_text("same\n")
    (place / "changed.txt").write_text("one\n")
    (place / "longer.txt").write_text("one\n")
    (place / "mode.sh").write_text("x\n")
    (place / "gone.txt").write_text("x\n")
    (place / "kind.txt").write_text("x\n")
    (place / "link").symlink_to("changed.txt")
    Path(os.fsdecode(os.fsencode(place) + b"/\xff\n")).write_bytes(b"1")
    return place


def test_nothing_differs_from_the_folder_itself(setup: Setup, note: Path, folder: Path) -> None:
    (folder / "src").chmod(0o2755)  # of a mode the bits of permission are captured
    save(setup, note, folder)
    os.utime(folder / "changed.txt", ns=(1, 1))
    found = compared(setup, folder)
    assert found.empty
    assert told(found) == set()


def test_every_difference_is_told(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "private").mkdir(0o755)
    save(setup, note, folder)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "same.txt").write_text("same\n")
    (folder / "changed.txt").write_text("two\n")
    (folder / "longer.txt").write_text("longer\n")
    (folder / "mode.sh").chmod(0o755)
    (folder / "private").chmod(0o700)
    os.mkfifo(folder / "pipe")
    (folder / "gone.txt").unlink()
    (folder / "kind.txt").unlink()
    (folder / "kind.txt").mkdir()
    (folder / "link").unlink()
    (folder / "link").symlink_to("mode.sh")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "x").write_text("x")
    (folder / "new\nline").write_text("new")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n")).write_bytes(b"2")
    (folder / "src" / "same.txt").unlink()
    (folder / "src" / "empty").rmdir()
    (folder / "src").rmdir()
    (folder / "src").symlink_to(outside)  # what lies in it is not what was captured
    before = sorted((str(one), one.lstat().st_mtime_ns) for one in folder.rglob("*"))
    found = compared(setup, folder)
    assert told(found) == {
        ("content", "changed.txt"),
        ("content", "longer.txt"),
        ("content", "\udcff\n"),
        ("mode", "mode.sh"),
        ("mode", "private"),
        ("unknown", "pipe"),
        ("missing", "gone.txt"),
        ("type", "kind.txt"),
        ("link", "link"),
        ("extra", "new\nline"),
        ("type", "src"),
        ("missing", "src/empty"),
        ("missing", "src/same.txt"),
    }
    assert found.differing == 12
    assert sorted((str(one), one.lstat().st_mtime_ns) for one in folder.rglob("*")) == before


def test_what_cannot_be_compared_is_said_and_no_change(setup: Setup, note: Path, folder: Path) -> None:
    (folder / ".env").write_text(f"DB_PASSWORD={secrets.token_hex(12)}\n")
    (folder / "conf.py").write_text(f'KEY = "ghp_{secrets.token_hex(18)}"\n')
    save(setup, note, folder)
    found = compared(setup, folder)
    assert found.empty
    assert {one.path: one.what.partition(":")[0] for one in found.unknown} == {
        ".env": "cannot be compared",
        "conf.py": "cannot be compared",
    }
    assert any("credentials in it were replaced" in one.what for one in found.unknown)
    assert any("left out of the save" in one.what for one in found.unknown)


def test_no_credential_in_a_name_is_told_and_what_was_left_out_for_one_is_not_extra(
    setup: Setup, note: Path, folder: Path
) -> None:
    token = f"ghp_{secrets.token_hex(18)}"
    (folder / "leads").symlink_to(f"https://host.example/{token}")
    (folder / token).mkdir()
    for name in (f"{token}/in.txt", f"old-{token}", os.fsdecode(f"{token}.".encode() + b"\xe2\x82")):
        (folder / name).write_text("x")
    save(setup, note, folder)
    assert compared(setup, folder).empty
    (folder / f"new-{token}").write_text("x")
    found = compared(setup, folder)
    (new,) = found.changes
    assert (new.kind, (new.path or "").startswith("new-[REDACTED:github-token:")) == ("extra", True)
    assert found.not_compared == 5
    assert token not in json.dumps(found.document())


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_the_store_of_the_archiver_is_never_extra(
    setup: Setup, note: Path, folder: Path, tmp_path: Path, kind: str
) -> None:
    """Where it lies in the folder that is compared, as it is not captured there."""
    if kind == "git":
        Repo(folder / ".." / "work2").commit("one")
        folder = tmp_path / "work2"
    save(setup, note, folder)
    if kind == "git":
        (folder / ".git").rename(tmp_path / ".git")
    extra = {str(one.path).partition("/")[0] for one in compared(setup, tmp_path).changes}
    store = Path(urlsplit(setup.store.url).path)
    assert (store.parent, note.name in extra) == (tmp_path, True)
    assert store.name not in extra


def test_of_a_folder_that_was_left_out_as_a_whole_nothing_is_extra(
    setup: Setup, note: Path, folder: Path
) -> None:
    few = setup.settings.workspace.model_copy(update={"entries": 3})
    save(replace(setup, settings=setup.settings.model_copy(update={"workspace": few})), note, folder)
    found = compared(setup, folder)
    assert found.empty
    assert found.not_compared == sum(1 for _ in folder.rglob("*"))


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_what_lies_in_a_closed_folder_is_not_called_missing(
    setup: Setup, note: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "work"
    if kind == "git":
        Repo(place).commit("a\n")
    (place / "closed" / "deep").mkdir(parents=True)
    (place / "closed" / "deep" / "in.txt").write_text("x")
    (place / "gone.txt").write_text("x")
    save(setup, note, place)
    (place / "gone.txt").unlink()
    lstat, closed = os.lstat, os.fsencode(place / "closed") + b"/"

    def refused(path: str | bytes | Path, **more: Any) -> os.stat_result:
        if os.fsencode(path).startswith(closed):
            raise PermissionError(errno.EACCES, "Permission denied")
        return lstat(path, **more)

    monkeypatch.setattr(git_places.os, "lstat", refused)
    found = told(compared(setup, place))
    monkeypatch.undo()
    assert ("missing", "gone.txt") in found
    assert ("unknown", "closed/deep/in.txt") in found
    assert {kind for kind, path in found if str(path).startswith("closed/")} == {"unknown"}


def test_a_database_in_use_is_compared_as_it_was_copied(setup: Setup, note: Path, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "db.sqlite")) as open_one:
        open_one.execute("pragma journal_mode=wal")
        open_one.execute("create table t (x)")
        open_one.commit()
        save(setup, note, folder)
        assert compared(setup, folder).empty
        open_one.execute("insert into t values (1)")
        open_one.commit()
        assert ("content", "db.sqlite") in told(compared(setup, folder))


def test_a_git_work_tree(setup: Setup, note: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    for name in ("kept.txt", "changed.txt", "deleted.txt"):
        (repo.folder / name).write_text("one\n")
    repo.commit("a\n")
    (repo.folder / "changed.txt").write_text("two\n")
    (repo.folder / "staged.txt").write_text("one\n")
    repo.git("add", "staged.txt")
    (repo.folder / "deleted.txt").unlink()
    save(setup, note, repo.folder)
    assert told(compared(setup, repo.folder)) == set()
    (repo.folder / "staged.txt").write_text("two\n")
    repo.git("add", "staged.txt", "changed.txt")
    (repo.folder / "kept.txt").write_text("two\n")
    (repo.folder / "deleted.txt").write_text("one\n")
    (repo.folder / "untracked.txt").write_text("one\n")
    before = inside_of(repo.folder)
    assert told(compared(setup, repo.folder)) == {
        ("index", "changed.txt"),
        ("index", "staged.txt"),
        ("content", "staged.txt"),
        ("content", "kept.txt"),
        ("extra", "deleted.txt"),
        ("extra", "untracked.txt"),
    }
    assert inside_of(repo.folder) == before
    repo.git("checkout", "-q", "-b", "other")
    repo.commit("b\n")
    found = compared(setup, repo.folder)
    said = " ".join(one.what for one in found.changes if one.kind == "state")
    assert "HEAD: " in said
    assert "branch: main was captured, here it is other" in said
    assert any("the index is not compared" in one.what for one in found.unknown)


def test_no_credential_of_a_repository_is_told(setup: Setup, note: Path, tmp_path: Path) -> None:
    token = f"ghp_{secrets.token_hex(18)}"
    repo = Repo(tmp_path / "repo")
    repo.commit("a\n")
    save(setup, note, repo.folder)
    repo.git("checkout", "-q", "-b", f"b-{token}")
    for name in (f"staged-{token}", f"new-{token}"):
        (repo.folder / name).write_text("x")
    repo.git("add", f"staged-{token}")
    found = compared(setup, repo.folder)
    assert [one.kind for one in found.changes] == ["state", "index", "extra", "extra"]
    assert token not in json.dumps(found.document())


def test_a_checkpoint_without_a_workspace_and_no_folder(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note, None)
    with pytest.raises(InputNotFoundError, match="carries no workspace"):
        compared(setup, tmp_path)
    for name in ("no", "n" * 300, "n\0o"):
        with pytest.raises(InputNotFoundError, match="is no folder"):
            compared(setup, tmp_path / name)
        with pytest.raises(InputNotFoundError, match="is no folder"):
            save(setup, note, tmp_path / name)


def test_the_command(
    setup: Setup, config: Path, note: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    save(setup, note, folder)
    (folder / "changed.txt").write_text("two\n")
    (folder / "gone.txt").unlink()
    done = command("diff", RUN, "1", "--workspace", folder)
    assert done.code == 0, done.err
    assert done.rows == [
        ["file", "~", "changed.txt", "-", "has another content here"],
        ["file", "-", "gone.txt", "-", "was captured, is not here"],
    ]
    done = command("diff", RUN, "--workspace", folder, "--json", "--exit-code")
    assert done.code == 1
    found = json.loads(done.out)
    assert (found["seq"], found["workspace"], found["differing"], found["changed"]) == (1, "folder", 2, True)
    assert FolderDifference.model_validate({k: v for k, v in found.items() if k != "changed"}).folder == str(
        folder
    )
    assert command("diff", RUN, "1", "2", "--workspace", folder).code == 2
