"""What kill tests share: one cache of compiled rules, which every machine under test is made with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.testing import Report
from archiver.testing.harness import play
from archiver.testing.lives import Lives, agent_of
from archiver.testing.points import read
from archiver.testing.stage import Stage, Terms

AGENTS = Path(__file__).parent / "agents.py"


@pytest.fixture(scope="session")
def cache(compiled_rules: Path) -> str:
    """What every machine gets a copy of, so nothing else lies there; and not the developer's."""
    return str(compiled_rules)


@pytest.fixture(autouse=True)
def rules(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)


@pytest.fixture(scope="session")
def lives(cache: str) -> Iterator[Lives]:
    """One process of all lives for all tests, as one call of `kill_at_random` has one for all rounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        with Lives() as lives:
            yield lives


@pytest.fixture
def killed(lives: Lives, tmp_path: Path) -> Callable[..., Report]:
    """`kill_at_random` of an agent (`path.py:function`, or one of `agents.py`), with any of its options."""

    def kill(agent: str, *points: str, times: int = 1, seed: int = 1, **terms: Any) -> Report:
        named = agent_of(agent if ":" in agent else f"{AGENTS}:{agent}")
        folder = tmp_path / f"kills-{len(list(tmp_path.iterdir()))}"
        stage = Stage(Terms(named, **terms), lives, folder)
        report = play(stage, [read(text) for text in points], times, seed, print)
        print(report)
        return report

    return kill


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folders of a kill test are gone when it has ended."""
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    yield
    assert not list(own.iterdir())
