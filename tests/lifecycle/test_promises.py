"""What is promised, asked of many runs at once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import layout
from archiver.catalog import Catalog
from archiver.config import load
from archiver.lifecycle.bucket import Seen
from archiver.lifecycle.promises import Promises
from archiver.lifecycle.simulate import Version
from archiver.parallel import in_order
from archiver.retention import DAYS
from archiver.setup import open_setup

from .conftest import Command

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def bundle(run: str) -> Seen:
    name = layout.bundle_name(run, 1, "0" * 16)
    return Seen(name, Version(name, NOW, {"archiver-class": "success"}), "success")


def test_bundles_that_no_record_names_ask_for_one_list_of_all_runs(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("init", tmp_path / "store").code == 0
    Path("notes.txt").write_text("hello\n")
    assert command("archive", "notes.txt", "--run-id", "there", "--outcome", "failed").code == 0
    listed = []
    runs = Catalog.runs
    monkeypatch.setattr(Catalog, "runs", lambda self: listed.append(1) or runs(self))
    promises = Promises(open_setup(load(), "read"), DAYS)
    folders = [[bundle(f"orphan{number}")] for number in range(40)]
    found = [pair for folder in in_order(promises.of, folders, workers=4) for pair in folder]
    assert {promise.why for _, promise in found if promise} == {"class success"}
    assert len(found) == 40
    assert len(listed) == 1
    assert promises.remarks == []
