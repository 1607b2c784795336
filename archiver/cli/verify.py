"""`archiver verify`: is what the store holds whole and authentic?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.completing import runs
from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.sampling import Sample
    from archiver.setup import Setup
    from archiver.verify import Finding


_FEW = 3
"""Runs whose advice is said one by one."""


def verify(
    run: Annotated[
        str | None,
        typer.Argument(help="Only this run.", metavar="RUN", show_default=False, autocompletion=runs),
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Open every bundle and check every member.")] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample", help="With --deep, open a random sample alone: `5%`, or a number.", metavar="SIZE"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Take the same sample again.", metavar="N", min=0, max=(1 << 32) - 1),
    ] = None,
    distrust: Annotated[
        str | None,
        typer.Option(
            "--distrust",
            help="With --since: only say what would be lost if this key, or the key of this writer, were "
            "distrusted.",
            metavar="KEY",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="With --distrust: from when on it would be distrusted: `2026-03-01`, a full time, or `7d`.",
            metavar="TIME",
        ),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify signatures, chains and bundles.

    Each run is compared with what was seen of it before (`archiver witness list`): one that the store has
    less of, or nothing any more, is an error, and so is another record of the same number. What is found
    whole has been seen from then on.

    Whom an object is sealed to is compared with what was signed, for records and, with --deep, for bundles;
    what `rekey` changed is known by its notes. A run that is sealed to other recipients than the configured
    ones is mentioned. A bundle that is gone as its class allows has expired and is no damage. Records are
    all checked, also with --sample.

    Exits 4 when something is damaged or missing, else with the code of what was refused. With --distrust:
    3 when a run would lose records; nothing is changed.

    In a pipe each line has: ok, warning, expired, removed or the error's name, object, run, number, what was
    found.
    With --distrust: run, records lost, the first number lost, the newest number, the newest whole checkpoint
    before, the command that restores it, what is wrong with the run already.
    """
    _refuse_misfits(deep, sample, seed, distrust, since)
    if distrust is not None and since is not None:
        from archiver.cli import distrust as room
        from archiver.cli.text import since_when

        moment = since_when(since)
        room.show(open_for("read", config, store, identity, writers), distrust, moment, run, as_json)
        return
    picked = _sample(sample, seed)
    _verify(open_for("read", config, store, identity, writers), run, deep, picked, as_json)


def _refuse_misfits(
    deep: bool, sample: str | None, seed: int | None, distrust: str | None, since: str | None
) -> None:
    from archiver.errors import UsageError

    if (distrust is None) != (since is None):
        raise UsageError(
            "--distrust and --since belong together", remedy="verify --distrust KEY --since 2026-03-01"
        )
    if distrust is not None and (deep or sample is not None or seed is not None):
        raise UsageError("--distrust opens no bundles", remedy="leave out --deep, --sample and --seed")
    if sample is not None and not deep:
        raise UsageError("--sample says which bundles --deep opens", remedy="verify --deep --sample 5%")
    if seed is not None and sample is None:
        raise UsageError("--seed chooses a sample", remedy="verify --deep --sample 5% --seed N")


def _sample(size: str | None, seed: int | None) -> Sample | None:
    from archiver.sampling import Sample

    return None if size is None else Sample(size, seed)


def _verify(setup: Setup, run: str | None, deep: bool, sample: Sample | None, as_json: bool) -> None:
    from archiver import verify as room
    from archiver.cli.progress import counted as counting
    from archiver.cli.progress import shown

    told = _Told(as_json)
    if run is not None:
        with shown(as_json) as progress:
            for finding in room.verify(setup, run, deep=deep, sample=sample, progress=progress):
                told.add(finding)
    else:
        with counting("objects checked", as_json) as tick:
            for finding in room.verify(setup, deep=deep, sample=sample):
                tick()
                told.add(finding)
    _say(told, sample, as_json)
    if told.broken:
        codes = {finding.error.exit_code for finding in told.broken if finding.error}
        raise typer.Exit(4 if 4 in codes else max(codes))


def _say(told: _Told, sample: Sample | None, as_json: bool) -> None:
    from archiver.cli import output, problems
    from archiver.cli.text import counted

    broken = told.broken
    if as_json:
        document: dict[str, Any] = {"ok": not broken, "findings": told.documents}
        if sample is not None:
            document["sample"] = {"opened": sample.size, "of": sample.total, "seed": sample.seed}
        output.document(document)
    elif output.tty():
        for finding in told.notes:
            kind = "warning" if finding.state == "warning" else "note"
            output.problem(kind, f"{finding.object}: {finding.note}", None, style="1;33")
        _advise(told.advised)
        checked = counted(told.count, "object")
        expired = f", {counted(told.expired, 'bundle')} expired" if told.expired else ""
        expired += f", {counted(told.removed, 'bundle')} removed" if told.removed else ""
        output.line(f"{checked} checked{expired}, {len(broken) or 'none'} damaged or refused.")
    if sample is not None and not as_json:
        output.note(
            f"{sample.size} of {counted(sample.total, 'bundle')} opened, a random sample; "
            f"--seed {sample.seed} has the same again"
        )
    problems.report(
        (f"{_place(finding)}: {finding.error}", finding.error) for finding in broken if finding.error
    )


def _place(finding: Finding) -> str:
    """The object; the run where the finding is about all of its records."""
    return f"run {finding.run}" if finding.run and finding.object.endswith("/") else finding.object


class _Told:
    """What was found: in a pipe it is said at once, and kept only where it has to be said later."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.count = 0
        self.expired = 0
        self.removed = 0
        self.broken: list[Finding] = []
        self.notes: list[Finding] = []
        self.advised: list[Finding] = []
        self.documents: list[Any] = []

    def add(self, finding: Finding) -> None:
        from archiver import jsonio
        from archiver.cli import output

        self.count += finding.advice is None and not finding.again
        self.expired += finding.state == "expired"
        self.removed += finding.state == "removed"
        if finding.advice is not None:
            self.advised.append(finding)
        if finding.error is not None:
            self.broken.append(finding)
        elif finding.advice is None and (finding.state == "warning" or finding.note.startswith("no record")):
            self.notes.append(finding)
        if self._as_json:
            document = _document(finding)
            self.documents.append(document if output.tty() else jsonio.held(document))
        elif not output.tty():
            output.row(_row(finding))


def _advise(advised: list[Finding]) -> None:
    """Say what should be done; once for all runs where it is more than a few."""
    from archiver.cli import output
    from archiver.cli.text import command, counted

    if len(advised) > _FEW:
        runs = f"{counted(len(advised), 'run')} have objects"
        text = f"{runs} that are sealed to other recipients than the configured ones"
        away = sum(finding.state == "warning" for finding in advised)
        text += f"; those of {counted(away, 'run')} were sealed while KMS was away" if away else ""
        output.problem("note", text, "archiver rekey --all --dry-run", style="1;33")
        return
    for finding in advised:
        run = finding.run or ""
        next_step = command(f"archiver {finding.advice}", run, "--dry-run")
        kind = "warning" if finding.state == "warning" else "note"
        output.problem(kind, f"run {run}: {finding.note}", next_step, style="1;33")


def _row(finding: Finding) -> tuple[Any, ...]:
    verdict = type(finding.error).__name__ if finding.error else finding.state
    return verdict, finding.object, finding.run or "", finding.seq or "", finding.error or finding.note


def _document(finding: Finding) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "object": finding.object,
        "run": finding.run,
        "seq": finding.seq,
        "state": "error" if finding.error else finding.state,
        "note": finding.note,
        "advice": finding.advice,
        "error": described(finding.error) if finding.error else None,
    }
