"""`archiver check`: what is invalid about transcript files, without a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import JsonOption

if TYPE_CHECKING:
    from archiver.errors import ArchiverError
    from archiver.mending import Change, Checked, Finding

COLUMNS = ("FILE", "PLACE", "PROBLEM", "WHAT", "REPAIR")
INVALID = 4
UNSUPPORTED = 5
UNKNOWN = 2


def check(
    transcripts: Annotated[
        list[str],
        typer.Argument(
            help="Transcript files, or folders of one session each.",
            metavar="TRANSCRIPT",
            show_default=False,
        ),
    ],
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors alone; the exit code says the rest.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what makes transcripts invalid for their harness or provider.

    Needs no store, no keys and no configuration, and changes nothing. What a file is, its content decides;
    one of no known format is opaque, and nothing is checked. Sub-agent files are checked with their session.

    Exits 0 when all are valid, 4 when one is not, and with the code of the error when one could not be read
    (2) or was written by a newer release (5). Exits 2 as well when one is of no known format.

    In a pipe each line has: file, line or item, problem, what it is, and `mendable` or why it is not.
    """
    from archiver import mending
    from archiver.cli.options import refuse_empty
    from archiver.errors import ArchiverError

    refuse_empty(transcripts)
    checked: list[Checked] = []
    failed: list[tuple[str, ArchiverError]] = []
    for name in transcripts:
        try:
            checked.append(mending.check(Path(name)))
        except ArchiverError as error:
            failed.append((name, error))
    if as_json:
        from archiver.cli import output

        output.document(_document(checked, failed))
    elif not quiet:
        _say(checked)
    from archiver.cli import problems

    problems.report((str(error), error) for _, error in failed)
    raise typer.Exit(_code(checked, failed))


def _code(checked: list[Checked], failed: list[tuple[str, ArchiverError]]) -> int:
    codes = {one.code for each in checked for one in each.findings}
    if failed:
        return failed[0][1].exit_code
    if "unsupported_version" in codes:
        return UNSUPPORTED
    if codes:
        return INVALID
    return UNKNOWN if any(each.valid is None for each in checked) else 0


def _say(checked: list[Checked]) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted
    from archiver.transcripts.names import shown

    rows = [_row(one) for each in checked for one in each.findings]
    output.table(COLUMNS, rows, fold=("WHAT", "REPAIR"), middle=("FILE",))
    for each in checked:
        name = shown(each.path)
        if each.valid is None:
            output.note(f"{name}: of no known format, so nothing was checked")
        elif output.tty():
            state = counted(len(each.findings), "problem") if each.findings else "valid"
            output.line(f"{name}: {each.dialect}, {counted(each.items, 'item')}: {state}.")
    if output.tty() and any(one.reason is None for each in checked for one in each.findings):
        output.line("`archiver repair TRANSCRIPT` mends a copy.")


def _row(one: Finding) -> tuple[str, str, str, str, str]:
    from archiver.transcripts.names import shown

    what = f"{one.detail} ({one.call_id})" if one.call_id else one.detail
    return shown(one.file), place(one), one.code, what, one.reason or "mendable"


def place(one: Finding | Change) -> str:
    """The line, with the column of what cannot be read; the item where there are no lines."""
    if one.line is None:
        return "-" if one.item is None else f"item {one.item}"
    return f"line {one.line}" if one.column is None else f"line {one.line}, column {one.column}"


def _document(checked: list[Checked], failed: list[tuple[str, ArchiverError]]) -> dict[str, Any]:
    from archiver.cli.program import described
    from archiver.transcripts.names import shown

    return {
        "transcripts": [
            {
                "path": shown(each.path),
                "dialect": each.dialect,
                "files": each.files,
                "items": each.items,
                "valid": each.valid,
                "problems": [_problem(one) for one in each.findings],
            }
            for each in checked
        ],
        "errors": [{"path": shown(name), **described(error)} for name, error in failed],
        "exit_code": _code(checked, failed),
    }


def _problem(one: Finding) -> dict[str, Any]:
    from archiver.transcripts.names import shown

    return {
        "file": shown(one.file),
        "line": one.line,
        "column": one.column,
        "item": one.item,
        "code": one.code,
        "what": one.detail,
        "call_id": one.call_id,
        "mendable": one.reason is None,
        "reason": one.reason,
    }
