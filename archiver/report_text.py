"""The report of a restore as Markdown: what was restored, what was checked, what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.model import Checkpoint
from archiver.model.base import utc_text
from archiver.model.report import RestoreReport
from archiver.rotation import by_rank
from archiver.safetext import one_line


def markdown(report: RestoreReport, checkpoint: Checkpoint) -> str:
    """The text of `REPORT.md`; whatever came from the run is escaped, so that it stays inert."""
    record = report.record
    lines = [
        f"# Checkpoint {report.seq} of run {_inert(report.run)}",
        "",
        *_table(
            ("Task", record.task),
            ("Objective", record.objective),
            ("Outcome", record.outcome),
            ("Phase", record.phase),
            ("Note", record.note),
            ("State of", utc_text(record.checkpoint_at)),
            ("Saved", utc_text(record.recorded_at)),
            ("Turn", str(record.turn)),
            ("Signed by", report.writer),
            ("Chain", f"{report.chain}, newest is number {report.newest}"),
            ("Rollback", report.rollback),
            ("Written by", record.software),
        ),
    ]
    lines += _section(
        "Freshness", (f"{v.probe}: {v.state}{_accepted(v.accepted)}. {v.evidence}" for v in report.freshness)
    )
    lines += _section("Warnings", report.warnings)
    lines += _section("Migrated", report.migrations)
    lines += _section(
        "Repaired (the transcript as it was saved is in `original/`)",
        (f"{r.part}, item {r.item}: {r.code}: {r.action}. {r.detail}" for r in report.repairs),
    )
    lines += _section("Left out", report.left_out)
    lines += _section(
        "Hold placeholders of credentials: never use these as values",
        (f"{place} of state.json" for place in report.redacted),
    )
    lines += _section(
        "Credentials replaced: rotate these",
        report.rotate or (f"{rule}: {count} places" for rule, count in by_rank(report.findings)),
    )
    done = [f"{step.id}: {step.title}" for step in checkpoint.plan.completed]
    lines += _section(
        "Done", [*done, *(f"{result.key} (its output is recorded)" for result in checkpoint.results)]
    )
    lines += _section("Left to do", (f"{step.id}: {step.title}" for step in checkpoint.plan.remaining))
    if checkpoint.summary:
        lines += [
            "",
            "## Summary",
            "",
            *(f"    {one_line(line)}" for line in checkpoint.summary.splitlines()),
        ]
    if report.next_steps:
        # As code, because commands are copied out of it, also from the bare text of the file.
        lines += ["", "## Next", "", *(f"    {one_line(step)}" for step in report.next_steps)]
    return "\n".join(lines) + "\n"


def _table(*rows: tuple[str, str]) -> list[str]:
    shown = [f"| {name} | {_inert(value)} |" for name, value in rows if value]
    return ["| | |", "|---|---|", *shown]


def _section(title: str, rows: Iterable[str]) -> list[str]:
    shown = [f"- {_inert(row)}" for row in rows]
    return ["", f"## {title}", "", *shown] if shown else []


def _accepted(accepted: bool) -> str:
    return " (accepted)" if accepted else ""


def _inert(text: str) -> str:
    """One line in which neither control characters nor Markdown, HTML or links mean anything."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|!~" else c for c in one_line(text))
