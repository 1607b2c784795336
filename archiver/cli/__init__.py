"""The commands. Nothing heavier than typer is imported before a command runs."""

from __future__ import annotations


def main() -> None:
    """The `archiver` program."""
    from archiver.cli.app import app
    from archiver.cli.program import run

    run(app, "archiver")


def restore_main() -> None:
    """The `restore` program: `archiver restore` under a name that is found at 3 a.m."""
    from archiver.cli.app import restore_app
    from archiver.cli.program import run

    run(restore_app, "restore")
