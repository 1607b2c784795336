"""What kill tests share: one cache of compiled rules, which every machine under test is made with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def rules(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled once for all test processes, and not found in the developer's home."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "kill-test-cache"))


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folders of a kill test are gone when it has ended."""
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    yield
    assert not list(own.iterdir())
