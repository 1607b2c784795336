"""A store, keys and configuration of its own for every test, in a home without a trace of the developer's."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.config import load
from archiver.setup import Setup, initialise, open_setup


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_"))]:
        if name != "ARCHIVER_SHARED":
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the rules are compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def config(tmp_path: Path, home: Path) -> Path:
    """The configuration of a new store."""
    path = tmp_path / "archiver.toml"
    initialise(str(tmp_path / "store"), path, settings=load(), now=datetime.now(UTC))
    return path


@pytest.fixture
def setup(config: Path) -> Setup:
    return open_setup(load(config), need="write")


@pytest.fixture
def reopen(config: Path) -> Callable[[], Setup]:
    """Opens the store again, as another process would."""
    return lambda: open_setup(load(config), need="write")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """The smallest transcript: one line of text."""
    path = tmp_path / "note.txt"
    path.write_text("hello\n", encoding="utf-8")
    return path
