"""`archiver erase`: remove a run for good; only a signed tombstone stays."""

from __future__ import annotations

from dataclasses import replace
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
    from archiver.removing import Erased
    from archiver.removing.unreached import Unreached
    from archiver.setup import Setup


def erase(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", "--because", help="Why it is erased; it is signed.", metavar="TEXT")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be erased.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a run: every version of all its objects.

    Puts a signed tombstone, then removes every version of bundles, effects, audit, hints, notes and records,
    and what this machine remembers of the run. Then says what it cannot reach: locked versions, replicas,
    spools of other machines, exports, restored copies, the files that a sweep made it of. A run on hold is
    refused. Its id cannot be used again.
    Needs an administrator's signing key. It can be interrupted at any point and run again.

    In a pipe the first line has: run, objects, versions and markers, bytes; then a line for each thing that
    is not reached: kind, name, what is known of it. Those come with --dry-run too, after the objects. Exits 3
    where a version could not be removed.
    """
    from archiver import removing
    from archiver.cli import removed
    from archiver.cli.progress import counted
    from archiver.removing.unreached import beforehand

    setup = open_for("read", config, store, identity, writers, signing_key)
    found = removed.looked(run, setup, "erase")
    files = _files(run, setup)

    def left() -> tuple[Unreached, ...]:
        return (*files, *beforehand(run, setup))

    if not removed.agreed(found, "erase", dry_run=dry_run, yes=yes, as_json=as_json, left=left):
        return
    with counted("objects erased", as_json) as tick:
        done = removing.erase(run, setup, reason=reason, tick=tick)
    done = _with_sweeps(replace(done, unreached=(*done.unreached, *files)), setup)
    _say(done, as_json)
    if any(one.kind == "version" for one in done.unreached):
        raise typer.Exit(3)


def _files(run: str, setup: Setup) -> tuple[Unreached, ...]:
    """The files on this machine that sweeps made the run of."""
    from archiver.removing.unreached import Unreached
    from archiver.sweep.whence import whence

    there = "the run was made of it, and it stays: remove it if it is to be gone"
    gone = "the run was made of one at a place that no source of this configuration has: look for it"
    return tuple(
        Unreached("source", path or f"files of {kind}", there if path else gone)
        for kind, path in whence(run, setup)
    )


def _with_sweeps(done: Erased, setup: Setup) -> Erased:
    """What sweeps of this machine remember of the run goes too."""
    from archiver.errors import ArchiverError
    from archiver.sweep.state import forget

    try:
        count = forget(done.run, setup)
    except ArchiverError as error:
        return replace(done, warnings=(*done.warnings, f"what sweeps remember of the run stays: {error}"))
    return replace(done, local=(*done.local, f"sweep state ({count})")) if count else done


def _say(done: Erased, as_json: bool) -> None:
    from archiver.cli import output, removed
    from archiver.cli.text import counted, size

    removed.warn(done.warnings)
    if as_json:
        output.document(
            {
                "run": done.run,
                "dry_run": False,
                "note": done.note,
                "objects": done.objects,
                "versions": done.versions,
                "bytes": done.bytes,
                "local": list(done.local),
                "unreached": removed.as_data(done.unreached),
            }
        )
        return
    if not output.tty():
        output.row((done.run, done.objects, done.versions, done.bytes))
    else:
        output.line(f"Run {done.run}: {counted(done.objects, 'object')} erased ({size(done.bytes)}).")
        for one in done.local:
            output.line(f"Removed from this machine: {one}.")
    removed.not_reached(done.unreached)
