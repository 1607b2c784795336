"""`archiver hold`: keep a run without end."""

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


def hold(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", "--because", help="Why it is kept; it is signed.", metavar="TEXT")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be tagged.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a run without end, whatever its class.

    Puts a signed note, then the tag `hold` on every version of its records, bundles, effects and audit: no
    rule of a bucket removes them, and `rm`, `erase` and `expire` refuse. Needs an administrator's signing
    key. It can be interrupted at any point and run again; `archiver release` ends it.

    In a pipe the line has: run, objects, versions, versions that were tagged now, bytes.
    """
    from archiver import holding
    from archiver.cli.held import say
    from archiver.cli.progress import counted
    from archiver.errors import UsageError

    if not reason.strip():
        raise UsageError("a hold needs a reason", remedy='say why: --reason "audit of May"')
    setup = open_for("read", config, store, identity, writers, signing_key)
    with counted("versions looked at", as_json) as tick:
        done = holding.hold(run, setup, reason=reason, dry_run=dry_run, tick=tick)
    say(done, "put on hold now" if not dry_run else "put on hold", as_json)
