"""`archiver diff`: what changed between two checkpoints of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    RunArgument,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.catalog import Chain
    from archiver.comparing import Side
    from archiver.looking import Looked
    from archiver.model import Record
    from archiver.model.difference import Difference, FolderDifference
    from archiver.setup import Setup


def diff(
    run: RunArgument,
    before: Annotated[
        int | None,
        typer.Argument(
            help="Number of the earlier checkpoint. Without any: the two newest.",
            metavar="A",
            min=1,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        int | None,
        typer.Argument(
            help="Number of the later one; else the newest.", metavar="B", min=1, show_default=False
        ),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            help="Compare the workspace of checkpoint A (else of the newest) with this folder instead. "
            "Nothing in it is written, run, or followed out of it.",
            metavar="DIR",
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if anything of the state changed.")
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two checkpoints of a run.

    Plan, effects, evidence, results, spend, phase and texts, messages, artifacts, files of the workspace,
    what the run ran in, and what redaction found. Both bundles are opened. Messages are compared by what was
    said and called: that compaction has put stubs in place of older results is no change. Values of effects
    and results are not shown, only that they changed.

    With `--workspace` the files of one checkpoint, and of git also HEAD, branch, index and operation, are
    compared with a folder on disk. Only the list of files is fetched; they are compared by digest, kind,
    mode and target of a link. What cannot be compared, such as a file with placeholders, is said and is no
    change.

    Exits 0 whether or not anything changed, unless `--exit-code` asks for it.

    In a pipe each line has: part, sign (+ new, - gone, ~ changed), what, before, after.
    """
    from datetime import UTC, datetime

    from archiver import looking
    from archiver.cli import diff_text, output
    from archiver.errors import UsageError

    if workspace is not None and after is not None:
        raise UsageError("--workspace compares one checkpoint with a folder", remedy="leave B out")
    setup = open_for("read", config, store, identity, writers)
    chain = looking.chain_of(run, setup, datetime.now(UTC))
    found: Difference | FolderDifference
    if workspace is not None:
        found = _beside(workspace, before, chain, setup, as_json)
    else:
        found = _compared(_records(chain, before, after), chain, setup, as_json)
    if as_json:
        output.document({**found.document(), "changed": not found.empty})
    else:
        diff_text.show(found)
    if exit_code and not found.empty:
        raise typer.Exit(1)


def _beside(folder: Path, number: int | None, chain: Chain, setup: Setup, as_json: bool) -> FolderDifference:
    from archiver import looking
    from archiver.beside import beside
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute

    record = looking.newest(chain, 1)[0] if number is None else looking.numbered(chain, number)
    with shown(as_json) as progress:
        return beside(record, chain, setup, absolute(folder), progress, "diff")


def _records(chain: Chain, before: int | None, after: int | None) -> tuple[Record, Record]:
    from archiver import looking

    if before is None:
        old, new = looking.newest(chain, 2)
        return old, new
    old = looking.numbered(chain, before)
    return old, looking.newest(chain, 1)[0] if after is None else looking.numbered(chain, after)


def _compared(records: tuple[Record, Record], chain: Chain, setup: Setup, as_json: bool) -> Difference:
    from contextlib import ExitStack

    from archiver import looking
    from archiver.cli.progress import shown
    from archiver.comparing import compare

    with ExitStack() as stack:
        with shown(as_json) as progress:
            looks = [
                stack.enter_context(looking.look(record, chain, setup, progress, "diff"))
                for record in records
            ]
        sides = [_side(looked) for looked in looks]
        return compare(*sides)


def _side(looked: Looked) -> Side:
    from archiver.comparing import Side, tree_in

    record = looked.record
    return Side(
        seq=record.seq,
        recorded_at=record.recorded_at,
        checkpoint=looked.checkpoint,
        findings=record.findings,
        sizes=record.sizes,
        tree=tree_in(looked.folder),
    )
