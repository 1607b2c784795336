"""`archiver expire`: remove what has expired from a folder."""

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
    from collections.abc import Iterable, Sequence

    from archiver.expiring import Done, Expired, Plan


def expire(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it; else it is only shown.")] = False,
    now_is_right: Annotated[
        bool,
        typer.Option(
            "--now-is-right",
            help="With --yes: the clock is right, though the newest object is old, or later than it.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show it, as without --yes.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove what has expired from a store in a folder.

    Does what lifecycle rules do in a bucket, by the same classes and days; without --yes it only shows what
    would go, and why. Classes are settled first. Nothing on hold and nothing without a class is removed.
    Where the clock of this machine seems to be wrong by the newest object of the store, it refuses. It can be
    interrupted at any point and run again.

    In a pipe each line has: object, run, bytes, class, expired since, why.
    """
    from archiver import expiring
    from archiver.cli.progress import counted
    from archiver.errors import UsageError

    if now_is_right and not yes:
        raise UsageError("--now-is-right belongs to --yes", remedy="leave it out, or add --yes")
    setup = open_for("read", config, store, identity, writers)
    if dry_run or not yes:
        with counted("runs looked at", as_json) as tick:
            found = expiring.plan(setup, tick=tick)
        _planned(found, as_json)
        return
    with counted("objects removed", as_json) as tick:
        done = expiring.expire(setup, now_is_right=now_is_right, tick=tick)
    _done(done, as_json)


def _planned(found: Plan, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted

    _warn((*found.warnings, *((found.doubt,) if found.doubt else ())))
    if as_json:
        extra = {"kept": found.kept, "clock": found.doubt or None}
        output.document(_document(found.expired, found.warnings, dry_run=True, **extra))
        return
    _rows(found.expired)
    if output.tty():
        output.line(f"{_total(found.expired)} would be removed, {counted(found.kept, 'object')} stay.")
        if found.expired:
            output.line("next: archiver expire --yes")


def _done(done: Done, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted

    _warn(done.warnings)
    if as_json:
        output.document(_document(done.removed, done.warnings, dry_run=False, changed=list(done.kept)))
        return
    _rows(done.removed)
    if output.tty():
        changed = f"; {counted(len(done.kept), 'object')} stay: their class was changed" if done.kept else ""
        output.line(f"{_total(done.removed)} removed{changed}.")


def _warn(warnings: Iterable[str]) -> None:
    from archiver.cli import output

    for one in warnings:
        output.problem("warning", one, None, style="1;33")


def _rows(expired: Sequence[Expired]) -> None:
    from archiver.cli import output
    from archiver.cli.text import size
    from archiver.model import utc_text

    people = output.tty()
    columns = ("OBJECT", "RUN", "SIZE", "CLASS", "EXPIRED", "WHY")
    rows = [
        (
            one.name,
            one.run,
            size(one.size) if people else one.size,
            one.retention,
            one.since.date().isoformat() if people else utc_text(one.since),
            one.why,
        )
        for one in expired
    ]
    if rows:
        output.table(columns, rows, middle=("OBJECT", "RUN"))


def _total(expired: Sequence[Expired]) -> str:
    from archiver.cli.text import counted, size
    from archiver.expiring import totals

    parts = [f"{count} {name} ({size(sizes)})" for name, (count, sizes) in totals(expired).items()]
    return f"{counted(len(expired), 'object')}{': ' if parts else ''}{', '.join(parts)}"


def _document(
    expired: Sequence[Expired], warnings: Sequence[str], *, dry_run: bool, **more: Any
) -> dict[str, Any]:
    from archiver.expiring import totals
    from archiver.model import utc_text

    return {
        "dry_run": dry_run,
        "objects": len(expired),
        "bytes": sum(one.size for one in expired),
        "classes": {name: {"objects": n, "bytes": size} for name, (n, size) in totals(expired).items()},
        "expired": [
            {
                "object": one.name,
                "run": one.run,
                "bytes": one.size,
                "class": one.retention,
                "since": utc_text(one.since),
                "why": one.why,
            }
            for one in expired
        ],
        "warnings": list(warnings),
        **more,
    }
