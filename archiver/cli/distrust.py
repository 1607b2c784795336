"""`archiver verify --distrust`: what would be lost, and the lines that would do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from datetime import datetime

    from archiver.distrust import Loss
    from archiver.setup import Setup


def show(setup: Setup, name: str, since: datetime, run: str | None, as_json: bool) -> None:
    """Say what each run would lose; exits 3 if one would, else with the code of what is wrong already."""
    from archiver import distrust
    from archiver.cli import output, problems
    from archiver.cli.progress import counted

    key = setup.writers.key_of(name)
    found: list[Loss] = []
    with counted("runs that would lose records", as_json) as tick:
        for loss in distrust.losses(setup, key, since, run):
            tick()
            found.append(loss)
            if not as_json and not output.tty():
                output.row(_row(loss))
    lines = setup.writers.distrusting(key, since).entries(key)
    if as_json:
        output.document(_document(key, since, found, lines))
    else:
        _say(setup, key, since, found, lines)
    problems.report((f"run {loss.run}: {loss.error}", loss.error) for loss in found if loss.error)
    codes = [loss.error.exit_code for loss in found if loss.error]
    if any(loss.records for loss in found) or codes:
        raise typer.Exit(3 if any(loss.records for loss in found) else max(codes))


def _say(setup: Setup, key: str, since: datetime, found: list[Loss], lines: str) -> None:
    """At a terminal the runs; everywhere the lines, which are not part of what a pipe reads."""
    from archiver.cli import output
    from archiver.cli.text import counted
    from archiver.model import utc_text

    lost = [loss for loss in found if loss.records]
    if output.tty():
        for loss in lost:
            for line in _words(loss):
                output.line(line)
        runs = f"{counted(len(lost), 'run')} would lose records" if lost else "No run would lose a record"
        output.line(f"{runs} if {key} were distrusted after {utc_text(since)}.")
    where = setup.writers.source or "a list of writers (keys.writers)"
    output.note(f"To distrust it, have these lines in {where} in the place of those about this key:")
    for line in lines.splitlines():
        output.note(line)


def _words(loss: Loss) -> tuple[str, str]:
    from archiver.cli.text import counted
    from archiver.model import utc_text

    records = counted(loss.records, "record")
    at = f", written at {utc_text(loss.written)}" if loss.written else ""
    scope = f"and with them all from number {loss.first} of {loss.newest} on"
    return (
        f"run {loss.run}: {records} by this key, {scope}{at}",
        f"    {loss.command or 'no checkpoint before is whole: nothing of it could be restored'}",
    )


def _row(loss: Loss) -> tuple[Any, ...]:
    return (
        *(loss.run, loss.records, loss.first or "", loss.newest or "", loss.left or ""),
        *(loss.command or "", loss.error or ""),
    )


def _document(key: str, since: datetime, found: list[Loss], lines: str) -> dict[str, Any]:
    from archiver.cli.program import described
    from archiver.model import utc_text

    runs = [
        {
            "run": loss.run,
            "records": loss.records,
            "first": loss.first,
            "written": utc_text(loss.written) if loss.written else None,
            "newest": loss.newest,
            "left": loss.left,
            "command": loss.command,
        }
        for loss in found
        if loss.records
    ]
    errors = [{"run": loss.run, **described(loss.error)} for loss in found if loss.error]
    return {"key": key, "since": utc_text(since), "runs": runs, "errors": errors, "writers": lines}
