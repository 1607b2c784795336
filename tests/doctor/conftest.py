"""Checks of stores on real servers, in a home without a trace of the developer's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver.config import Settings, load
from archiver.doctor import Check, examine
from archiver.setup import fencing, initialise, keys
from archiver.setup.initialise import name_store
from archiver.setup.remote import store_options
from archiver.store import open_store

Examine = Callable[..., list[Check]]
Settle = Callable[..., Settings]
_RACERS, _ROUNDS = fencing.RACERS, fencing.ROUNDS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Path:
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def settle(tmp_path: Path) -> Settle:
    """Settings for a store, which is set up first unless `bare`."""

    def make(url: str, *, bare: bool = False, recipients: tuple[str, ...] = (), **store: Any) -> Settings:
        flags = {"store": {"url": url, **store}, "keys": {"recipients": recipients} if recipients else {}}
        settings = load(flags=flags, without_file=True)
        if not bare:
            initialise(url, None, settings=settings, now=datetime.now(UTC))
        return settings

    return make


@pytest.fixture
def settle_unproved(settle: Settle) -> Settle:
    """The same without the forty requests by which `init` proves a store."""

    def make(url: str, *, bare: bool = False, **more: Any) -> Settings:
        settings = settle(url, bare=True, **more)
        if not bare:
            keys.make_keys(keys.key_folder(), now=datetime.now(UTC))
            name_store(open_store(url, options=store_options(settings)))
        return settings

    return make


@pytest.fixture
def small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers race once: the whole race belongs where it is what is tested."""
    monkeypatch.setattr(fencing, "RACERS", 2)
    monkeypatch.setattr(fencing, "ROUNDS", 1)


@pytest.fixture
def whole_race(small_race: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "RACERS", _RACERS)
    monkeypatch.setattr(fencing, "ROUNDS", _ROUNDS)


def worst(looked: Iterable[Check]) -> dict[str, Check]:
    """What was found, by the name of the check; of several with one name the worst."""
    order = ["ok", "unknown", "warning", "failure"]
    found: dict[str, Check] = {}
    for check in looked:
        before = found.setdefault(check.name, check)
        if order.index(check.verdict) > order.index(before.verdict):
            found[check.name] = check
    return found


@pytest.fixture
def checked() -> Callable[..., dict[str, Check]]:
    """Look, and give what was found by name."""
    return lambda settings, **options: worst(examine(settings, **options))
