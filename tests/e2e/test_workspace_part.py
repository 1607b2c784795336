"""Single files of a saved workspace: as a restore would write them, and nothing else is fetched."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from freshness.repos import Repo
from inside import command
from workspace.git_saving import git

import archiver
from archiver import archive, extracting
from archiver.archive import Given, Options, Source
from archiver.config import load
from archiver.errors import ArchiveFormatError, ArchiverError, InputNotFoundError, UsageError
from archiver.extracting import Extracted
from archiver.model import Receipt
from archiver.model.git_document import GitDocument, Submodule
from archiver.model.workspace import TreeEntry, WorkspaceDocument
from archiver.progress import Silent
from archiver.setup import Setup, open_setup
from archiver.workspace_part import PickedFiles, absent, fits, pick
from tests.noise import noise

RUN = "r"


def save(setup: Setup, note: Path, workspace: Path) -> None:
    archive.archive(
        Source(paths=(note,), workspace=workspace), setup, options=Options(given=Given(run_id=RUN))
    )


def paths(found: Extracted) -> list[str]:
    return [one.path for one in found.workspace]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "tree").mkdir()
    (place / "src" / "app.py").write_text("print(1)\n")
    (place / "src" / "run.sh").write_text("#!/bin/sh\n")
    (place / "src" / "run.sh").chmod(0o750)
    (place / "src" / "deep" / "x[1].py").write_text("x = 1\n")
    (place / "tree" / "leaf").write_text("leaf\n")
    (place / "README").write_text("read me\n")
    (place / "link").symlink_to("src/run.sh")
    Path(os.fsdecode(os.fsencode(place / "src") + b"/new\nline\xff")).write_bytes(b"\0")
    os.utime(place / "src" / "run.sh", ns=(5_000_000_007, 5_000_000_007))
    os.utime(place / "src", ns=(7_000_000_007, 7_000_000_007))
    return place


@pytest.mark.parametrize(
    ("path", "wanted", "does"),
    [
        ("a/b", "a", True),
        ("a/b", "a/", True),
        ("ab", "a", False),
        ("a", "a/b", False),
        ("a/b", "*b", True),
        ("A", "[a]", False),
        ("a", "", False),
    ],
)
def test_a_name_fits_itself_what_lies_in_it_and_its_pattern(path: str, wanted: str, does: bool) -> None:
    assert fits(path, wanted) is does


@pytest.fixture
def saved(setup: Setup, note: Path, folder: Path) -> Setup:
    save(setup, note, folder)
    return setup


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("workspace/src/app.py", ["src/app.py"]),
        ("workspace/src/deep/", ["src/deep", "src/deep/x[1].py"]),
        ("workspace/src/deep/x[1].py", ["src/deep/x[1].py"]),
        ("workspace/*.py", ["src/app.py", "src/deep/x[1].py"]),
        ("workspace/src/new\nline\udcff", ["src/new\nline\udcff"]),
        ("workspace/*line*", ["src/new\nline\udcff"]),
        ("workspace/tree", ["tree", "tree/leaf"]),
        ("workspace/link", ["link"]),
    ],
)
def test_what_is_meant_by_a_path(only: str, found: list[str], saved: Setup, tmp_path: Path) -> None:
    into = tmp_path / "into"
    done = extracting.extract(RUN, saved, [only], into=into)
    assert paths(done) == found
    assert done.files == ()
    written = {os.fsencode(one.relative_to(into / "workspace")) for one in (into / "workspace").rglob("*")}
    folders = {os.fsencode(str(parent)) for one in found for parent in Path(one).parents} - {b"."}
    assert written == {os.fsencode(one) for one in found} | folders


def test_files_come_out_as_a_restore_would_write_them(saved: Setup, folder: Path, tmp_path: Path) -> None:
    extracting.extract(RUN, saved, ["workspace"], into=tmp_path / "into")
    for path in folder.rglob("*"):
        made = tmp_path / "into" / "workspace" / path.relative_to(folder)
        one, other = path.lstat(), made.lstat()
        assert (one.st_mode, one.st_mtime_ns) == (other.st_mode, other.st_mtime_ns)
        if stat.S_ISREG(one.st_mode):
            assert path.read_bytes() == made.read_bytes()
    assert (tmp_path / "into" / "workspace" / "link").readlink() == Path("src/run.sh")


def test_members_stay_possible_and_where_both_fit_it_is_said(saved: Setup, tmp_path: Path) -> None:
    done = extracting.extract(RUN, saved, ["workspace/tree", "receipt.json"], into=tmp_path / "1")
    assert [one.path for one in done.files] == ["receipt.json"]
    assert any("is taken as a file of the workspace" in said for said in done.warnings)
    done = extracting.extract(RUN, saved, ["bundle:workspace/tree"], into=tmp_path / "2")
    assert [one.path for one in done.files] == ["workspace/tree/0000.jsonl"]
    done = extracting.extract(RUN, saved, ["workspace/workspace.json"], into=tmp_path / "3")
    assert ([one.path for one in done.files], done.workspace) == (["workspace/workspace.json"], ())
    both = ["bundle:workspace/workspace.json", "workspace/README"]
    with pytest.raises(UsageError, match="one folder"):
        extracting.extract(RUN, saved, both, into=tmp_path / "4")
    assert not (tmp_path / "4").exists()


@pytest.mark.parametrize(
    ("only", "near"),
    [
        ("workspace/app.py", "near it: workspace/src/app.py"),
        ("workspace/READNE", "near it: workspace/README"),
        ("workspace/qqqq", "it begins with workspace/README"),
    ],
)
def test_what_is_not_there_is_named(only: str, near: str, saved: Setup, tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="has no workspace/") as caught:
        extracting.extract(RUN, saved, ["workspace/README", only], into=tmp_path / "into")
    assert near in (caught.value.remedy or "")
    assert not (tmp_path / "into").exists()


def test_a_checkpoint_without_a_workspace(setup: Setup, note: Path, tmp_path: Path) -> None:
    archive.archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=RUN)))
    with pytest.raises(InputNotFoundError, match="carries no workspace"):
        extracting.extract(RUN, setup, ["workspace/x"], into=tmp_path / "into")


def test_what_redaction_did_is_said(setup: Setup, note: Path, folder: Path, tmp_path: Path) -> None:
    (folder / ".env").write_text(f"DB_PASSWORD={secrets.token_hex(12)}\n")
    (folder / "conf.py").write_text(f'KEY = "ghp_{secrets.token_hex(18)}"\n')
    save(setup, note, folder)
    with pytest.raises(InputNotFoundError, match=r"workspace/\.env was left out"):
        extracting.extract(RUN, setup, ["workspace/.env"], into=tmp_path / "1")
    done = extracting.extract(RUN, setup, ["workspace/conf.py"], into=tmp_path / "2")
    assert any("placeholders stand" in said and "workspace/conf.py" in said for said in done.warnings)


def test_an_empty_workspace_does_not_mean_its_members(setup: Setup, note: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    save(setup, note, tmp_path / "work")
    for number, only in enumerate(("workspace", "workspace/", "workspace/*", "workspace/**")):
        with pytest.raises(InputNotFoundError, match="the workspace of this checkpoint holds nothing"):
            extracting.extract(RUN, setup, [only], into=tmp_path / f"{number}")
    done = extracting.extract(RUN, setup, ["bundle:workspace"], into=tmp_path / "members")
    assert [one.path for one in done.files] == ["workspace/workspace.json", "workspace/tree/0000.jsonl"]


def test_what_a_whole_folder_was_left_out_for_is_said(
    setup: Setup, note: Path, folder: Path, tmp_path: Path
) -> None:
    (folder / "src" / ".git").mkdir()
    (folder / "src" / ".git" / "HEAD").write_text("x")
    save(setup, note, folder)
    with pytest.raises(InputNotFoundError, match=r"workspace/src/\.git was left out .* the history of a"):
        extracting.extract(RUN, setup, ["workspace/src/.git/HEAD"], into=tmp_path / "1")
    few = setup.settings.workspace.model_copy(update={"entries": 3})
    setup = replace(setup, settings=setup.settings.model_copy(update={"workspace": few}))
    save(setup, note, folder)
    with pytest.raises(
        InputNotFoundError, match="has no workspace/README; its save says: it has more than 3"
    ):
        extracting.extract(RUN, setup, ["workspace/README"], into=tmp_path / "2")


def test_a_long_name_is_not_repeated_whole(saved: Setup, tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError) as caught:
        extracting.extract(RUN, saved, [f"workspace/{'x' * 9000}"], into=tmp_path / "into")
    assert len(str(caught.value)) < 500


class Counting(Silent):
    """How many bytes were fetched."""

    def __init__(self) -> None:
        self.bytes = 0

    def advance(self, amount: int) -> None:
        self.bytes += amount


def test_only_the_tree_and_what_is_wanted_is_fetched(
    s3_config: Path, note: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large bundle on a server the frames that hold it, by ranges."""
    from archiver.bundles import part

    (folder / "z-large.bin").write_bytes(noise(17 << 20))
    setup = open_setup(load(s3_config), need="write")
    save(setup, note, folder)
    whole: list[object] = []
    monkeypatch.setattr(part, "fetch_whole", lambda *given: whole.append(given))
    progress = Counting()
    done = extracting.extract(RUN, setup, ["workspace/src/app.py"], into=tmp_path / "into", progress=progress)
    assert (paths(done), whole) == (["src/app.py"], [])
    assert progress.bytes < 20_000


