"""What a sweep says at its end: a table and a few lines for people, a document for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from archiver.cli import output
from archiver.cli.text import counted, number, size

if TYPE_CHECKING:
    from archiver.sweep.report import Report, Row, Tally

FEW = 5
"""Things of one kind that are said one by one."""
_WORDS: Final = {"would-archive": "to archive", "waiting": "waits", "passed": "passed over"}
"""What becomes of a run, where its name alone does not say it."""


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
    from archiver.sweep.report import COUNTS

    tallies = list(report.tallies.values())
    if tallies:
        columns = ("SOURCE", *(_column(name, report) for name in COUNTS))
        output.table(columns, [_cells(one) for one in tallies], fold=("SOURCE",))
    else:
        output.line("No source has any run.")
    if report.dry_run:
        _each(report)
    else:
        _waiting(report)
    _stored(report)
    output.line(_total(report))


def _column(name: str, report: Report) -> str:
    return "TO ARCHIVE" if report.dry_run and name == "archived" else name.replace("_", " ").upper()


def _cells(tally: Tally) -> tuple[object, ...]:
    from archiver.sweep.report import COUNTS

    return (tally.source, *(getattr(tally, name) for name in COUNTS))


def _each(report: Report) -> None:
    """Of a dry run each run of which something would come or that waits; errors are said by themselves."""
    for row in report.rows:
        if row.what != "unchanged" and row.error is None:
            outcome = f" as {row.outcome}" if row.outcome else ""
            said = f"{row.run or row.key}{outcome}: {row.why}"
            output.folded(f"  {_WORDS.get(row.what, row.what.replace('-', ' '))}: ", said)


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
    if report.changes:
        verb = "would get" if report.dry_run else "got"
        output.line(f"Retention: {counted(report.changes, 'object')} {verb} another class.")
    elif not report.sweeper:
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
    from archiver.sweep.report import COUNTS

    total = report.total()
    output.document(
        {
            "sweep": report.sweep or None,
            "dry_run": report.dry_run,
            "sources": [
                {"source": kind, "path": path, **{name: getattr(one, name) for name in COUNTS}}
                for one in report.tallies.values()
                for kind, _, path in (one.source.partition(" "),)
            ],
            "total": {name: getattr(total, name) for name in COUNTS},
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
        "event": row.what,
        "run": row.run or None,
        "source": row.kind,
        "path": row.key,
        "seq": row.seq,
        "outcome": row.outcome or None,
        "why": row.why or None,
        "bytes": row.size if row.what != "would-archive" else None,
        "seconds": round(row.seconds, 3),
    }
