"""A run saved with its workspace and restored: files as they were, git as it was, and no secret."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo
from inside import command
from workspace.git_saving import git, state_of, tree_of

from archiver import archive, restore
from archiver.archive import Given, Options, Source
from archiver.errors import AlreadyExistsError, InputNotFoundError
from archiver.model import workspace as model
from archiver.progress import Silent
from archiver.saved import fetch
from archiver.setup import Setup
from archiver.workspace_in import WorkspaceIn
from tests.noise import noise

RUN = "r"


def token() -> str:
    return "ghp_" + secrets.token_hex(18)


def save(setup: Setup, note: Path, workspace: Path) -> archive.Archived:
    options = Options(given=Given(run_id=RUN))
    return archive.archive(Source(paths=(note,), workspace=workspace), setup, options=options)


def opened(setup: Setup, tmp_path: Path) -> Path:
    """The members of the newest bundle."""
    unpacked = tmp_path / "unpacked"
    fetch(restore.plan(RUN, setup).record, setup, unpacked, Silent(), ())
    return unpacked


def back(setup: Setup, into: Path, repository: Path | None = None) -> Path:
    restore.restore(RUN, setup, into=into, repository=repository)
    return into / "workspace"


def looks(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time and content of everything below, by path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        data = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if stat.S_ISREG(seen.st_mode):
            data = path.read_bytes()
        found[str(path.relative_to(folder))] = (seen.st_mode, seen.st_mtime_ns, data)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "src" / "empty").mkdir(parents=True)
    (place / "a.txt").write_text("one\n")
    (place / "src" / "run.sh").write_text("#!/bin/sh\n")
    (place / "src" / "run.sh").chmod(0o750)
    (place / "src" / "line\nend").write_bytes(b"\0\1\2")
    (place / "link").symlink_to("src/run.sh")
    (place / "away").symlink_to("/nowhere/at/all")
    return place


def test_a_folder_comes_back_as_it_was(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    before = looks(folder)
    save(setup, note, folder)
    assert looks(folder) == before
    assert looks(back(setup, tmp_path / "out")) == before
    report = (tmp_path / "out" / "REPORT.md").read_text()
    assert "its workspace, as it was saved" in report


def test_the_last_step_goes_on_with_the_run(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    save(setup, note, folder)
    first, *_, last = restore.restore(RUN, setup, into=tmp_path / "out").report.next_steps
    assert first.startswith("# its workspace, as it was saved: ")
    assert not last.startswith("#")


def test_force_replaces_no_workspace(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    """Somebody may have worked in it since; without it the folder is replaced as any other."""
    save(setup, note, folder)
    place = back(setup, tmp_path / "out")
    (place / "mine.txt").write_text("hours of work\n")
    with pytest.raises(AlreadyExistsError, match="somebody may have worked since") as caught:
        restore.restore(RUN, setup, into=tmp_path / "out", force=True)
    assert str(place) in (caught.value.remedy or "")
    assert (place / "mine.txt").exists()
    place.rename(tmp_path / "kept")
    restore.restore(RUN, setup, into=tmp_path / "out", force=True)
    assert looks(place) == looks(folder)


def test_no_secret_of_a_workspace_is_carried(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    """Not that of a text, of a file of credentials and its copies, nor of a container."""
    first, second, third = token(), secrets.token_hex(12), token()
    (folder / "conf.py").write_text(f'KEY = "{first}"\n')
    (folder / ".env").write_text(f"DB_PASSWORD={second}\n")
    (folder / "notes.txt").write_text(f"it is {second}, I think\n")
    note.write_text(f"the password was {second}\n")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archived:
        archived.writestr("inner.txt", f"token {third}\n")
    (folder / "pack.zip").write_bytes(packed.getvalue())
    (folder / "wide.txt").write_bytes(f'KEY = "{first}"\n'.encode("utf-16"))
    (folder / "old.txt").write_bytes(f'cl\u00e9 = "{first}"\n'.encode("latin-1"))
    done = save(setup, note, folder)
    unpacked = opened(setup, tmp_path)
    everything = b"".join(path.read_bytes() for path in unpacked.rglob("*") if path.is_file())
    assert not [value for value in (first, second, third) if value.encode() in everything]
    left = {one.member: one.reason for one in done.receipt.left_out}
    assert set(left) == {".env", "pack.zip", "wide.txt", "old.txt"}
    assert all("is no text in UTF-8" in left[name] for name in ("wide.txt", "old.txt"))
    out = back(setup, tmp_path / "out")
    assert (out / "conf.py").read_text().startswith('KEY = "[REDACTED:github-token:')
    assert "[REDACTED:" in (out / "notes.txt").read_text()
    assert not (out / ".env").exists()
    assert not (out / "pack.zip").exists()
    assert "put them back by hand" in (tmp_path / "out" / "REPORT.md").read_text()


def test_a_name_that_a_later_file_tells_to_be_secret_is_not_carried(
    setup: Setup, note: Path, folder: Path, tmp_path: Path
) -> None:
    value = secrets.token_hex(10) + "Zq7"
    (folder / f"a-{value}").mkdir()
    (folder / f"a-{value}" / "inside.txt").write_text("text\n")
    (folder / "to").symlink_to(f"a-{value}")
    (folder / "z.ini").write_text(f'password = "{value}"\n')
    save(setup, note, folder)
    unpacked = opened(setup, tmp_path)
    assert value.encode() not in b"".join(one.read_bytes() for one in unpacked.rglob("*") if one.is_file())
    out = back(setup, tmp_path / "out")
    assert "[REDACTED:" in (out / "z.ini").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["a.txt", "away", "link", "src", "z.ini"]


def test_a_git_work_tree_comes_back_with_its_index_and_commits(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "repo")
    (repo.folder / "kept.txt").write_text("one\n")
    (repo.folder / "changed.txt").write_text("one\n")
    (repo.folder / "deleted.txt").write_text("one\n")
    repo.commit("a\n")
    (repo.folder / "deleted.txt").unlink()
    (repo.folder / "changed.txt").write_text("two\n")
    (repo.folder / "staged.txt").write_text("new\n")
    git(repo.folder, "add", "staged.txt")
    (repo.folder / "untracked.txt").write_text("mine\n")
    before = state_of(repo.folder)
    save(setup, note, repo.folder)
    assert state_of(repo.folder) == before
    out = back(setup, tmp_path / "out")
    assert state_of(out) == before
    assert tree_of(out) == tree_of(repo.folder)


def test_commits_that_hold_a_secret_stay_and_what_they_changed_travels(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    secret = token()
    repo = Repo(tmp_path / "repo")
    (repo.folder / "conf.py").write_text(f'KEY = "{secret}"\n')
    repo.commit("a\n")
    (repo.folder / "conf.py").write_text("KEY = load()\n")
    repo.commit("a\n")
    done = save(setup, note, repo.folder)
    assert any("commits.bundle" in one.member for one in done.receipt.left_out)
    unpacked = opened(setup, tmp_path)
    assert not (unpacked / "workspace" / "git").exists()
    out = back(setup, tmp_path / "out")
    assert (out / "conf.py").read_text() == "KEY = load()\n"


def test_more_state_of_git_than_a_reader_takes_is_not_written(
    setup: Setup, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First what was staged stays, then the state as a whole: the files are carried always."""
    repo = Repo(tmp_path / "repo")
    repo.commit("one\n")
    for number in range(40):
        (repo.folder / f"{number}.txt").write_text("new\n")
    repo.git("add", "-A")
    for number, (most, said) in enumerate(
        ((5000, "what was staged is not carried"), (500, "only the files"))
    ):
        monkeypatch.setattr(model, "MAX_DOCUMENT", most)
        done = save(setup, note, repo.folder)
        assert sum(said in one.reason for one in done.receipt.left_out) == 1
        again = back(setup, tmp_path / f"again {number}")
        assert (again / "39.txt").read_text() == "new\n"
        assert (again / ".git").exists() is (number == 0)


