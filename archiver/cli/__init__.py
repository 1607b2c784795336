"""The commands. Nothing heavier than typer is imported before a command runs."""

from __future__ import annotations

import sys

_HOOK = ["hook", "claude-code", "run"]
_HELP = {"--help", "-h"}


def main() -> None:
    """The `archiver` program."""
    _run("archiver", sys.argv[1:])


def restore_main() -> None:
    """The `restore` program: `archiver restore` under a name that is found at 3 a.m."""
    _run("restore", ["restore", *sys.argv[1:]])


def _run(name: str, arguments: list[str]) -> None:
    try:
        if arguments[:3] == _HOOK and _HELP.isdisjoint(
            arguments
        ):  # a harness waits: no time for a command line
            from archiver.hooks.calling import call

            sys.exit(call(arguments[3:]))
        from archiver.cli.program import run

        code = run(name, arguments)
    except KeyboardInterrupt:  # while modules are imported, or a second one while the first was handled
        code = 130
    sys.exit(code)
