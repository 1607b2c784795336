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

    Exits 4 when something is damaged or missing, else with the code of what was refused.

    In a pipe each line has: ok or the error's name, object, run, number, what was found.
    """
    from archiver import verify as room
    from archiver.cli import output, problems
    from archiver.cli.progress import shown
    from archiver.cli.text import counted

    setup = open_for("read", config, store, identity, writers)
    with shown(as_json) as progress:
        findings = list(room.verify(setup, run, deep=deep, progress=progress))
    broken = [finding for finding in findings if finding.error is not None]
    if as_json:
        output.document({"ok": not broken, "findings": [_document(finding) for finding in findings]})
    elif output.tty():
        for finding in findings:
            if finding.ok and finding.note.startswith("no record"):
                output.problem("note", f"{finding.object}: {finding.note}", None, style="1;33")
        checked = counted(len(findings), "object")
        output.line(f"{checked} checked, {len(broken) or 'none'} damaged or refused.")
    else:
        for finding in findings:
            output.row(_row(finding))
    problems.report(
        (f"{finding.object}: {finding.error}", finding.error) for finding in broken if finding.error
    )
    if broken:
        codes = {finding.error.exit_code for finding in broken if finding.error}
        raise typer.Exit(4 if 4 in codes else max(codes))


def _row(finding: Finding) -> tuple[Any, ...]:
    verdict = type(finding.error).__name__ if finding.error else "ok"
    return verdict, finding.object, finding.run or "", finding.seq or "", finding.error or finding.note


def _document(finding: Finding) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "object": finding.object,
        "run": finding.run,
        "seq": finding.seq,
        "note": finding.note,
        "error": described(finding.error) if finding.error else None,
    }