def test_a_file_that_an_earlier_bundle_holds(
    config: Path, folder: Path, tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    (folder / "large.bin").write_bytes(noise(300_000))
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=setup) as run:
        for turn in range(3):
            (folder / "README").write_text(f"turn {turn}\n")
            run.checkpoint([{"role": "user", "content": f"turn {turn}"}], force=True)
        run.flush()
    only = ["workspace/README", "workspace/large.bin"]
    done = extracting.extract(RUN, setup, only, into=tmp_path / "into", at=3)
    assert done.record.bundle is not None
    assert done.record.bundle.bases
    assert (tmp_path / "into" / "workspace" / "README").read_text() == "turn 2\n"
    assert (tmp_path / "into" / "workspace" / "large.bin").stat().st_size == 300_000


@pytest.mark.parametrize("name", ["not-there", "n" * 300, "file"])
def test_a_folder_that_is_not_there_costs_a_loop_nothing_and_is_said(
    tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    (tmp_path / "file").write_text("x")
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=tmp_path / name, policy="every-step", setup=setup) as run:
        run.checkpoint([{"role": "user", "content": "one"}], force=True)
    extracting.extract(RUN, setup, ["receipt.json"], into=tmp_path / "into")
    (left,) = json.loads((tmp_path / "into" / "receipt.json").read_bytes())["left_out"]
    assert (left["member"], "is no folder" in left["reason"]) == ("workspace", True)


