"""`archiver rm`: remove the bundles of a run; its records stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from archiver.removing import Removed


def rm(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", "--because", help="Why it is removed; it is signed.", metavar="TEXT")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the bundles and effects of a run.

    Its records stay, so what happened can still be verified and shown; `restore` says who removed it, and
    why. In a bucket with versions they are hidden, until its rules remove old versions. A run on hold is
    refused. A run that goes on needs --yes; a later save of it is kept. Needs an administrator's signing key.

    In a pipe the line has: run, objects, bytes, versions that are only hidden, until when.
    """
    from archiver import removing
    from archiver.cli import removed

    setup = open_for("read", config, store, identity, writers, signing_key)
    found = removed.looked(run, setup, "remove")
    if not removed.agreed(found, "remove", dry_run=dry_run, yes=yes, as_json=as_json):
        return
    from archiver.cli.progress import counted

    with counted("objects removed", as_json) as tick:
        done = removing.remove(run, setup, reason=reason, tick=tick)
    _say(done, as_json)


def _say(done: Removed, as_json: bool) -> None:
    from archiver.cli import output, removed
    from archiver.cli.text import counted, size
    from archiver.model import utc_text

    removed.warn(done.warnings)
    until = utc_text(done.until) if done.until else None
    if as_json:
        output.document(
            {
                "run": done.run,
                "dry_run": False,
                "note": done.note,
                "objects": done.objects,
                "bytes": done.bytes,
                "hidden": done.hidden,
                "hidden_until": until,
            }
        )
    elif not output.tty():
        output.row((done.run, done.objects, done.bytes, done.hidden, until or ""))
    else:
        output.line(f"Run {done.run}: {counted(done.objects, 'object')} removed ({size(done.bytes)}).")
        if done.hidden:
            when = f", the first until {output.when(done.until)}" if done.until else ""
            output.line(
                f"The bucket keeps {counted(done.hidden, 'old version')} below delete markers{when}, if its "
                "rules are those of this program: who removes a marker has the object back."
            )
