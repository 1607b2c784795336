"""A run without the workspace that was saved with it: where that cannot be made again, or is not wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from inside import command

import archiver
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.errors import LimitExceededError
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from tests.noise import noise

RUN = "r"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    for number in range(9):
        (place / f"{number}.txt").write_text(f"{number}\n")
    return place


@pytest.fixture
def saved(setup: Setup, note: Path, folder: Path) -> Setup:
    archive(Source(paths=(note,), workspace=folder), setup, options=Options(given=Given(run_id=RUN)))
    return setup


def test_everything_else_is_handed_over(saved: Setup, config: Path, tmp_path: Path) -> None:
    done = command("restore", RUN, "--config", config, "--into", tmp_path / "into", "--no-workspace")
    assert done.code == 0, done.err
    assert (tmp_path / "into" / "transcript" / "note.txt").is_file()
    assert not (tmp_path / "into" / "workspace").exists()
    assert "workspace: it was left out, as was asked" in (tmp_path / "into" / "REPORT.md").read_text()


def test_nothing_is_said_of_a_workspace_that_was_not_saved(setup: Setup, note: Path, tmp_path: Path) -> None:
    archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=RUN)))
    done = restore(RUN, setup, into=tmp_path / "into", workspace=False)
    assert not any("workspace" in warning for warning in done.report.warnings)


def limited(setup: Setup, entries: int) -> Setup:
    workspace = setup.settings.workspace.model_copy(update={"entries": entries})
    return replace(setup, settings=setup.settings.model_copy(update={"workspace": workspace}))


def test_what_keeps_it_from_being_made_names_the_way_round(saved: Setup, tmp_path: Path) -> None:
    with pytest.raises(LimitExceededError) as caught:
        restore(RUN, limited(saved, 3), into=tmp_path / "into")
    assert "to hand over everything but the workspace: --no-workspace" in (caught.value.remedy or "")
    assert not (tmp_path / "into").exists()
    restore(RUN, limited(saved, 3), into=tmp_path / "into", workspace=False)
    assert (tmp_path / "into" / "checkpoint.json").is_file()


def test_it_is_not_fetched(
    s3_config: Path, note: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.bundles import part

    (folder / "z-large.bin").write_bytes(noise(25 << 20))
    setup = open_setup(load(s3_config), need="write")
    archive(Source(paths=(note,), workspace=folder), setup, options=Options(given=Given(run_id=RUN)))
    whole: list[object] = []
    monkeypatch.setattr(part, "fetch_whole", lambda *given: whole.append(given))
    restore(RUN, setup, into=tmp_path / "into", workspace=False)
    assert whole == []
    assert (tmp_path / "into" / "transcript" / "note.txt").is_file()


def test_a_clone_is_of_no_use_without_it(config: Path, tmp_path: Path) -> None:
    done = command("restore", RUN, "--config", config, "--no-workspace", "--repo", tmp_path)
    assert done.code == 2
    assert "--no-workspace leaves out" in done.err
    done = command("restore", RUN, "--config", config, "--no-workspace", "--only", "workspace/a")
    assert done.code == 2
    assert "does not go with --no-workspace" in done.err


def test_a_loop_goes_on_where_it_could_not_be_made_again(
    config: Path, folder: Path, tmp_path: Path, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on in its own folder, so the copy would be made for nothing."""
    monkeypatch.setenv("ARCHIVER_WORKSPACE__CAPTURE", "true")
    setup = reopen()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=setup) as run:
        run.checkpoint([{"role": "user", "content": "1"}], force=True)
        run.flush()
    with archiver.run("t", run_id=RUN, workspace=folder, policy="every-step", setup=limited(setup, 3)) as run:
        assert run.resumed