# --- git ----------------------------------------------------------------------------------------------------


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    for name in ("kept.txt", "changed.txt", "deleted.txt"):
        (made.folder / name).write_text("one\n")
    made.commit("a\n")
    (made.folder / "changed.txt").write_text("two\n")
    (made.folder / "new.sh").write_text("new\n")
    (made.folder / "new.sh").chmod(0o755)
    (made.folder / "deleted.txt").unlink()
    return made


def test_of_a_git_work_tree_what_travelled_comes_out(
    repo: Repo, setup: Setup, note: Path, tmp_path: Path
) -> None:
    save(setup, note, repo.folder)
    done = extracting.extract(RUN, setup, ["workspace/*"], into=tmp_path / "into")
    assert paths(done) == ["changed.txt", "new.sh"]
    out = tmp_path / "into" / "workspace"
    assert (out / "changed.txt").read_text() == "two\n"
    assert stat.S_IMODE((out / "new.sh").lstat().st_mode) == 0o755
    assert not (out / ".git").exists()


def test_what_lies_only_in_the_commit_is_named_with_it(
    repo: Repo, setup: Setup, note: Path, tmp_path: Path
) -> None:
    save(setup, note, repo.folder)
    base = repo.git("rev-parse", "HEAD")
    with pytest.raises(InputNotFoundError, match=f"differ from the commit; .* in commit {base}") as caught:
        extracting.extract(RUN, setup, ["workspace/kept.txt"], into=tmp_path / "1")
    assert "a restore of the whole" in (caught.value.remedy or "")
    with pytest.raises(InputNotFoundError, match=r"deleted\.txt was deleted in the work tree"):
        extracting.extract(RUN, setup, ["workspace/deleted.txt"], into=tmp_path / "2")
    git(tmp_path, "clone", "--quiet", "--bare", str(repo.folder), "hub.git")
    git(repo.folder, "remote", "add", "origin", str(tmp_path / "hub.git"))
    git(repo.folder, "fetch", "--quiet", "origin")
    save(setup, note, repo.folder)
    with pytest.raises(InputNotFoundError) as caught:
        extracting.extract(RUN, setup, ["workspace/kept.txt"], into=tmp_path / "3")
    assert f"`git show {base}:PATH`" in (caught.value.remedy or "")
    assert "hub.git" in (caught.value.remedy or "")


