"""A workspace that limits have no room for: the run is saved, and what is not carried is said everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo

import archiver
from archiver import extracting, looking
from archiver.archive import Archived, Given, Options, Source, archive
from archiver.beside import beside
from archiver.compact.workspace_files import MAX_NAMED
from archiver.errors import InputNotFoundError, LimitExceededError
from archiver.progress import Silent
from archiver.restore import restore
from archiver.setup import Setup
from archiver.verify import verify
from tests.noise import noise

RUN = "r"
KIB = 1 << 10


def limited(setup: Setup, **limits: Any) -> Setup:
    changed = setup.settings.limits.model_copy(update=limits)
    return replace(setup, settings=setup.settings.model_copy(update={"limits": changed}))


def save(setup: Setup, note: Path, workspace: Path) -> Archived:
    return archive(
        Source(paths=(note,), workspace=workspace), setup, options=Options(given=Given(run_id=RUN))
    )


def cut(done: Archived) -> dict[str, tuple[str, str, int]]:
    return {one.member: (one.limit, one.policy, one.kept) for one in done.receipt.cut}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "src").mkdir(parents=True)
    (place / "src" / "app.py").write_text("print(1)\n")
    for name, size in (("small.bin", 10), ("middle.bin", 100), ("large.bin", 200)):
        (place / name).write_bytes(noise(size * KIB))
    return place


def test_the_largest_files_of_a_workspace_stay(
    setup: Setup, note: Path, folder: Path, tmp_path: Path
) -> None:
    setup = limited(setup, bundle=200 * KIB, member=200 * KIB)
    done = save(setup, note, folder)
    assert cut(done) == {"workspace/large.bin": ("bundle", "reference", 0)}
    said = "workspace/large.bin has 204800 bytes, which limits.bundle has no room for: not carried"
    assert said in done.warnings
    assert done.record.cut == 1
    assert all(one.ok for one in verify(setup, RUN, deep=True))
    report = restore(RUN, setup, into=tmp_path / "out").report
    assert any("limits had no room for 1 of its files" in one for one in report.warnings)
    assert said in (tmp_path / "out" / "REPORT.md").read_text()
    out = tmp_path / "out" / "workspace"
    assert not (out / "large.bin").exists()
    assert (out / "middle.bin").read_bytes() == (folder / "middle.bin").read_bytes()
    document = json.loads(
        extracting.extract(RUN, setup, ["bundle:workspace/workspace.json"], into=tmp_path / "1")
        .folder.joinpath("workspace/workspace.json")
        .read_bytes()
    )
    assert len(document["not_carried"]) == 1


def test_what_is_not_carried_can_be_compared_and_is_named(
    setup: Setup, note: Path, folder: Path, tmp_path: Path
) -> None:
    setup = limited(setup, bundle=200 * KIB, member=200 * KIB)
    save(setup, note, folder)
    chain = looking.chain_of(RUN, setup, datetime.now(UTC))
    record = looking.newest(chain, 1)[0]
    assert beside(record, chain, setup, folder, Silent(), "diff").empty
    (folder / "large.bin").write_bytes(b"other")
    found = beside(record, chain, setup, folder, Silent(), "diff")
    assert [(one.kind, one.path) for one in found.changes] == [("content", "large.bin")]
    with pytest.raises(InputNotFoundError, match="no room for its 204800 bytes"):
        extracting.extract(RUN, setup, ["workspace/large.bin"], into=tmp_path / "1")
    done = extracting.extract(RUN, setup, ["workspace/*.bin"], into=tmp_path / "2")
    assert [one.path for one in done.workspace] == ["middle.bin", "small.bin"]
    assert any("no room for its 204800 bytes" in said for said in done.warnings)


def test_a_file_that_is_not_carried_does_not_mean_a_member_of_its_name(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    place = tmp_path / "work"
    (place / "tree").mkdir(parents=True)
    (place / "tree" / "0000.jsonl").write_bytes(noise(300 * KIB))
    setup = limited(setup, bundle=250 * KIB, member=200 * KIB)
    save(setup, note, place)
    with pytest.raises(InputNotFoundError, match="limits had no room for its 307200 bytes"):
        extracting.extract(RUN, setup, ["workspace/tree/0000.jsonl"], into=tmp_path / "1")


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        ({"member": 150 * KIB}, {"workspace/large.bin": "member"}),
        ({"member": 50 * KIB}, {"workspace/large.bin": "member", "workspace/middle.bin": "member"}),
        ({"members": 9}, {"workspace/large.bin": "members", "workspace/middle.bin": "members"}),
    ],
    ids=["one file", "two files", "too many files"],
)
def test_limits_of_files_and_of_their_number(
    limits: dict[str, Any], stay: dict[str, str], setup: Setup, note: Path, folder: Path, tmp_path: Path
) -> None:
    setup = limited(setup, **limits)
    done = save(setup, note, folder)
    assert {path: limit for path, (limit, _, _) in cut(done).items()} == stay
    restore(RUN, setup, into=tmp_path / "out")
    assert (tmp_path / "out" / "workspace" / "src" / "app.py").read_text() == "print(1)\n"


def test_the_policy_refuse_refuses(setup: Setup, note: Path, folder: Path) -> None:
    for limits in ({"bundle": 200 * KIB, "member": 200 * KIB}, {"member": 150 * KIB}):
        with pytest.raises(LimitExceededError):
            save(limited(setup, bundle_policy="refuse", **limits), note, folder)
    assert list(setup.store.list("bundles/")) == []


def test_of_very_many_only_the_number_is_said(setup: Setup, note: Path, tmp_path: Path) -> None:
    place = tmp_path / "many"
    place.mkdir()
    for number in range(MAX_NAMED + 30):
        (place / f"{number:04d}").write_bytes(b"%04d" % number * 300)
    done = save(limited(setup, bundle=790_000, member=400 * KIB), note, place)
    assert len(done.receipt.cut) == MAX_NAMED + 1
    last = done.receipt.cut[-1]
    assert last.member.endswith("more files of workspace/")
    assert last.size == int(last.member.split()[0]) * 1200
    assert all(one.ok for one in verify(setup, RUN, deep=True))
    warnings = restore(RUN, setup, into=tmp_path / "out").report.warnings
    (said,) = (one for one in warnings if "which are not here" in one)
    assert said.partition("has them: ")[2] == "0000, 0001, 0002, 0003, 0004, …"


def test_what_the_index_of_git_needs_is_carried(setup: Setup, note: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    (repo.folder / "old.txt").write_text("one\n")
    repo.commit("a\n")
    (repo.folder / "staged.bin").write_bytes(noise(100 * KIB))
    repo.git("add", "staged.bin")
    (repo.folder / "untracked.bin").write_bytes(noise(120 * KIB))
    (repo.folder / "old.txt").write_bytes(noise(130 * KIB))
    setup = limited(setup, bundle=200 * KIB, member=200 * KIB)
    done = save(setup, note, repo.folder)
    assert set(cut(done)) == {"workspace/untracked.bin", "workspace/old.txt"}
    restore(RUN, setup, into=tmp_path / "out")
    out = tmp_path / "out" / "workspace"
    assert (out / "staged.bin").stat().st_size == 100 * KIB
    assert (out / "old.txt").read_text() == "one\n"  # as the commit has it, which the report says
    assert not (out / "untracked.bin").exists()


def test_a_run_that_has_met_its_limit_goes_on_without_what_is_large_and_new(
    config: Path, folder: Path, tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier bundle holds costs the run nothing, and stays."""
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    monkeypatch.setenv("ARCHIVER_LIMITS__RUN", "600KiB")
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=setup) as run:
        run.checkpoint([{"role": "user", "content": "1"}], force=True)
        run.flush()
        (folder / "new.bin").write_bytes(noise(300 * KIB))
        (folder / "new.txt").write_text("new\n")
        run.checkpoint([{"role": "user", "content": "2"}], force=True)
        run.flush()
    restore(RUN, setup, into=tmp_path / "out", at=2)
    out = tmp_path / "out" / "workspace"
    assert not (out / "new.bin").exists()
    assert (out / "new.txt").read_text() == "new\n"
    assert (out / "large.bin").read_bytes() == (folder / "large.bin").read_bytes()


def test_increments_go_on_without_what_has_no_room(
    config: Path, folder: Path, tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    for name, size in (("BUNDLE", "430KiB"), ("MEMBER", "210KiB"), ("ARTIFACT", "210KiB")):
        monkeypatch.setenv(f"ARCHIVER_LIMITS__{name}", size)
    for number in range(3):
        (folder / f"{number}.bin").write_bytes(noise(95 * KIB, number))
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=setup) as run:
        for number in range(3):
            (folder / "src" / "app.py").write_text(f"{number}\n")
            run.checkpoint([{"role": "user", "content": str(number)}], force=True)
            run.flush()
    record = restore(RUN, setup, into=tmp_path / "out", at=3).report.record
    assert record.cut == 1
    assert record.bundle is not None
    assert record.bundle.bases == (1, 2)
    out = tmp_path / "out" / "workspace"
    assert (out / "src" / "app.py").read_text() == "2\n"
    assert (out / "middle.bin").read_bytes() == (folder / "middle.bin").read_bytes()
    assert not (out / "large.bin").exists()
