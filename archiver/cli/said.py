"""What `archiver restore` prints of a plan and of a restore: for somebody in a hurry, what is wrong first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archiver.model import Record
    from archiver.restore import Report


def say_loudly(report: Report) -> None:
    """What a document alone would keep from whoever sits at the terminal."""
    from archiver import audit
    from archiver.cli import output

    for warning in report.warnings:
        if warning.startswith(audit.LOUD):
            output.problem("warning", warning, None, style="1;33")


def say(report: Report, *, planned: bool) -> None:
    from archiver.cli import output

    if output.tty():
        _say_blockers(report)
    output.facts(list(_facts(report)))
    _say_freshness(report)
    shown = {f"{verdict.probe} is {verdict.state}: {verdict.evidence}" for verdict in report.freshness}
    for warning in report.warnings:
        if warning not in shown:  # the rows have just said it
            output.problem("warning", warning, None, style="1;33")
    if not output.tty():
        _say_blockers(report)
    if report.rotate and output.tty():
        output.heading("Rotate these")
        for one in report.rotate:
            output.line(f"- {one}")
    if not planned:
        output.heading("Handed over")
        output.facts([("folder", report.folder), *(("next", step) for step in report.next_steps)])
    elif output.tty():
        output.line()
        output.line(_verdict(report))


def _say_blockers(report: Report) -> None:
    from archiver.cli import output

    for blocker in report.blockers:
        output.problem("blocked", blocker.reason, blocker.remedy)


def _say_freshness(report: Report) -> None:
    """A row for each probe; at a terminal what is STALE first, and what is FRESH on one line at the end."""
    from archiver.cli import output

    output.heading("Does the world still match?")
    verdicts = list(report.freshness)
    if output.tty():
        verdicts.sort(key=lambda one: ("STALE", "UNKNOWN", "FRESH").index(one.state))
    shown = [one for one in verdicts if one.state != "FRESH" or not output.tty()]
    output.table(
        ("PROBE", "VERDICT", "EVIDENCE"),
        [(one.probe, one.state + (" (accepted)" if one.accepted else ""), one.evidence) for one in shown],
        fold=("EVIDENCE",),
    )
    fresh = ", ".join(one.probe for one in verdicts if one.state == "FRESH")
    if fresh and output.tty():
        output.folded("FRESH: ", fresh)


def _facts(report: Report) -> Iterator[tuple[str, object]]:
    from archiver.cli import output
    from archiver.cli.text import counted, counts, swept
    from archiver.deciding import said

    record = report.record
    yield from (
        ("run", report.run),
        ("checkpoint", f"{report.seq} of {report.newest}"),
        *_undecided(report),
        *(("waits for a person", approval.question) for approval in record.plan.pending_approvals),
        ("task", record.task),
        ("from", swept(record)),
        ("objective", record.objective),
        ("outcome", record.outcome),
        ("phase", record.phase),
        ("note", record.note),
        ("state of", output.when(record.checkpoint_at)),
        ("size", _size(record)),
        ("signed by", report.writer),
        ("newest signed by", report.newest_writer),
        ("chain", report.chain),
        ("rollback", report.rollback),
        ("witness", report.witness),
        *(("not restored", one) for one in report.lost),
        *(("migrated", step) for step in report.migrations),
        ("repaired", counted(len(report.repairs), "place") if report.repairs else ""),
        ("replaced, rotate", counts(report.findings)),
        *(("replaced earlier, rotate", one) for one in report.replaced_before),
        *(("decided", f"{one.effect}: {said(one)}") for one in report.decisions),
        ("taken over", f"with record {report.claimed}" if report.claimed else ""),
        *(("left out", left) for left in report.left_out),
    )


def _undecided(report: Report) -> Iterator[tuple[str, str]]:
    """What is to be decided on, with the flag that does it, and how to see the rest of it."""
    from archiver import gate
    from archiver.effect_names import name_of
    from archiver.shellwords import command, word

    for one in report.undecided:
        yield "undecided", f"{gate.told([one.key])}: {one.tool}, {one.status}"
    keys = list(_not_decided(report))
    for key in keys:
        yield "undecided", f"{gate.told([key])}: --resolve {word(name_of(key))}=done or =not-done"
    if keys:
        accepts = dict.fromkeys((gate.EFFECTS, *report.accepted, *(one.accept for one in report.blockers)))
        words = (f"--at {report.seq}", *(f"--accept {word(one)}" for one in accepts), *report.flags)
        look = command("archiver restore", report.run, words)
        yield "to see them", f"their tools, times and arguments are in the bundle: {look}"


def _not_decided(report: Report) -> Iterator[str]:
    """What the record lists as undecided, as long as the bundle has not told more."""
    from archiver.effect_names import name_of

    decided = {one.effect for one in report.decisions}
    if report.folder is None:
        yield from (key for key in report.record.effects.undecided if name_of(key) not in decided)


def _verdict(report: Report) -> str:
    from archiver.gate import EFFECTS
    from archiver.report_text import unsure_of
    from archiver.shellwords import word

    # Not spelt out: the flags that name this store and these keys are needed again.
    words = [blocker.accept for blocker in report.blockers]
    if not words:
        unsure = unsure_of(report)
        but = f", but not sure is: {unsure}" if unsure else ""
        return f"Nothing stands against it{but}. The same command without --plan restores it."
    accepts = " ".join(f"--accept {word(one)}" for one in words if one != EFFECTS)
    known = f" If you know better: the same without --plan, with {accepts}" if accepts else ""
    if EFFECTS in words:
        return (
            "Not safe to go on. Say what you found out with --resolve and --because; --accept effects only "
            f"hands over to look at.{known}"
        )
    return f"Not safe to go on.{known}"


def _size(record: Record) -> str:
    """What lies in the bundle, and how many others hold the rest."""
    from archiver.cli.text import counted, size

    bundle = record.bundle
    if bundle is None:
        return ""
    count = len(bundle.bases)
    more = f"; the rest in {counted(count, 'earlier bundle')}" if count else ""
    return f"{size(bundle.unpacked)}{more}"
