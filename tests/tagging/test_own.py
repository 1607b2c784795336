"""A writer that is its own sweeper: saves and the end of a loop leave classes as they should be."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import archiver
from archiver import layout
from archiver.archive import Given, Options, Source, archive
from archiver.setup import Setup
from tagging.conftest import bundle_tags


def test_a_save_shortens_what_it_supersedes(setup: Setup, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    told.write_text("hello\n")
    options = Options(given=Given(run_id="r"))
    for _ in range(8):  # the eighth, a power of two, looks at what the others have superseded
        assert set(bundle_tags(setup, "r")) <= {"live"}
        said = archive(Source((told,)), setup, options=options).warnings
        assert not any("class" in warning for warning in said)
    assert bundle_tags(setup, "r") == ["intermediate"] * 3 + ["live"] * 5
    failed = Options(given=Given(run_id="r", outcome="failed"))
    archive(Source((told,)), setup, options=options, tag=False)
    assert bundle_tags(setup, "r") == ["intermediate"] * 3 + ["live"] * 6
    archive(Source((told,)), setup, options=failed)
    assert bundle_tags(setup, "r") == ["intermediate"] * 5 + ["failure"] * 5


def test_what_goes_wrong_with_it_is_a_warning_of_the_save(setup: Setup, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    told.write_text("hello\n")
    options = Options(given=Given(run_id="r"))
    for _ in range(3):
        archive(Source((told,)), setup, options=options)
    (tmp_path / "store" / layout.record_name("r", 1)).write_bytes(b"damaged")
    *_, warning = archive(Source((told,)), setup, options=options).warnings
    assert "no class of run r was shortened" in warning


def test_the_end_of_a_loop(setup: Setup, config: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "archiver"),
        archiver.run("task", run_id="r", config=config, policy="every-step") as run,
    ):
        for number in range(20):
            run.step(f"step-{number}", lambda: number)  # noqa: B023
        run.finish("succeeded")
    assert caplog.messages == []
    found = bundle_tags(setup, "r")
    assert found[-5:] == ["success"] * 5
    assert len(found) > 5
    assert set(found[:-5]) == {"intermediate"}
