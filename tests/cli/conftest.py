"""A scratch home, and commands run inside this process or as real programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inside
import pytest
from inside import Outcome

__all__ = ["Outcome"]

PROGRAM = "import sys; from archiver.cli import {}; sys.argv[0] = 'x'; {}()"


Command = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Path:
    """An empty home, with the working folder `work` in it."""
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_", "CLAUDE_", "CODEX_"))]:
        monkeypatch.delenv(name)
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PWD"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    (folder / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(folder / "work")
    return folder


@pytest.fixture
def command(home: Path) -> Command:
    """Run `archiver …` in this process; `terminal=True` has all three streams be terminals."""
    return inside.command


def start(*arguments: object, name: str = "main", **options: Any) -> subprocess.Popen[str]:
    """A real process that runs a program."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(name, name), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.fixture
def process(home: Path) -> Callable[..., subprocess.Popen[str]]:
    return start
