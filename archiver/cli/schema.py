"""`archiver schema`: the JSON Schemas."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    name: Annotated[
        str | None, typer.Argument(help="For example `checkpoint` or `v1/checkpoint`.", metavar="NAME")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the names.")] = False,
) -> None:
    """Print a JSON Schema, or list their names."""
    from archiver import schemas
    from archiver.cli import output

    if listed or name is None:
        for known in schemas.names():
            output.line(known)
        return
    output.paragraph(schemas.text(name).rstrip("\n"))
