"""`archiver repair`: a mended copy of a transcript, without a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import JsonOption

if TYPE_CHECKING:
    from archiver.mending import Change, Mended

COLUMNS = ("FILE", "PLACE", "PROBLEM", "DONE", "WHAT")
LEFT = 4
UNKNOWN = 2


def repair(
    transcript: Annotated[
        str,
        typer.Argument(
            help="A transcript file, or the folder of one session.", metavar="TRANSCRIPT", show_default=False
        ),
    ],
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", help="New folder for the mended files; NAME.repaired if left out.", metavar="DIR"
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="Put them where the originals are, which are kept as FILE.orig."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Mend what makes a transcript invalid, on a copy.

    Needs no store, no keys and no configuration. All that is done is said; lines without a change stay byte
    for byte, and nothing is written where there is nothing to mend. A call whose result is nowhere in the
    transcript gets an error that says so, never a made-up result. Repairing twice changes nothing.

    Exits 0 when the transcript is valid now, 4 when something is left that nobody can mend, and 2 when it is
    of no known format, so that nothing was looked for.

    In a pipe each line has: file, line or item, problem, what was done (`left`: nothing), and what it is.
    """
    from archiver import mending
    from archiver.cli.options import refuse_empty
    from archiver.errors import UsageError

    refuse_empty([transcript])
    if in_place and into is not None:
        raise UsageError("--in-place writes where the originals are", remedy="leave out --into or --in-place")
    result = mending.mend(Path(transcript), into=into, in_place=in_place, dry_run=dry_run)
    if as_json:
        from archiver.cli import output

        output.document(_document(result, dry_run=dry_run))
    else:
        _say(result, dry_run=dry_run)
    raise typer.Exit({True: 0, False: LEFT, None: UNKNOWN}[result.valid])


def _say(result: Mended, *, dry_run: bool) -> None:
    from archiver.cli import output
    from archiver.cli.check import place
    from archiver.transcripts.names import shown

    told = (*result.actions, *result.left)
    rows = [(one.part, place(one), one.code, one.action, one.detail) for one in told]
    output.table(COLUMNS, rows, fold=("WHAT",), middle=("FILE",))
    if result.valid is None:
        output.note(f"{shown(result.path)}: of no known format, so nothing was looked for")
    elif result.valid and not result.actions:
        output.note(f"{shown(result.path)} is valid: nothing was written.")
    elif not result.actions:
        output.note("Nothing was written: there is nothing that can be mended.")
    elif dry_run:
        output.note("Nothing was written: this was a dry run.")
    for path in result.written:
        output.note(f"Written: {shown(path)}")
    for path in result.backups:
        output.note(f"The original: {shown(path)}")


def _document(result: Mended, *, dry_run: bool) -> dict[str, Any]:
    from archiver.transcripts.names import shown

    return {
        "path": shown(result.path),
        "dialect": result.dialect,
        "valid": result.valid,
        "dry_run": dry_run,
        "actions": [_action(one) for one in result.actions],
        "left": [_action(one) for one in result.left],
        "folder": None if result.folder is None else shown(result.folder),
        "written": [shown(path) for path in result.written],
        "backups": [shown(path) for path in result.backups],
    }


def _action(one: Change) -> dict[str, Any]:
    return {
        "file": one.part,
        "line": one.line,
        "column": one.column,
        "item": one.item,
        "code": one.code,
        "action": one.action,
        "detail": one.detail,
        "call_id": one.call_id,
    }
