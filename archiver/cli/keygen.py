"""`archiver keygen`: an identity and a signing key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.options import JsonOption


def keygen(
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", help="Folder for the files; without it, keys/ in the configuration home.", metavar="DIR"
        ),
    ] = None,
    pq: Annotated[
        bool,
        typer.Option(
            "--pq", help="Make a post-quantum identity (age 1.3); it shares files only with its like and KMS."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an age identity and a signing key.

    Writes identity.txt (age) and signing.pem (Ed25519), mode 0600. Refuses to overwrite either.
    The identity file works with the age program too; a post-quantum one from version 1.3 on.
    """
    from datetime import UTC, datetime

    from archiver.cli import explain, output
    from archiver.config.paths import absolute
    from archiver.setup import make_keys
    from archiver.setup.keys import key_folder

    keys = make_keys(absolute(into or key_folder()), now=datetime.now(UTC), post_quantum=pq)
    if as_json:
        output.document(explain.public_facts(keys))
        return
    output.facts(
        (
            ("identity", keys.identity_file),
            ("signing key", keys.signing_file),
            ("recipient", keys.recipient),
            ("fingerprint", keys.fingerprint),
            ("public signing key", keys.public),
        )
    )
    for text in explain.backup(keys):
        output.note(text)
