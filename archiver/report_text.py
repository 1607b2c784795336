"""The report of a restore as Markdown, for who has never seen the run: the verdict first, commands last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from archiver.model import Budget, Checkpoint, Spend
from archiver.model.base import utc_text
from archiver.model.report import OpenEffect, RestoreReport
from archiver.rotation import by_rank
from archiver.safetext import one_line, shorten
from archiver.shellwords import command, word

MOST_ROWS = 200
"""Rows of one section; `report.json` and the other files have all of them."""
_HOW_TO_DECIDE = (
    "Look in the system that each of these acts on. Then restore again with what you found, and why you "
    "know. One command decides on all of them and takes the run over:"
)
_OUTCOME = "For each `OUTCOME` put `done` or `not-done`."
_TOO_MANY = (
    "There are too many of them for one command: `resume(check=...)` of the library asks a function of yours "
    "about each, and `report.json` lists them."
)
_LONGEST_COMMAND = 100_000
"""Characters of a command; systems take no more words than they have room for."""
_EFFECTS = "effects"
"""The word with which they were accepted for this restore; to decide on them needs it no more."""
_LONGEST = 20_000
"""Characters of one row."""
_ALIVE = re.compile(r"[\\`*\[\]<>|~]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)|&(?=[#A-Za-z])|^#|#(?=[0-9])")
"""What means something in Markdown where it stands: `_` inside of a word and a lonely `&` do not."""
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""What some readers of Markdown make a link of without being asked."""
_MOST_LINES = 400
"""Lines of the summary."""


def markdown(report: RestoreReport, checkpoint: Checkpoint) -> str:
    """The text of `REPORT.md`; whatever came from the run is escaped, so that it stays inert."""
    lines = [f"# Checkpoint {report.seq} of run {_inert(report.run)}", "", f"**{_inert(verdict(report))}**"]
    lines += _section("What is lost", report.lost)
    lines += _open(report)
    lines += _section("Decided", _decisions(report))
    lines += _section("Warnings", report.warnings)
    lines += _freshness(report)
    lines += ["", "## The checkpoint", "", *_facts(report)]
    lines += _section(
        "Done",
        (
            *(f"{step.id}: {step.title}" for step in checkpoint.plan.completed),
            *(f"{result.key} (its output is recorded)" for result in checkpoint.results),
            *(
                f"{one.tool}: {one.key} (it happened)"
                for one in checkpoint.effects
                if one.status == "confirmed"
            ),
        ),
    )
    lines += _section("Left to do", (f"{step.id}: {step.title}" for step in checkpoint.plan.remaining))
    lines += _section(
        "Waits for a person",
        (f"{one.id}: {one.question}" for one in checkpoint.plan.pending_approvals),
    )
    lines += _summary(checkpoint)
    lines += _section("Budget left", budget_left(checkpoint.budget, checkpoint.spend))
    lines += _section("Migrated", report.migrations)
    lines += _section(
        "Repaired (the transcript as it was saved is in `original/transcript/`)",
        (f"{r.part}, item {r.item}: {r.code}: {r.action}. {r.detail}" for r in report.repairs),
    )
    lines += _section("Left out", report.left_out)
    lines += _section(
        "Hold placeholders of credentials: never use these as values",
        (f"{place} of checkpoint.json" for place in report.redacted),
    )
    lines += _section(
        "Credentials replaced: rotate these",
        (
            *(report.rotate or (f"{rule}: {count} places" for rule, count in by_rank(report.findings))),
            *(f"replaced earlier in this run: {one}" for one in report.replaced_before),
        ),
    )
    if report.next_steps:
        # As code, because commands are copied out of it, also from the bare text of the file.
        lines += ["", "## Next", "", *map(_code, report.next_steps)]
    return "\n".join(lines) + "\n"


def verdict(report: RestoreReport) -> str:
    """Whether the run can go on, and who can go on with it, in a few sentences."""
    over = ["The run has succeeded: nobody has to go on with it."] if _succeeded(report) else []
    said = [_whether(report), *over, *_waiting(report)]
    if report.lost:
        said.append("Something is lost, see below.")
    said.append(_who(report))
    return " ".join(said)


