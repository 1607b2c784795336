"""`archiver export`: the sealed objects of a run, copied as they are, with what is known of each."""

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
    StoreOption,
    WritersOption,
    settings_of,
)

if TYPE_CHECKING:
    from archiver.export import Exported
    from archiver.model.export import ExportedObject
    from archiver.setup import Setup


def export(
    run: RunArgument,
    into: Annotated[Path, typer.Option("--into", help="New or empty folder to copy into.", metavar="DIR")],
    at: Annotated[
        int | None,
        typer.Option("--at", help="Only up to the checkpoint of this number.", metavar="SEQ", min=1),
    ] = None,
    because: BecauseOption = "",
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the sealed objects of a run, byte for byte.

    Nothing is opened but to verify it; without an identity it is copied all the same and not verified.
    Damaged objects are copied too. `EXPORT.json` says where each object came from, who signed it and
    whether it holds; `DIR/objects` is a store: `archiver restore RUN --store DIR/objects` restores from it.

    Exits 4 when something is damaged or missing, else with the code of what was refused, after the folder
    is there.

    In a pipe each line has: ok, the error's name or `not verified`, object, bytes, who signed, version.
    """
    from archiver.cli.progress import shown
    from archiver.config.paths import absolute
    from archiver.export import export as copy

    setup = replace(_opened(config, store, identity, writers), why=because)
    with shown(as_json) as progress:
        made = copy(run, setup, into=absolute(into), at=at, progress=progress)
    _say(made, as_json)
    if made.exit_code:
        raise typer.Exit(made.exit_code)


def _opened(
    config: Path | None, store: str | None, identity: list[Path] | None, writers: Path | None
) -> Setup:
    from archiver.cli import output
    from archiver.cli.audited import opened
    from archiver.setup.copying import open_to_copy

    setup, missing = open_to_copy(settings_of(config, store, identity, writers))
    opened(setup)
    for warning in setup.warnings:
        output.problem("warning", warning, None, style="1;33")
    if missing:
        output.problem("warning", f"nothing will be verified: {missing}", None, style="1;33")
    return setup


def _say(made: Exported, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import command, counted, size

    export = made.export
    if as_json:
        output.document({"folder": str(made.folder), **export.document()})
    elif output.tty():
        output.facts(
            [
                ("run", export.run),
                ("folder", str(made.folder)),
                ("copied", f"{counted(len(export.objects), 'object')}, {size(_bytes(export.objects))}"),
                ("chain", export.chain),
                ("not sound", str(len(export.damaged)) if export.damaged else ""),
            ]
        )
        next_step = command("archiver verify", export.run, "--deep", "--store", str(made.folder / "objects"))
        output.line(f"Next: {next_step} looks at the copy.")
    else:
        for one in export.objects:
            output.row((one.verification, one.name, one.size or 0, one.signer or "", one.version or ""))
    for warning in (*made.warnings, *export.remarks):
        output.problem("warning", warning, None, style="1;33")
    if export.chain_said and export.chain != "not verified":
        output.problem("error", f"{export.chain}: {export.chain_said}", None)
    for one in export.damaged:
        output.problem("error", f"{one.verification}: {one.said}", None)


def _bytes(objects: tuple[ExportedObject, ...]) -> int:
    return sum(one.size or 0 for one in objects)
