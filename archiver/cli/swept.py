"""What a sweep says at its end: a table and a few lines for people, a document for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver.cli import output
from archiver.cli.text import counted, number, size

if TYPE_CHECKING:
    from archiver.sweep.report import Report, Row, Tally

FEW = 5
"""Things of one kind that are said one by one."""
_COUNTS = ("found", "complete", "archived", "unchanged", "waiting", "refused", "failed")


def summary(report: Report) -> None:
    """At a terminal the table and what there is to know besides; in a pipe warnings alone."""
    for warning in report.warnings[:FEW]:
        output.problem("warning", warning, None, style="1;33")
    if len(report.warnings) > FEW:
        output.note(f"{number(len(report.warnings) - FEW)} more warnings: the log has those of runs.")
    if not output.tty():
        if report.stopped:
            output.note("Ended before it was through: the next sweep goes on.")
        return
    tallies = list(report.tallies.values())
    if tallies:
        shown = ("archived" if not report.dry_run else "to archive", *_COUNTS[3:])
        columns = ("SOURCE", *(name.upper() for name in (*_COUNTS[:2], *shown)))
        output.table(columns, [_cells(one) for one in tallies], fold=("SOURCE",))
    else:
        output.line("No source has any run.")
    _waiting(report)
    _stored(report)
    output.line(_total(report))


def _cells(tally: Tally) -> tuple[object, ...]:
    return (tally.source, *(getattr(tally, name) for name in _COUNTS))


def _waiting(report: Report) -> None:
    for row in report.waiting[:FEW]:
        output.folded("  waits: ", f"{row.run or row.key}: {row.why}")
    left = report.total().waiting - min(len(report.waiting), FEW)
    if left > 0:
        output.line(f"  and {counted(left, 'run')} more that wait; --dry-run shows each.")


def _stored(report: Report) -> None:
    """The spool, the classes, and runs that nobody writes to any more."""
    delivered = sum(one.delivered for one in report.delivered)
    left = sum(one.left for one in report.delivered) + report.waiting_spool
    if delivered or left:
        output.line(f"Spool: {counted(delivered, 'object')} delivered, {number(left)} waiting.")
    if report.sweeper:
        verb = "would get" if report.dry_run else "got"
        output.line(f"Retention: {counted(report.changes, 'object')} {verb} another class.")
    else:
        output.line(
            "Retention: not by this machine (retention.sweeper): whoever has the role of the sweeper does it."
        )
    if report.unfinished:
        shown = ", ".join(report.unfinished_names[:FEW])
        more = f" and {number(report.unfinished - FEW)} more" if report.unfinished > FEW else ""
        output.folded(
            "",
            f"{counted(report.unfinished, 'run')} in the store still running, though nobody has written for "
            f"a day: {shown}{more}. If one has died, `archiver restore RUN --claim` takes it up; `archiver "
            "show RUN` has its state.",
        )


def _total(report: Report) -> str:
    total = report.total()
    if report.dry_run:
        return f"{counted(total.archived, 'run')} would be archived; nothing was changed."
    text = (
        f"{counted(total.archived, 'run')} archived in {report.seconds:.1f} s: {size(report.read)} read, "
        f"{size(report.stored)} stored."
    )
    return f"{text} Ended before it was through: the next sweep goes on." if report.stopped else text


def document(report: Report) -> None:
    """One JSON document."""
    from archiver.cli.program import described

    total = report.total()
    output.document(
        {
            "sweep": report.sweep or None,
            "dry_run": report.dry_run,
            "sources": [
                {"source": one.source, **{name: getattr(one, name) for name in (*_COUNTS, "passed")}}
                for one in report.tallies.values()
            ],
            "total": {name: getattr(total, name) for name in (*_COUNTS, "passed")},
            "runs": [_run(row) for row in report.rows],
            "spool": {
                "delivered": sum(one.delivered for one in report.delivered),
                "waiting": sum(one.left for one in report.delivered) + report.waiting_spool,
                "forks": sum(one.forks for one in report.delivered),
            },
            "retention": {"sweeper": report.sweeper, "changed": report.changes},
            "unfinished": {"count": report.unfinished, "runs": report.unfinished_names},
            "bytes_read": report.read,
            "bytes_stored": report.stored,
            "seconds": round(report.seconds, 3),
            "stopped": report.stopped,
            "warnings": report.warnings,
            "errors": [{"where": where, **described(error)} for where, error in report.errors],
        }
    )


def _run(row: Row) -> dict[str, Any]:
    return {
        "what": row.what,
        "run": row.run or None,
        "seq": row.seq,
        "outcome": row.outcome or None,
        "kind": row.kind,
        "key": row.key,
        "why": row.why or None,
        "bytes": row.size,
        "seconds": round(row.seconds, 3),
    }