def test_a_clean_work_tree_does_not_mean_its_members(setup: Setup, note: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "clean")
    repo.commit("a\n")
    save(setup, note, repo.folder)
    with pytest.raises(InputNotFoundError, match="no file of the workspace differs from its commit"):
        extracting.extract(RUN, setup, ["workspace"], into=tmp_path / "into")


# --- what a hostile tree may say ----------------------------------------------------------------------------


def plain(**more: object) -> WorkspaceDocument:
    given = {"kind": "folder", "root": "/x", "trees": (), "entries": 0, "bytes": 0, **more}
    return WorkspaceDocument.model_validate(given)


def picks(document: WorkspaceDocument, entries: Iterable[TreeEntry], only: str) -> PickedFiles:
    return pick(document, lambda: entries, [only])


def test_a_git_folder_is_not_written() -> None:
    document = plain(kind="git", git=GitDocument())
    hook = TreeEntry(".git/hooks/post-checkout", "file", 0o755, 0, sha256="0" * 64)
    with pytest.raises(ArchiveFormatError, match="git folder"):
        picks(document, [hook], "workspace/*")


def test_of_a_file_in_a_submodule_the_commit_is_named() -> None:
    commit, checked_out = "a" * 40, "b" * 40
    modules = (
        Submodule(path="module", commit=commit, checked_out=checked_out),
        Submodule(path="closed", commit=commit),
    )
    document = plain(kind="git", git=GitDocument(base="c" * 40, submodules=modules))
    for path, one in (("workspace/module/x", checked_out), ("workspace/closed", commit)):
        found = absent(path, document, list, Receipt())
        assert "whose files do not travel" in str(found)
        assert found.remedy == f"look in a clone of it, at commit {one}"


def test_nothing_is_written_through_a_link_or_above(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    empty = {"mode": 0o644, "modified": 0}
    link = TreeEntry("a", "link", target=str(outside), **empty)  # type: ignore[arg-type]
    below = TreeEntry("a/b", "folder", **empty)  # type: ignore[arg-type]
    above = TreeEntry("../c", "folder", **empty)  # type: ignore[arg-type]
    for number, entries in enumerate(([link, below], [above])):
        with pytest.raises(ArchiverError):
            picks(plain(), entries, "workspace").write(tmp_path, tmp_path / f"into{number}")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "c").exists()


# --- the command --------------------------------------------------------------------------------------------


def test_the_command(saved: Setup, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    into = tmp_path / "into"
    done = command("restore", RUN, "--only", "workspace/src/*", "--into", into)
    assert done.code == 0, done.err
    assert ["written", "4 files, 26 B"] in done.rows
    done = command("restore", RUN, "--only", "workspace/*line*", "--only", "workspace/link", "--json")
    assert done.code == 0, done.err
    files = json.loads(done.out)["files"]
    assert [(one["path"], one["type"]) for one in files] == [
        ("workspace/link", "link"),
        ("workspace/src/new\nline\udcff", "file"),
    ]
    assert (files[0]["target"], files[1]["mode"]) == ("src/run.sh", 0o644)
    done = command("restore", RUN, "--only", "workspace/link", "--into", tmp_path / "2", "--repo", tmp_path)
    assert done.code == 2
    assert "--repo" in done.err
