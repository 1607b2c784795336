"""`archiver migrate`: old checkpoints in today's schema, of a run or of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.migrating import Change


def migrate(
    run: Annotated[
        str | None, typer.Argument(help="Id of the run.", metavar="RUN", show_default=False)
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help="Documents in a file (JSON or JSON lines) instead of a run.", metavar="FILE"
        ),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", help="With --file: the new file to write.", metavar="FILE")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the steps and the difference.")
    ] = False,
    at: Annotated[
        int | None,
        typer.Option("--at", help="With --dry-run: number of the checkpoint.", metavar="SEQ", min=1),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring old checkpoints into today's schema.

    Works on a copy: the newest checkpoint of a run is saved anew under the next number, and the old one
    stays; the documents of a file are written to another file. A restore migrates by itself; this is for
    what is to outlive a release that reads the old version (`archiver list --schema '<2'` finds it).

    In a pipe a dry run prints the difference.
    """
    _check(run, file, into, at, dry_run)
    if file is not None:
        _file(file, into, dry_run=dry_run, as_json=as_json)
        return
    from archiver import migrating as room
    from archiver.cli import output
    from archiver.cli.progress import shown

    setup = open_for("read" if dry_run else "write", config, store, identity, writers, signing_key)
    if dry_run:
        with shown(as_json) as progress:
            record, change = room.of_run(run or "", setup, at=at, progress=progress)
        _show([change], as_json)
        if not as_json and not change.steps:
            output.line(_current(f"Checkpoint {record.seq} of run {record.run}", record.schema_version))
        return
    with shown(as_json) as progress:
        saved = room.save_run(run or "", setup, progress=progress)
    if as_json:
        output.document({"archived": None if saved is None else saved.record.document()})
    elif saved is None:
        output.line(f"Nothing to do: the newest checkpoint of run {run} has the current schema.")
    else:
        for warning in saved.warnings:
            output.problem("warning", warning, None, style="1;33")
        output.line(f"Saved run {saved.record.run} anew, as checkpoint {saved.record.seq}.")


def _check(run: str | None, file: Path | None, into: Path | None, at: int | None, dry_run: bool) -> None:
    from archiver.errors import UsageError

    if (run is None) == (file is None):
        raise UsageError("name a run, or a file with --file", remedy="`archiver migrate RUN --dry-run`")
    if file is not None and (into is None) != dry_run:
        raise UsageError(
            "the documents of a file are shown with --dry-run, or written with --into",
            remedy="give one of the two: the file itself is never changed",
        )
    if run is not None and into is not None:
        raise UsageError("--into is for --file", remedy="a run's checkpoint is saved under its next number")
    if at is not None and (file is not None or not dry_run):
        raise UsageError(
            "--at is for the dry run of a run",
            remedy="only the newest checkpoint is saved anew: an older one would become the newest",
        )


def _file(file: Path, into: Path | None, *, dry_run: bool, as_json: bool) -> None:
    from archiver import migrating as room
    from archiver.cli import output
    from archiver.cli.text import counted
    from archiver.config.paths import absolute, lookup

    if dry_run:
        _show(list(room.of_file(file)), as_json)
        return
    target = absolute(into or file)
    lookup(target)
    count, older = room.write_file(file, target)
    if as_json:
        output.document({"documents": count, "migrated": older, "into": str(target)})
    else:
        output.line(f"{counted(count, 'document')} written to {target}, {older} of them migrated.")


def _show(changes: list[Change], as_json: bool) -> None:
    from archiver.cli import output

    if as_json:
        output.document({"changes": [_document(change) for change in changes]})
        return
    for change in changes:
        for line in change.difference() if change.steps else ():
            output.line(line)
    steps = [step for change in changes for step in change.steps]
    if output.tty():
        migrated = sum(bool(change.steps) for change in changes)
        output.line(f"{migrated} of {len(changes)} would be migrated" + _named(steps) + ".")


def _named(steps: list[str]) -> str:
    return f" ({', '.join(dict.fromkeys(steps))})" if steps else ""


def _current(what: str, version: int) -> str:
    return f"{what} has the current schema, version {version}: nothing to migrate."


def _document(change: Change) -> dict[str, Any]:
    return {
        "where": change.where,
        "version": change.version,
        "steps": list(change.steps),
        "before": change.before,
        "after": change.after,
    }
