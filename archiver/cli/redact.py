"""`archiver redact`: redacted copies of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import ConfigOption, JsonOption, PacksOption, refuse_empty, settings_of, with_packs

if TYPE_CHECKING:
    from archiver.scan import Copied


def redact(
    paths: Annotated[
        list[str], typer.Argument(help="Files and folders to copy.", metavar="PATH", show_default=False)
    ],
    into: Annotated[Path, typer.Option("--into", help="Folder to write the copies to.", metavar="DIR")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write over files of DIR that have the name of a copy.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be copied and replaced.")
    ] = False,
    pack: PacksOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write redacted copies of files to a folder: a transcript for a bug report, say.

    Text, JSON and JSON lines stay what they are, byte for byte outside of what was replaced; the opaque
    fields of transcripts stay. A file that holds credentials and is no text has no copy, and is named. A
    name that holds a credential is replaced. Copies have mode 0600 and appear whole or not at all;
    nothing is written over unless asked, and no link is followed. Last comes redaction-receipt.json,
    so where it lies, everything is there. The key of the placeholders is random and forgotten.

    Rules and known values are those of a scan. What names somebody or something stays, but for what a --pack
    takes out. Look at a copy before you send it.

    Exits 0 when everything was copied or left out for a reason, else with the code of what went wrong.

    In a pipe each line has: copied (with --dry-run: would copy) or left out, name, reason.
    """
    from archiver import scan as room
    from archiver.cli import output, problems
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute
    from archiver.scan.loading import redactor_of

    refuse_empty(paths)
    settings = with_packs(settings_of(config), pack)
    with shown(as_json) as progress:
        progress.stage("read the rules")  # after a change they are compiled first, which takes seconds
        redactor = redactor_of(settings)
        copied = room.redact(
            paths, absolute(into), redactor, overwrite=overwrite, dry_run=dry_run, progress=progress
        )
    if as_json:
        output.document(_document(copied))
    else:
        _say(copied, into, dry_run)
    problems.report((str(one.error), one.error) for one in copied.problems)
    if copied.exit_code:
        raise typer.Exit(copied.exit_code)


def _say(copied: Copied, into: Path, dry_run: bool) -> None:
    from archiver.cli import output
    from archiver.cli.receipts import not_searched, rotate, table
    from archiver.cli.text import counted
    from archiver.scan.copying import RECEIPT

    if output.tty():
        would = "would be copied" if dry_run else "copied"
        output.line(f"{counted(len(copied.files), 'file')} {would} to {into}.")
        table(copied.receipt)
    else:
        for name in copied.files:
            output.row(("would copy" if dry_run else "copied", name, ""))
        for left in copied.receipt.left_out:
            output.row(("left out", left.member, left.reason))
    for left in copied.receipt.left_out:
        output.problem("warning", f"{left.member} was left out: {left.reason}", None, style="1;33")
    for one in copied.skipped:
        output.problem("note", f"{one.name} was passed over: {one.why}", None, style="1;33")
    not_searched(copied.receipt)
    rotate(copied.receipt)
    if output.tty() and copied.files and not dry_run:
        output.folded(
            "", f"Next: look at the copies before you send them. {RECEIPT} names rules and files; keep it."
        )


def _document(copied: Copied) -> dict[str, Any]:
    from archiver.cli.program import described
    from archiver.cli.receipts import rotations

    return {
        "copied": list(copied.files),
        "receipt": copied.receipt.document(),
        "rotate": rotations(copied.receipt),
        "passed_over": [{"name": one.name, "why": one.why} for one in copied.skipped],
        "errors": [{"name": one.name, **described(one.error)} for one in copied.problems],
        "exit_code": copied.exit_code,
    }
