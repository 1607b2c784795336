"""`archiver release`: end a hold."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    RunArgument,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    open_for,
)


def release(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", "--because", help="Why the hold ends; it is signed.", metavar="TEXT")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be released.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the hold of a run.

    Puts a signed note, then gives every version the class that the records of the run give it now, those
    last that others need. What is older than its class keeps it may be gone soon after. Needs an
    administrator's signing key. It can be interrupted at any point and run again.

    In a pipe the line has: run, objects, versions, versions that were released now, bytes.
    """
    from archiver import holding
    from archiver.cli.held import say
    from archiver.cli.progress import counted

    setup = open_for("read", config, store, identity, writers, signing_key)
    with counted("versions looked at", as_json) as tick:
        done = holding.release(run, setup, reason=reason, dry_run=dry_run, tick=tick)
    say(done, "released now" if not dry_run else "released", as_json)
