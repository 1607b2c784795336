"""`archiver init`: a store, keys and a configuration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.options import ConfigOption, JsonOption, config_flag


def init(
    store: Annotated[
        str | None,
        typer.Argument(help="Folder of the store; without it, one in the data home.", metavar="STORE"),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set up a store, keys and a configuration.

    Proves a round trip before it is done. Keys that are there are used and never overwritten. The
    configuration is written to --config, else to archiver.toml in the configuration home.
    """
    from datetime import UTC, datetime

    from archiver.cli import explain, output
    from archiver.config import FILE_NAME, asked_for, config_home, load
    from archiver.setup import initialise
    from archiver.setup.initialise import default_store

    target = asked_for(config_flag(config)) or config_home() / FILE_NAME
    made = initialise(
        store or default_store(), target, settings=load(without_file=True), now=datetime.now(UTC)
    )
    if as_json:
        output.document(
            {
                "store": made.store,
                "store_id": made.store_id,
                "config": str(made.config),
                "new_store": made.new_store,
                "new_identity": made.new_identity,
                "new_signing_key": made.new_signing_key,
                **explain.public_facts(made.keys),
            }
        )
        return
    for text in explain.created(made):
        output.line(text)
    output.line("Sealed, signed, stored, read back, opened and verified a probe: the store works.")
    if made.new_identity or made.new_signing_key:
        for text in explain.backup(made.keys):
            output.line(text)
    output.line(explain.beside_store(made))
    if not _found(target):
        output.line(f"Use it with --config {shlex.quote(str(target))}, or set ARCHIVER_CONFIG.")


def _found(config: Path) -> bool:
    """Whether the next command takes this configuration without being told."""
    from archiver.config.loading import find_file
    from archiver.errors import ArchiverError

    try:
        return find_file(None) == config
    except ArchiverError:
        return False
