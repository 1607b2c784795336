"""`archiver drill`: restore a random sample of runs, and throw it away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    BecauseOption,
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
)
from archiver.errors import UsageError

if TYPE_CHECKING:
    from archiver.drill import Drilled, Sum
    from archiver.setup import Setup

MAX_SEED = (1 << 32) - 1


def drill(
    sample: Annotated[
        str, typer.Option("--sample", help="How many runs, or which share: `20`, `5%`.", metavar="N")
    ] = "10",
    break_glass: Annotated[
        Path | None,
        typer.Option(
            "--break-glass",
            help="age identity file for emergencies: it alone is used, to prove that it opens.",
            metavar="FILE",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="The number of an earlier sample.", metavar="N", min=0, max=MAX_SEED),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="New folder in which what was restored stays.", metavar="DIR"),
    ] = None,
    because: BecauseOption = "",
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore a random sample of runs, to prove that they come back.

    The newest checkpoint of each is restored into a private folder that is removed at once. Nothing of the
    store or of a run is changed; that a checkpoint is stale is told, and is no failure.

    Exits 0 if all came back, 4 if anything is damaged, 6 if a key opens nothing.

    In a pipe each line has: ok, expired or the error's name, run, number, seconds, bytes, identity, probes,
    what went wrong.
    """
    from archiver import drill as room
    from archiver.cli import output, problems
    from archiver.cli.progress import counted as counting
    from archiver.config.paths import absolute
    from archiver.sampling import Sample

    if break_glass is not None and identity:
        raise UsageError(
            "--break-glass and --identity exclude each other", remedy="with --break-glass it alone is used"
        )
    picking = Sample(sample, seed)
    setup = replace(_opened(config, store, identity, writers, break_glass), why=because)
    with counting("runs restored", as_json) as tick:

        def told(one: Drilled) -> None:
            tick()
            if not as_json and not output.tty():
                output.row(_row(one))

        done = room.drill(setup, sample=picking, keep=absolute(keep) if keep else None, told=told)
    _say(done, as_json)
    problems.report((f"run {one.run}: {one.error}", one.error) for one in done.failed if one.error)
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def _opened(
    config: Path | None,
    store: str | None,
    identity: list[Path] | None,
    writers: Path | None,
    break_glass: Path | None,
) -> Setup:
    if break_glass is None:
        return open_for("read", config, store, identity, writers)
    from archiver import age
    from archiver.config.paths import absolute
    from archiver.drill import with_only

    path = absolute(break_glass)
    identities = age.read_identities(path)
    return with_only(open_for("read", config, store, [path], writers), identities)


_COLUMNS = ("VERDICT", "RUN", "NO", "SECONDS", "SIZE", "OPENED BY", "PROBES", "WHAT")


def _say(done: Sum, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted, number

    failed, expired = len(done.failed), sum(one.expired for one in done.runs)
    back = len(done.runs) - failed - expired
    if as_json:
        output.document(_document(done))
    elif output.tty():
        output.table(_COLUMNS, [_row(one) for one in done.runs], cut=("WHAT",), middle=("RUN",))
        gone = f", {number(expired)} expired" if expired else ""
        output.line(
            f"{number(back)} of {counted(len(done.runs), 'run')} came back, {number(failed)} failed{gone}."
        )
    for warning in done.warnings:
        output.problem("warning", warning, None, style="1;33")
    if not as_json:
        text = f"a sample of {len(done.runs)} of {done.of} runs; --seed {done.seed} has it again"
        output.note(text)


def _row(one: Drilled) -> tuple[Any, ...]:
    from archiver.cli import output
    from archiver.cli.text import size

    people = output.tty()
    return (
        _verdict(one),
        one.run,
        one.seq,
        f"{one.seconds:.2f}",
        size(one.size) if people else one.size,
        (one.opened_by or "")[: 8 if people else None] + (" BREAK-GLASS" if one.break_glass else ""),
        ", ".join(f"{count} {state}" for state, count in one.freshness),
        one.error or "",
    )


def _verdict(one: Drilled) -> str:
    if one.error is not None:
        return type(one.error).__name__
    return "expired" if one.expired else "ok"


def _document(done: Sum) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "ok": not done.failed,
        "of": done.of,
        "seed": done.seed,
        "runs": [
            {
                "run": one.run,
                "seq": one.seq,
                "verdict": _verdict(one),
                "seconds": round(one.seconds, 3),
                "bytes": one.size,
                "opened_by": one.opened_by,
                "break_glass": one.break_glass,
                "freshness": dict(one.freshness),
                "repairs": one.repairs,
                "error": described(one.error) if one.error else None,
            }
            for one in done.runs
        ],
    }
