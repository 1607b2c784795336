"""A command run inside the test's own process: starting a program takes half a second of a processor."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from archiver import jsonio
from archiver.cli.program import run


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


def command(
    *arguments: object, terminal: bool = False, name: str = "archiver", columns: int = 100
) -> Outcome:
    """Run `archiver …`; `terminal=True` has all three streams be terminals."""
    streams = {stream: Stream(terminal) for stream in ("stdin", "stdout", "stderr")}
    with pytest.MonkeyPatch.context() as patched:
        for stream, replacement in streams.items():
            patched.setattr(sys, stream, replacement)
        patched.setenv("COLUMNS", str(columns))
        patched.setattr("signal.signal", lambda *_: None)
        code = run(name, [str(argument) for argument in arguments])
    return Outcome(code, streams["stdout"].getvalue(), streams["stderr"].getvalue())


def completed(words: str, name: str = "archiver") -> str:
    """What bash is told when somebody asks it to complete these words; nothing may be said beside it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(f"_{name.upper()}_COMPLETE", "complete_bash")
        patched.setenv("COMP_WORDS", words)
        patched.setenv("COMP_CWORD", str(words.count(" ")))
        done = command(*(["restore"] if name == "restore" else []), name=name)
    assert done.err == ""
    return done.out