def _succeeded(report: RestoreReport) -> bool:
    return report.record.outcome == "succeeded" and report.record.seq == report.newest


def _whether(report: RestoreReport) -> str:
    if report.undecided:
        count = len({effect.key for effect in report.undecided})
        effects = "one effect" if count == 1 else f"{count} effects"
        return f"Do not go on yet: nobody knows whether {effects} happened, see below."
    unsure = unsure_of(report)
    if report.accepted:
        said = f"Verified, and handed over although somebody had to accept: {', '.join(report.accepted)}."
        return f"{said} Not sure besides: {unsure}." if unsure else said
    if unsure:
        return f"Verified, but not sure is: {unsure}. Nothing else stands against going on."
    return "Verified, and nothing stands against going on."


def unsure_of(report: RestoreReport) -> str:
    """The probes that are not FRESH and that nobody accepted, each with its verdict."""
    return ", ".join(
        f"{one.probe} ({one.state})" for one in report.freshness if one.state != "FRESH" and not one.accepted
    )


def _waiting(report: RestoreReport) -> Iterator[str]:
    count = len(report.record.plan.pending_approvals)
    if count:
        questions = "One question waits" if count == 1 else f"{count} questions wait"
        yield f"{questions} for a person, see below."


def _who(report: RestoreReport) -> str:
    """Who can go on with the run, as its newest record says."""
    if report.claimed is not None:
        return f"The run was taken over with record {report.claimed}: no older writer can go on with it."
    if report.may_go_on is None:
        return "What came later cannot be read: whether somebody took the run over since is not known."
    last = report.taken_over[-1] if report.taken_over else None
    if last is None:
        if report.may_go_on:
            return (
                "The run was not taken over: the own key wrote its newest record, and can still write to it."
            )
        return "The run was not taken over: whoever wrote it before can still go on with it."
    taken = f"The run was taken over with record {last.seq} on {utc_text(last.at)} by {last.writer}"
    if report.may_go_on:
        return f"{taken}{', with the own key' if last.own else ''}: the own key can go on with it."
    return f"{taken}: only that writer can go on with it, until somebody takes it over with `--claim`."


def _open(report: RestoreReport) -> list[str]:
    """Each effect that has to be decided on, and the command that does it for all of them."""
    if not report.undecided:
        return []
    lines = [
        "",
        "## Decide before you go on",
        "",
        *(f"- {_inert(_about(effect))}" for effect in islice(report.undecided, MOST_ROWS)),
        *_more(len(report.undecided)),
        "",
        _HOW_TO_DECIDE,
    ]
    flags = list(dict.fromkeys(effect.resolve for effect in report.undecided))
    outcomes = ("done", "not-done") if len(flags) == 1 else ("OUTCOME",)
    commands = [_decide(report, flags, outcome) for outcome in outcomes]
    if len(commands[0]) > _LONGEST_COMMAND:
        return [*lines[:-1], _TOO_MANY]
    lines += ["", *(_code(f"  {one}") for one in commands)]
    return lines if len(flags) == 1 else [*lines, "", _OUTCOME]


def _about(effect: OpenEffect) -> str:
    at = f" since {utc_text(effect.at)}" if effect.at else ""
    answer = f"; the answer so far: {effect.result}" if effect.result else ""
    status = effect.status.replace("_", " ")
    return f"{effect.key}: {effect.tool} with {effect.arguments}, {status}{at}{answer}"


def _decide(report: RestoreReport, flags: Iterable[str], outcome: str) -> str:
    words = (
        *((f"--into {word(f'{report.folder}-decided')}",) if report.folder else ()),
        f"--at {report.seq}",
        *(f"--accept {word(one)}" for one in report.accepted if one != _EFFECTS),
        *(f"{flag}={outcome}" for flag in flags),
        "--because 'WHAT YOU FOUND' --claim",
        *report.flags,
    )
    return command("archiver restore", report.run, words)


