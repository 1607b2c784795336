"""`archiver restore`, also `restore`: hand a checkpoint over, or say what stands against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.options import (
    BecauseOption,
    ConfigOption,
    IdentityOption,
    JsonOption,
    RunArgument,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archiver.deciding import Outcome
    from archiver.restore import Report
    from archiver.setup import Setup


def restore(
    run: RunArgument,
    at: Annotated[
        int | None,
        typer.Option("--at", help="Number of the checkpoint; else the newest.", metavar="SEQ", min=1),
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", help="The newest whole checkpoint before the newest.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", help="New or empty folder to hand over in; else one in the data home.", metavar="DIR"
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what would be restored and what stands against it.")
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            help="Go on all the same, this once; the report notes it; repeatable. A probe that is not FRESH, "
            "by its name (age, approvals, budget, credentials, git_branch, git_commit, git_dirty, harness, "
            "installed, lockfiles, model, platform, prompt, remote_head, runtime, tools, upstream, or one of "
            "your own), or `rollback` of the store behind what was seen. `effects` only hands over what "
            "nobody has decided on, to look at: it lets nothing go on.",
            metavar="WHAT",
        ),
    ] = None,
    resolve: Annotated[
        list[str] | None,
        typer.Option(
            "--resolve",
            help="What you found out about an effect of which nobody knew whether it happened: `KEY=done` or "
            "`KEY=not-done`; needs --because; repeatable.",
            metavar="KEY=OUTCOME",
        ),
    ] = None,
    because: BecauseOption = "",
    claim: Annotated[
        bool,
        typer.Option(
            "--claim", help="Take the run over: nobody can go on with it who has not restored it since."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a folder in which the same run was handed over before, and nothing else."
        ),
    ] = False,
    network: Annotated[
        bool,
        typer.Option(
            "--network",
            help="With --plan: let probes ask the hosts in `freshness.hosts`, as a restore does.",
        ),
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a checkpoint and hand it over.

    Judges whether the world still matches it, and hands it over in a new folder. Nothing is ever
    written into a working tree unasked.

    Exit codes: 0 handed over (UNKNOWN only warns), 3 stale or refused, 4 damaged or incomplete, 5 schema
    unsupported, 6 key unavailable, 7 a person must decide, 8 store unreachable or denied, 9 no such run.
    """
    from archiver import restore as room
    from archiver.cli import output
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute, lookup

    resolved = _resolved(resolve or [])
    _refuse_with_plan(plan, claim, force)
    if into is not None:
        into = absolute(into)
        lookup(into)
    setup = open_for("read", config, store, identity, writers, signing_key)
    setup = replace(setup, why=because)
    accepted = tuple(accept or ())
    if plan:
        report = room.plan(
            run, setup, at=at, previous=previous, accept=accepted, resolve=resolved, network=network
        )
    else:
        if into is None:
            # The number has to be known to name the folder; nobody may commit another in between.
            at = _number(run, setup, at, previous, accepted)
            previous = False
            into = _default_folder(run, at)
            lookup(into)
        with shown(as_json) as progress:
            report = room.restore(
                run,
                setup,
                into=into,
                at=at,
                previous=previous,
                accept=accepted,
                resolve=resolved,
                claim=claim,
                force=force,
                progress=progress,
            ).report
    if as_json:
        output.document(report.as_document())
        _say_loudly(report)
    else:
        _say(report, planned=plan)
    if plan and report.exit_code:
        raise typer.Exit(report.exit_code)


def _resolved(given: list[str]) -> dict[str, Outcome]:
    """Outcomes by the keys or names of effects; a key may hold `=` itself."""
    from archiver.deciding import OUTCOMES
    from archiver.errors import UsageError

    found: dict[str, Outcome] = {}
    for text in given:
        key, between, word = text.rpartition("=")
        outcome = OUTCOMES.get(word)
        if not between or outcome is None:
            raise UsageError(
                f"--resolve {text!r:.200} is not KEY=done or KEY=not-done",
                remedy="`archiver restore --plan RUN` shows the keys",
            )
        if found.setdefault(key, outcome) != outcome:
            raise UsageError(
                f"--resolve says that {key!r:.200} is done and that it is not", remedy="leave one of them out"
            )
    return found


