"""The commands. Nothing heavier than typer is imported before a command runs."""

from __future__ import annotations

import sys


def main() -> None:
    """The `archiver` program."""
    _run("archiver", sys.argv[1:])


def restore_main() -> None:
    """The `restore` program: `archiver restore` under a name that is found at 3 a.m."""
    _run("restore", ["restore", *sys.argv[1:]])


def _run(name: str, arguments: list[str]) -> None:
    try:
        from archiver.cli.program import run

        code = run(name, arguments)
    except KeyboardInterrupt:  # while modules are imported, or a second one while the first was handled
        code = 130
    sys.exit(code)
