"""`archiver artifact`: one large output of a checkpoint, streamed out, or the list of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from collections.abc import Iterable, Sequence

    from archiver.looking import Looked
    from archiver.outputs import Output


def artifact(
    run: RunArgument,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Digest of the artifact, or at least 6 digits that it alone begins with; without one all "
            "are listed.",
            metavar="ID",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", help="The checkpoint of this number, not the newest.", metavar="SEQ", min=1),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="New private file to write it to.", metavar="FILE"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the very bytes to a terminal, whatever they do to it.")
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write one artifact of a run to standard output, or list them.

    Artifacts are large outputs and pictures that a checkpoint keeps once, redacted like all the rest. In a
    pipe or a file the bytes are as they were saved. At a terminal text is shown with everything escaped that
    could steer it, and what is no text is refused without `--force`. Of one that limits had no room for, head
    and tail are written with a warning, or it is an error that says why nothing is carried.

    Exits 9 where there is no such checkpoint or artifact.

    In a pipe the list has a line each: id, bytes, media type, whole, head-and-tail or reference, summary.
    """
    from contextlib import ExitStack
    from datetime import UTC, datetime

    from archiver import looking, outputs
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute

    if into is not None and name is None:
        from archiver.errors import UsageError
        from archiver.shellwords import command

        raise UsageError(
            "--output needs the ID of the artifact that is to be written",
            remedy=f"`{command('archiver artifact', run, ())}` lists them",
        )
    into = None if into is None else absolute(into)
    if into is not None:
        outputs.check_new(into)
    setup = open_for("read", config, store, identity, writers)
    chain = looking.chain_of(run, setup, datetime.now(UTC))
    record = looking.newest(chain, 1)[0] if at is None else looking.numbered(chain, at)
    with ExitStack() as stack:
        with shown(as_json) as progress:
            looked = stack.enter_context(looking.look(record, chain, setup, progress, "artifact"))
        found = outputs.outputs(looked.checkpoint, looked.receipt, looked.folder)
        if name is None:
            _list(looked, found, as_json)
            return
        where = f"checkpoint {record.seq} of run {run}"
        _give(outputs.chosen(found, name, where), into, force=force, as_json=as_json)


def _list(looked: Looked, found: Sequence[Output], as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import size

    if as_json:
        record = looked.record
        listed = [_document(one) for one in found]
        output.document({"run": record.run, "seq": record.seq, "artifacts": listed})
        return
    people = output.tty()
    if people and not found:
        output.line(f"Checkpoint {looked.record.seq} has no artifacts.")
    rows = [
        (
            one.artifact.sha256[:16] if people else one.artifact.sha256,
            size(one.artifact.size) if people else one.artifact.size,
            one.artifact.media_type,
            "" if people and one.state == "whole" else one.state,
            one.artifact.summary,
        )
        for one in found
    ]
    output.table(("ID", "SIZE", "TYPE", "CARRIED", "SUMMARY"), rows, cut=("SUMMARY",))


def _document(one: Output) -> dict[str, Any]:
    return {
        **one.artifact.document(),
        "carried": one.state,
        "kept": one.source.stat().st_size if one.source else 0,
        "why": one.why or None,
    }


def _give(one: Output, into: Path | None, *, force: bool, as_json: bool) -> None:
    """Write what is carried of an artifact to where it was asked for; of `--json` what is known of it."""
    from archiver import outputs
    from archiver.cli import output

    if into is not None:
        written = outputs.write_new(one.blocks(), into)
        if as_json:
            output.document({**_document(one), "output": str(into), "written": written})
        elif output.tty():
            output.line(f"{into}: {written} bytes.")
    elif as_json:
        output.document(_document(one))
    elif output.tty() and not force:
        _show(one)
    else:
        output.raw(one.blocks())
    if one.source is not None and one.cut is not None:
        output.problem("warning", one.cut.said, None, style="1;33")


def _show(one: Output) -> None:
    """Text at a terminal, inert; what is none is refused before the first of it is shown."""
    from archiver.cli import output
    from archiver.errors import UsageError

    if not _is_text(one.blocks()):
        raise UsageError(
            f"artifact {one.artifact.sha256[:16]} is no text ({one.artifact.media_type}), and a terminal "
            "would take its bytes for commands",
            remedy="write it to a file with --output, or into a pipe; --force writes it all the same",
        )
    output.text(one.blocks())


def _is_text(blocks: Iterable[bytes]) -> bool:
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks:
            if b"\0" in block:
                return False
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