def test_a_repository_that_breaks_meanwhile_costs_its_state_and_not_the_save(
    setup: Setup, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git ignores is a file like any other then, and secrets of it are known."""
    repo = Repo(tmp_path / "repo")
    secret = secrets.token_hex(12)
    (repo.folder / ".gitignore").write_text(".env\n")
    repo.commit("one\n")
    (repo.folder / ".env").write_text(f"DB_PASSWORD={secret}\n")
    (repo.folder / "new.txt").write_text(f"it is {secret}\n")
    git(repo.folder, "add", "new.txt")
    members = WorkspaceIn.members

    def breaking(self: WorkspaceIn, *more: Any, **named: Any) -> Any:
        shutil.rmtree(repo.folder / ".git" / "objects")
        return members(self, *more, **named)

    monkeypatch.setattr(WorkspaceIn, "members", breaking)
    done = save(setup, note, repo.folder)
    assert any("only the files are carried" in one.reason for one in done.receipt.left_out)
    out = back(setup, tmp_path / "out")
    assert sorted(path.name for path in out.iterdir()) == [".gitignore", "file.txt", "new.txt"]
    assert "[REDACTED:" in (out / "new.txt").read_text()


def test_what_a_remote_has_is_taken_from_a_clone(setup: Setup, note: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    for number in range(30):
        (repo.folder / f"{number}.txt").write_text(f"{number}\n" * 100)
    repo.commit("a\n")
    git(tmp_path, "clone", "--quiet", "--bare", str(repo.folder), "hub.git")
    git(repo.folder, "remote", "add", "origin", str(tmp_path / "hub.git"))
    git(repo.folder, "fetch", "--quiet", "origin")
    (repo.folder / "3.txt").write_text("changed\n")
    save(setup, note, repo.folder)
    unpacked = opened(setup, tmp_path)
    assert len(list((unpacked / "workspace" / "objects").iterdir())) == 1
    alone = back(setup, tmp_path / "alone")
    assert (alone / "3.txt").read_text() == "changed\n"
    said = (tmp_path / "alone" / "REPORT.md").read_text()
    assert "is not here" in said
    assert f"git clone {tmp_path / 'hub.git'}" in said
    out = back(setup, tmp_path / "out", tmp_path / "hub.git")
    assert tree_of(out) == tree_of(repo.folder)


def test_the_commands(config: Path, note: Path, folder: Path, tmp_path: Path) -> None:
    done = command("archive", note, "--run-id", RUN, "--workspace", folder, "--config", config)
    assert done.code == 0, done.err
    done = command("restore", RUN, "--into", tmp_path / "out", "--config", config)
    assert done.code == 0, done.err
    assert looks(tmp_path / "out" / "workspace") == looks(folder)
    entries = sorted(folder.rglob("*"))
    total = sum(one.lstat().st_size for one in entries if one.is_file() and not one.is_symlink())
    shown = command("show", RUN, "--tail", 1, "--json", "--config", config).json
    assert shown["workspace"] == {"kind": "folder", "entries": len(entries), "bytes": total}
    shown = command("show", RUN, "--tail", 1, "--config", config)
    assert ["workspace", f"folder, {len(entries)} entries, {total} B"] in shown.rows
    assert "workspace" not in command("show", RUN, "--json", "--config", config).json
    gone = command("archive", note, "--run-id", RUN, "--workspace", tmp_path / "no", "--config", config)
    assert gone.code != 0
    assert "is no folder" in gone.err


def test_of_a_checkpoint_without_one_it_is_said_where_it_is_opened(config: Path, note: Path) -> None:
    assert command("archive", note, "--run-id", RUN, "--config", config).code == 0
    shown = command("show", RUN, "--tail", 1, "--config", config)
    assert ["workspace", "none"] in shown.rows
    assert command("show", RUN, "--tail", 1, "--json", "--config", config).json["workspace"] is None
    assert not [row for row in command("show", RUN, "--config", config).rows if row[0] == "workspace"]


def test_a_workspace_that_is_not_there_is_an_error(setup: Setup, note: Path, tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="no folder"):
        save(setup, note, tmp_path / "no")


def test_a_loop_sends_a_content_once(
    config: Path, folder: Path, tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier checkpoint of the epoch holds is not sent again; the last one is whole."""
    import archiver

    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    (folder / "large.bin").write_bytes(noise(300_000))
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=setup) as run:
        for turn in range(3):
            (folder / "a.txt").write_text(f"turn {turn}\n")
            run.checkpoint([{"role": "user", "content": f"turn {turn}"}], force=True)
        run.flush()
    sizes = [info.size for info in sorted(setup.store.list(f"bundles/{RUN}/"), key=lambda one: one.name)]
    assert sizes[0] > 300_000
    assert max(sizes[1:3]) < 30_000
    assert (back(setup, tmp_path / "out") / "a.txt").read_text() == "turn 2\n"
    restore.restore(RUN, setup, into=tmp_path / "second", at=2)
    assert (tmp_path / "second" / "workspace" / "a.txt").read_text() == "turn 1\n"
    assert (tmp_path / "second" / "workspace" / "large.bin").stat().st_size == 300_000
