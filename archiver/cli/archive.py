"""`archiver archive`: save a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    OUTCOMES,
    ConfigOption,
    IdentityOption,
    JsonOption,
    Outcome,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.archive import Archived

_FEW = 5
"""Kinds of credentials that are said one by one."""


def archive(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of one run, the main one first; or one file of table rows (JSON or JSONL). "
            "Without a path: the newest session of this folder, of Claude Code or Codex.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", help="Id of the run; else the session's.", metavar="ID")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Id of the task; else the run's id.", metavar="ID")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Id of the user.", metavar="ID")] = None,
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help=f"How the run ended: {OUTCOMES}.", metavar="OUTCOME")
    ] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", help="What the run was doing.", metavar="TEXT")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", help="One line for whoever restores.", metavar="TEXT")
    ] = None,
    keep_full: Annotated[
        bool | None,
        typer.Option(
            "--keep-full/--no-keep-full", help="Also keep the whole redacted transcript.", show_default=False
        ),
    ] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Go on past damage in the middle of a transcript.")
    ] = False,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            help="Also save this folder, or the git work tree that it is in, as it is now.",
            metavar="DIR",
        ),
    ] = None,
    watch: Annotated[
        list[str] | None,
        typer.Option(
            "--watch",
            help="Remember the version of this resource, besides those in `freshness.watch`: https://…, "
            "s3://bucket/key, git+https://…#branch, file:path; repeatable.",
            metavar="RESOURCE",
        ),
    ] = None,
    without_kms: Annotated[
        bool,
        typer.Option(
            "--without-kms",
            help="While KMS gives no answer, seal to the other recipients alone, and mark it; `archiver "
            "rekey` seals to KMS later.",
        ),
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a run: redact, compact, seal and sign it.

    In a pipe each line has: run, number, outcome, stored bytes, credentials replaced.
    """
    from archiver import archive as room
    from archiver.cli import output
    from archiver.cli.progress import shown
    from archiver.config.paths import current_folder
    from archiver.sources.newest import newest_session

    _refuse_empty(run_id, task)
    files = _files(paths) if paths else (newest_session(current_folder()),)
    setup = replace(open_for("write", config, store, identity, writers, signing_key), without_kms=without_kms)
    given = room.Given(
        run_id=run_id,
        task_id=task,
        user_id=user if user is not None else setup.settings.archive.user,
        outcome=outcome,
        phase=phase,
        note=note,
    )
    options = room.Options(given=given, keep_full=keep_full, salvage=salvage, watch=tuple(watch or ()))
    with shown(as_json) as progress:
        if workspace is None and len(files) == 1 and room.looks_like_rows(files[0]):
            saved = room.archive_rows(files[0], setup, options=options, progress=progress)
        else:
            source = room.Source(paths=files, workspace=workspace)
            saved = [room.archive(source, setup, options=options, progress=progress)]
    for one in saved:
        for warning in one.warnings:
            output.problem("warning", warning, None, style="1;33")
    if as_json:
        output.document({"archived": [_document(one) for one in saved]})
    elif output.tty():
        for one in saved:
            _say(one)
    else:
        for one in saved:
            record = one.record
            output.row(
                (record.run, record.seq, record.outcome, record.sizes.stored, sum(record.findings.values()))
            )


def _refuse_empty(run_id: str | None, task: str | None) -> None:
    from archiver.errors import UsageError

    for flag, value in (("--run-id", run_id), ("--task", task)):
        if value == "":
            raise UsageError(f"{flag} is empty", remedy=f"give an id, or leave {flag} out")


def _files(paths: list[Path]) -> tuple[Path, ...]:
    """The files that are named: each can be looked at and is named once, whatever its spelling."""
    from archiver.config.paths import lookup
    from archiver.errors import InputNotFoundError, UsageError

    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        status = lookup(path)
        if status is None:
            raise InputNotFoundError(f"there is no file {path}", remedy="check the path of the transcript")
        before = seen.setdefault((status.st_dev, status.st_ino), path)
        if before is not path:
            raise UsageError(f"{before} and {path} are the same file", remedy="name every file once")
    return tuple(paths)


def _say(archived: Archived) -> None:
    from archiver.cli import output
    from archiver.cli.text import command, counts, size
    from archiver.rotation import lines

    record, sizes = archived.record, archived.record.sizes
    output.line(
        f"Saved run {record.run}, checkpoint {record.seq}: "
        f"{record.outcome}, {record.dialect}, turn {record.turn}."
    )
    output.line(f"  {size(sizes.raw)} read, {size(sizes.compacted)} packed, {size(sizes.stored)} stored")
    if record.findings:
        output.line(f"  Credentials replaced, rotate them: {counts(record.findings)}")
        for one in lines(archived.receipt.findings, _FEW):
            output.line(f"    - {one}")
    show, plan = command("archiver show", record.run), command("archiver restore", record.run, "--plan")
    output.line(f"  Next: {show}; {plan}")


def _document(archived: Archived) -> dict[str, Any]:
    return {
        "record": archived.record.document(),
        "receipt": archived.receipt.document(),
        "warnings": list(archived.warnings),
    }