def _refuse_with_plan(plan: bool, claim: bool, force: bool) -> None:
    if plan and (claim or force):
        from archiver.errors import UsageError

        raise UsageError(
            f"--plan changes nothing, so it does not go with {'--claim' if claim else '--force'}",
            remedy="leave out one of the two",
        )


def _number(run: str, setup: Setup, at: int | None, previous: bool, accepted: tuple[str, ...]) -> int:
    """What is asked for. Nothing is remembered yet, so that the restore compares with what was seen."""
    from datetime import UTC, datetime

    from archiver import choosing

    return choosing.find(
        run, setup, at=at, previous=previous, accept=accepted, remember=False, now=datetime.now(UTC)
    ).record.seq


def _default_folder(run: str, seq: int) -> Path:
    from archiver import layout
    from archiver.config import data_home

    return data_home() / "restored" / f"{layout.encode_run(run)}-{seq}"


def _say_loudly(report: Report) -> None:
    """What a document alone would keep from whoever sits at the terminal."""
    from archiver import audit
    from archiver.cli import output

    for warning in report.warnings:
        if warning.startswith(audit.LOUD):
            output.problem("warning", warning, None, style="1;33")


def _say(report: Report, *, planned: bool) -> None:
    from archiver.cli import output

    output.facts(list(_facts(report)))
    output.heading("Does the world still match?")
    output.table(
        ("PROBE", "VERDICT", "EVIDENCE"),
        [(v.probe, v.state + (" (accepted)" if v.accepted else ""), v.evidence) for v in report.freshness],
        fold=("EVIDENCE",),
    )
    shown = {f"{verdict.probe} is UNKNOWN: {verdict.evidence}" for verdict in report.freshness}
    for warning in report.warnings:
        if not output.tty() or warning not in shown:  # at a terminal the table has just said it
            output.problem("warning", warning, None, style="1;33")
    for blocker in report.blockers:
        output.problem("blocked", blocker.reason, blocker.remedy)
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


def _facts(report: Report) -> Iterator[tuple[str, object]]:
    from archiver import gate
    from archiver.cli import output
    from archiver.cli.text import counted, counts, size
    from archiver.deciding import said
    from archiver.effect_names import name_of
    from archiver.shellwords import word

    record = report.record
    yield from (
        ("run", report.run),
        ("checkpoint", f"{report.seq} of {report.newest}"),
        ("task", record.task),
        ("objective", record.objective),
        ("outcome", record.outcome),
        ("phase", record.phase),
        ("note", record.note),
        ("state of", output.when(record.checkpoint_at)),
        ("size", size(record.bundle.unpacked) if record.bundle else ""),
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
        *(("undecided", f"{gate.told([one.key])}: {one.tool}, {one.status}") for one in report.undecided),
        *(
            ("undecided", f"{gate.told([key])}: --resolve {word(name_of(key))}=done or =not-done")
            for key in _not_decided(report)
        ),
        ("taken over", f"with record {report.claimed}" if report.claimed else ""),
        *(("left out", left) for left in report.left_out),
    )


def _not_decided(report: Report) -> Iterator[str]:
    """What the record lists as undecided, as long as the bundle has not told more."""
    from archiver.effect_names import name_of

    decided = {one.effect for one in report.decisions}
    if report.folder is None:
        yield from (key for key in report.record.effects.undecided if name_of(key) not in decided)


def _verdict(report: Report) -> str:
    from archiver.shellwords import word

    # Not spelt out: the flags that name this store and these keys are needed again.
    accepts = [one for blocker in report.blockers for one in ("--accept", blocker.accept)]
    if not accepts:
        return "Nothing stands against it: the same command without --plan restores it."
    known = f"If you know better: the same without --plan, with {' '.join(map(word, accepts))}"
    if "effects" in accepts:
        return f"Not safe to go on. Say what you found out with --resolve and --because. {known}"
    return f"Not safe to go on. {known}"
