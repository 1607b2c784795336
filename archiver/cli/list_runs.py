"""`archiver list`: the newest checkpoint of each run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    OUTCOMES,
    ConfigOption,
    IdentityOption,
    JsonOption,
    Outcome,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.catalog import Head
    from archiver.model import Record


def list_runs(
    task: Annotated[str | None, typer.Option("--task", help="Only runs of this task.", metavar="ID")] = None,
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help=f"Only runs that are {OUTCOMES}.", metavar="OUTCOME")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help="Only runs saved since then: `2026-03-01`, a full time, or `7d`.", metavar="TIME"
        ),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest checkpoint of each run.

    In a pipe each line has: run, number, saved at, outcome, task, stored bytes, credentials replaced, phase,
    note. A run whose record cannot be read is listed with its error, whatever is asked for.
    """
    from archiver.catalog import Catalog
    from archiver.cli import output, problems
    from archiver.cli.program import described

    start = _moment(since) if since else None
    setup = open_for("read", config, store, identity, writers)
    heads = [head for head in Catalog(setup).heads() if _wanted(head, task, outcome, start)]
    heads.sort(key=_order)
    broken = [head for head in heads if head.error is not None]
    if as_json:
        output.document(
            {
                "runs": [head.record.document() for head in heads if head.record],
                "errors": [{"run": h.run, "seq": h.seq, **described(h.error)} for h in broken if h.error],
            }
        )
    else:
        output.table(_COLUMNS, [_row(head) for head in heads], cut=("TASK", "PHASE", "NOTE"), middle=("RUN",))
        if output.tty() and not heads:
            output.line("No runs." if start is None and not task and not outcome else "No such runs.")
    problems.report((f"run {h.run}, record {h.seq}: {h.error}", h.error) for h in broken if h.error)
    if broken:
        raise typer.Exit(max(head.error.exit_code for head in broken if head.error))


_COLUMNS = ("RUN", "NO", "SAVED (UTC)", "OUTCOME", "TASK", "STORED", "FOUND", "PHASE", "NOTE")


def _wanted(head: Head, task: str | None, outcome: str | None, start: datetime | None) -> bool:
    record = head.record
    return record is None or (
        (task is None or record.task == task)
        and (outcome is None or record.outcome == outcome)
        and (start is None or record.recorded_at >= start)
    )


def _order(head: Head) -> tuple[float, str]:
    """Newest first; what cannot be read before all."""
    return (-head.record.recorded_at.timestamp() if head.record else float("-inf"), head.run)


def _row(head: Head) -> tuple[Any, ...]:
    if head.record is None:
        return (head.run, head.seq, "", f"error: {type(head.error).__name__}", "", "", "", "", "")
    return _record_row(head.record)


def _record_row(record: Record) -> tuple[Any, ...]:
    from archiver.cli import output
    from archiver.cli.text import moment, size
    from archiver.model import utc_text

    people = output.tty()
    return (
        record.run,
        record.seq,
        moment(record.recorded_at) if people else utc_text(record.recorded_at),
        record.outcome,
        "" if people and record.task == record.run else record.task,
        size(record.sizes.stored) if people else record.sizes.stored,
        (sum(record.findings.values()) or "") if people else sum(record.findings.values()),
        record.phase,
        record.note,
    )


def _moment(text: str) -> datetime:
    """A date, a time (without a zone: UTC), or a length of time before now."""
    from archiver.config.values import duration
    from archiver.errors import UsageError

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            return datetime.now(UTC) - duration(text)
        except ValueError as error:
            raise UsageError(
                f"--since {text!r} is neither a time nor a length of time",
                remedy="write it as 2026-03-01, 2026-03-01T12:00:00Z, 7d or 36h",
            ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