def _decisions(report: RestoreReport) -> Iterator[str]:
    if report.reason:
        yield f"Restored because: {report.reason}"
    for one in report.decisions:
        because = f" Why: {one.reason}" if one.reason else ""
        yield f"{one.effect}: {one.outcome}, said {one.by} at {utc_text(one.at)}.{because}"


def _freshness(report: RestoreReport) -> list[str]:
    rows = [
        (v.probe, f"{v.state}{' (accepted)' if v.accepted else ''}", v.evidence, v.remedy or "")
        for v in report.freshness
    ]
    if not rows:
        return []
    return [
        "",
        "## Freshness: does the world still match?",
        "",
        "| Probe | Verdict | Evidence | What to do |",
        "|---|---|---|---|",
        *(f"| {' | '.join(map(_inert, row))} |" for row in rows),
    ]


def _facts(report: RestoreReport) -> list[str]:
    record = report.record
    rows = (
        ("Task", record.task),
        ("Objective", record.objective),
        ("Outcome", record.outcome),
        ("Phase", record.phase),
        ("Note", record.note),
        ("State of", utc_text(record.checkpoint_at)),
        ("Saved", utc_text(record.recorded_at)),
        ("Turn", str(record.turn)),
        ("Signed by", report.writer),
        ("Newest record signed by", report.newest_writer),
        ("Chain", f"{report.chain}, newest is number {report.newest}"),
        ("Rollback", report.rollback),
        ("Witness", report.witness),
        ("Opened by", report.opened_by or ""),
        ("Next number", "" if report.next_seq is None else str(report.next_seq)),
        ("Written by", record.software),
    )
    shown = [f"| {name} | {_inert(value)} |" for name, value in rows if value]
    return ["| | |", "|---|---|", *shown]


def _summary(checkpoint: Checkpoint) -> list[str]:
    if not checkpoint.summary:
        return []
    lines = checkpoint.summary.splitlines()
    shown = [_code(line) for line in lines[:_MOST_LINES]]
    more = (
        [_code(f"… {len(lines) - _MOST_LINES} more lines in checkpoint.json")] if lines[_MOST_LINES:] else []
    )
    return ["", "## Summary", "", *shown, *more]


def budget_left(budget: Budget | None, spend: Spend) -> Iterator[str]:
    """What is left of each limit."""
    if budget is None:
        return
    if budget.tokens is not None:
        yield _left("tokens", budget.tokens, spend.tokens_in + spend.tokens_out)
    if budget.iterations is not None:
        yield _left("iterations", budget.iterations, spend.iterations)
    if budget.seconds is not None:
        yield _left("seconds", budget.seconds, spend.seconds)
    if budget.cost is not None:
        if budget.currency == spend.currency:
            yield _left(f"{budget.currency}", budget.cost, spend.cost)
        else:
            yield f"{spend.cost:.2f} {spend.currency} spent of {budget.cost:.2f} {budget.currency}"


def _left(what: str, limit: float, used: float) -> str:
    left = max(limit - used, 0)
    if isinstance(limit, int) and isinstance(used, int):
        return f"{what}: {left:,} of {limit:,}"
    return f"{what}: {left:,.2f} of {limit:,.2f}"


def _section(title: str, rows: Iterable[str]) -> list[str]:
    given = list(rows)
    shown = [f"- {_inert(row)}" for row in given[:MOST_ROWS]]
    return ["", f"## {title}", "", *shown, *_more(len(given))] if shown else []


def _more(count: int) -> list[str]:
    return ["", f"… and {count - MOST_ROWS} more: see `report.json`."] if count > MOST_ROWS else []


def _code(text: str) -> str:
    """A line of an indented block, in which Markdown means nothing."""
    return f"    {one_line(text)}"


def _inert(text: str) -> str:
    """One line in which neither control characters nor Markdown, HTML or links mean anything."""
    return _ADDRESS.sub(r"\\", _ALIVE.sub(r"\\\g<0>", one_line(shorten(text, _LONGEST))))
