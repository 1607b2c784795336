"""`archiver restore`, also `restore`: hand a checkpoint over, or say what stands against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.completing import accepted as words_to_accept
from archiver.cli.options import (
    BecauseOption,
    ConfigOption,
    IdentityOption,
    JsonOption,
    RunArgument,
    SigningKeyOption,
    StoreOption,
    VersionOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Write these files alone, verified, and fetch no more than they need: `workspace/` and a "
            "path in the workspace that was saved, or the path of a member of the bundle; a folder, or a "
            "pattern in quotes (`*` also goes over `/`); repeatable. Nothing is judged or claimed.",
            metavar="PATH",
        ),
    ] = None,
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
            autocompletion=words_to_accept,
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
    repo: Annotated[
        Path | None,
        typer.Option(
            "--repo",
            help="A clone of the project: it has the commits that a saved git work tree is based on. It is "
            "only read.",
            metavar="DIR",
        ),
    ] = None,
    no_workspace: Annotated[
        bool,
        typer.Option("--no-workspace", help="Leave out the folder that was saved with it; fetch the rest."),
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
    _version_asked: VersionOption = False,
) -> None:
    """Verify a checkpoint and hand it over.

    Judges whether the world still matches it, and hands it over in a new folder. Nothing is ever
    written into a working tree unasked.

    Exit codes: 0 handed over (UNKNOWN only warns), 3 stale or refused, 4 damaged or incomplete, 5 schema
    unsupported, 6 key unavailable, 7 a person must decide, 8 store unreachable or denied, 9 no such run.
    """
    from archiver import restore as room
    from archiver.cli import output, said
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute, lookup

    resolved = _resolved(resolve or [])
    _refuse_with_plan(plan, claim, force)
    _refuse_both(no_workspace, repo)
    if only:
        others = {"plan": plan, "claim": claim, "force": force, "network": network, "repo": repo is not None}
        others |= {"resolve": bool(resolved), "no-workspace": no_workspace}
        _refuse_with_only(**others)
    if into is not None:
        into = absolute(into)
        lookup(into)
    setup = open_for("read", config, store, identity, writers, signing_key)
    setup = replace(setup, why=because)
    accepted = tuple(accept or ())
    if only:
        _extract(run, setup, only, into, at, previous, accepted, as_json)
        return
    if plan:
        report = room.plan(
            run, setup, at=at, previous=previous, accept=accepted, resolve=resolved, network=network
        )
        report = _with_target(report, into, setup)
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
                repository=repo,
                workspace=not no_workspace,
                progress=progress,
            ).report
    if as_json:
        output.document(report.as_document())
        said.say_loudly(report)
    else:
        said.say(report, planned=plan)
    if plan and report.exit_code:
        raise typer.Exit(report.exit_code)


def _extract(
    run: str,
    setup: Setup,
    only: list[str],
    into: Path | None,
    at: int | None,
    previous: bool,
    accepted: tuple[str, ...],
    as_json: bool,
) -> None:
    from archiver import extracting
    from archiver.cli import output
    from archiver.cli.progress import shown
    from archiver.cli.text import counted, size
    from archiver.config.paths import lookup

    if into is None:
        at, previous = _number(run, setup, at, previous, accepted), False
        into = _default_folder(run, at, "-only")
        lookup(into)
    with shown(as_json) as progress:
        found = extracting.extract(
            run, setup, only, into=into, at=at, previous=previous, accept=accepted, progress=progress
        )
    if as_json:
        output.document(found.document())
        return
    for warning in found.warnings:
        output.problem("warning", warning, None, style="1;33")
    output.facts(
        [
            ("run", found.record.run),
            ("checkpoint", found.record.seq),
            ("written", f"{counted(found.count, 'file')}, {size(found.size)}"),
            ("folder", str(found.folder)),
        ]
    )


def _refuse_with_only(**others: bool) -> None:
    for name, given in others.items():
        if given:
            from archiver.errors import UsageError

            raise UsageError(
                f"--only hands nothing over to go on from, so it does not go with --{name}",
                remedy="leave out one of the two",
            )


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


def _refuse_both(no_workspace: bool, repo: Path | None) -> None:
    if no_workspace and repo is not None:
        from archiver.errors import UsageError

        raise UsageError(
            "--repo is for the workspace that --no-workspace leaves out", remedy="leave out one of the two"
        )


def _with_target(report: Report, into: Path | None, setup: Setup) -> Report:
    """The plan with what a restore would say of the folder that was named."""
    from archiver import target
    from archiver.errors import ArchiverError

    try:
        if into is not None:
            target.check(into, store=setup.store.url)
    except ArchiverError as error:
        said = f"a restore would refuse the folder: {error}"
        return report.model_copy(update={"warnings": (*report.warnings, said)})
    return report


def _number(run: str, setup: Setup, at: int | None, previous: bool, accepted: tuple[str, ...]) -> int:
    """What is asked for. Nothing is remembered yet, so that the restore compares with what was seen."""
    from datetime import UTC, datetime

    from archiver import choosing

    return choosing.find(
        run, setup, at=at, previous=previous, accept=accepted, remember=False, now=datetime.now(UTC)
    ).record.seq


def _default_folder(run: str, seq: int, suffix: str = "") -> Path:
    from archiver import layout
    from archiver.config import data_home

    return data_home() / "restored" / f"{layout.encode_run(run)}-{seq}{suffix}"
