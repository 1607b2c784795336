"""`archiver verify`: is what the store holds whole and authentic?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.verify import Finding


_FEW = 3
"""Runs whose advice is said one by one."""


def verify(
    run: Annotated[
        str | None, typer.Argument(help="Only this run.", metavar="RUN", show_default=False)
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Open every bundle and check every member.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify signatures, chains and bundles.

    Whom an object is sealed to is compared with what was signed, for records and, with --deep, for bundles;
    what `rekey` changed is known by its notes. A run that is sealed to other recipients than the configured
    ones is mentioned.

    Exits 4 when something is damaged or missing, else with the code of what was refused.

    In a pipe each line has: ok or the error's name, object, run, number, what was found.
    """
    from archiver import verify as room
    from archiver.cli import output, problems
    from archiver.cli.progress import counted as counting
    from archiver.cli.progress import shown
    from archiver.cli.text import counted

    setup = open_for("read", config, store, identity, writers)
    told = _Told(as_json)
    if run is not None:
        with shown(as_json) as progress:
            for finding in room.verify(setup, run, deep=deep, progress=progress):
                told.add(finding)
    else:
        with counting("objects checked", as_json) as tick:
            for finding in room.verify(setup, deep=deep):
                tick()
                told.add(finding)
    broken = told.broken
    if as_json:
        output.document({"ok": not broken, "findings": told.documents})
    elif output.tty():
        for finding in told.notes:
            output.problem("note", f"{finding.object}: {finding.note}", None, style="1;33")
        _advise(told.advised)
        checked = counted(told.count, "object")
        output.line(f"{checked} checked, {len(broken) or 'none'} damaged or refused.")
    problems.report(
        (f"{finding.object}: {finding.error}", finding.error) for finding in broken if finding.error
    )
    if broken:
        codes = {finding.error.exit_code for finding in broken if finding.error}
        raise typer.Exit(4 if 4 in codes else max(codes))


class _Told:
    """What was found: in a pipe it is said at once, and kept only where it has to be said later."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.count = 0
        self.broken: list[Finding] = []
        self.notes: list[Finding] = []
        self.advised: list[Finding] = []
        self.documents: list[Any] = []

    def add(self, finding: Finding) -> None:
        from archiver import jsonio
        from archiver.cli import output

        self.count += finding.advice is None
        if finding.advice is not None:
            self.advised.append(finding)
        if finding.error is not None:
            self.broken.append(finding)
        elif finding.note.startswith("no record"):
            self.notes.append(finding)
        if self._as_json:
            document = _document(finding)
            self.documents.append(document if output.tty() else jsonio.held(document))
        elif not output.tty():
            output.row(_row(finding))


def _advise(advised: list[Finding]) -> None:
    """Say what should be done; once for all runs where it is more than a few."""
    from archiver.cli import output
    from archiver.cli.text import command, counted

    if len(advised) > _FEW:
        runs = f"{counted(len(advised), 'run')} have objects"
        text = f"{runs} that are sealed to other recipients than the configured ones"
        output.problem("note", text, "archiver rekey --all --dry-run", style="1;33")
        return
    for finding in advised:
        run = finding.run or ""
        next_step = command(f"archiver {finding.advice}", run, "--dry-run")
        output.problem("note", f"run {run}: {finding.note}", next_step, style="1;33")


def _row(finding: Finding) -> tuple[Any, ...]:
    verdict = type(finding.error).__name__ if finding.error else finding.state
    return verdict, finding.object, finding.run or "", finding.seq or "", finding.error or finding.note


def _document(finding: Finding) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "object": finding.object,
        "run": finding.run,
        "seq": finding.seq,
        "state": "error" if finding.error else finding.state,
        "note": finding.note,
        "advice": finding.advice,
        "error": described(finding.error) if finding.error else None,
    }
