"""A scratch home, and commands run inside this process or as real programs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archiver import jsonio
from archiver.cli.program import run

PROGRAM = "import sys; from archiver.cli import {}; sys.argv[0] = 'x'; {}()"


@dataclass(frozen=True)
class Outcome:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return jsonio.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


class Stream(io.StringIO):
    """A standard stream that is, or is not, a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def reconfigure(self, **options: str) -> None:
        """Nothing to do for text in memory."""


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
def command(home: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `archiver …` in this process; `terminal=True` has all three streams be terminals."""

    def call(
        *arguments: object, terminal: bool = False, name: str = "archiver", columns: int = 100
    ) -> Outcome:
        streams = {stream: Stream(terminal) for stream in ("stdin", "stdout", "stderr")}
        with monkeypatch.context() as patched:
            for stream, replacement in streams.items():
                patched.setattr(sys, stream, replacement)
            patched.setenv("COLUMNS", str(columns))
            patched.setattr("signal.signal", lambda *_: None)
            code = run(name, [str(argument) for argument in arguments])
        return Outcome(code, streams["stdout"].getvalue(), streams["stderr"].getvalue())

    return call


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
