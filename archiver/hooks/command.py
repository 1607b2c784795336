"""The command that a hook runs: the program by its whole path, and the configuration that was in force."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from archiver.errors import UsageError

WORDS = ("hook", "claude-code", "run")
_PROGRAM = "archiver"


def command(config: Path | None) -> str:
    """One line for a shell."""
    words = [str(program()), *WORDS]
    if config is not None:
        words += ["--config", str(config)]
    line = shlex.join(words)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            "the path of the program or of its configuration is not UTF-8, which a settings file must be",
            remedy="have the configuration where all names are UTF-8, and name that with --config",
        ) from error
    return line


def is_ours(text: str) -> bool:
    """Whether a command of a settings file is a hook of this program, wherever the program lay."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return len(words) > len(WORDS) and Path(words[0]).name == _PROGRAM and tuple(words[1:4]) == WORDS


def program() -> Path:
    """The program by a whole path; links stay, because an upgrade moves what they point to."""
    called = Path(sys.argv[0])
    beside = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(_PROGRAM)
    places = [called if called.name == _PROGRAM and called.parent != Path() else None, beside]
    for place in (*places, Path(found) if found else None):
        if place is not None and place.is_file() and os.access(place, os.X_OK):
            return Path(os.path.abspath(place))  # noqa: PTH100 - resolve() would follow links
    raise UsageError(
        "the program `archiver` is not found, so no hook can name it",
        remedy="install it (`pip install .`), and call it by its path",
    )
