"""`archiver sync`: bring what waits on this machine into the store, and show what lies there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.completing import spooled
from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    SigningKeyOption,
    StoreOption,
    open_for,
    settings_of,
)
from archiver.errors import AWAY, ArchiverError, UsageError

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup
    from archiver.spool.listing import Listed
    from archiver.syncing import Delivered


def sync(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of runs; else all that wait.", metavar="RUN", show_default=False, autocompletion=spooled
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Show what waits in the spool, and forks; no store is asked.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --list: also what the store has and stays here.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be delivered; no store is asked.")
    ] = False,
    drop_fork: Annotated[
        str | None,
        typer.Option(
            "--drop-fork", help="Remove a fork for good; without --yes only shown.", metavar="RUN:SEQ"
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do remove it.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring into the store what was saved while it could not be reached.

    The library keeps each checkpoint sealed on the local disk, in the spool, until the store has it. This
    delivers what is left there, in order, each exactly once; a run that goes on does so by itself. Ends with
    8 while the store is away: run it again later. What lost its number to another writer of the run is kept
    as a fork, and nothing removes it but --drop-fork. Of a run that has not ended the newest checkpoint stays
    here after it is delivered.

    In a pipe each line has: run, what was delivered, what waits, forks, the error's name; with --list and
    --dry-run: run, number, kind, state, bytes, since when, what is wrong.
    """
    settings = settings_of(config, store, identity, None, signing_key)
    found = _listed(settings)
    if drop_fork is not None:
        _drop(found, drop_fork, yes=yes, as_json=as_json)
        return
    if yes:
        raise UsageError("--yes goes with --drop-fork", remedy="leave it out")
    if everything and not listing:
        raise UsageError("--all goes with --list", remedy="leave it out")
    wanted = [one for one in found if not run or one.run in run]
    waiting = [one for one in wanted if one.waits]
    if listing or dry_run:
        unsettled = [one for one in wanted if one.state != "delivered"]
        shown = waiting if not listing else wanted if everything else unsettled
        _show(shown, len(wanted) - len(unsettled) if listing and not everything else 0, as_json)
        return
    if absent := set(run or ()).difference(one.run for one in found):
        _refuse_unknown(absent, open_for("read", config, store, identity, None, signing_key))
    rows: list[Delivered] = []
    if waiting:
        try:
            setup = open_for("write", config, store, identity, None, signing_key)
        except AWAY as error:
            from archiver.syncing import Delivered, by_run

            _end([Delivered(name, left=len(of)) for name, of in by_run(waiting)], as_json, error)
        rows = _deliver(setup, waiting, as_json)
    _end(rows, as_json, None)


def _listed(settings: Settings) -> list[Listed]:
    from archiver.spool import listing
    from archiver.spool.spool import place

    return list(listing.listed(place(settings), _store_id(settings)))


def _refuse_unknown(names: Iterable[str], setup: Setup) -> None:
    """Of a run that is in the store nothing waits here; one that is not there either is a slip."""
    from archiver.catalog import Catalog
    from archiver.errors import NoSuchRunError

    for name in sorted(names):
        if not Catalog(setup).numbers(name):
            raise NoSuchRunError(
                f"there is no run {name}: it is neither in the spool of this machine nor in the store",
                remedy="`archiver sync --list --all` shows what is here, `archiver list` what is there",
            )


def _store_id(settings: Settings) -> str | None:
    """The id of the store that is meant; None where it cannot be known without asking a server."""
    from archiver.setup import contents
    from archiver.setup.remote import is_remote, store_options
    from archiver.store import open_store

    if settings.store.id is not None:
        return settings.store.id
    store = open_store(settings.store.url or contents.default_store(), options=store_options(settings))
    try:
        return None if is_remote(store) else contents.store_id(store)
    except ArchiverError:
        return None


def _deliver(setup: Setup, waiting: Sequence[Listed], as_json: bool) -> list[Delivered]:
    from archiver import syncing
    from archiver.cli.progress import shown

    with shown(as_json) as progress:
        return list(syncing.deliver(setup, waiting, progress=progress))


def _end(rows: Sequence[Delivered], as_json: bool, error: ArchiverError | None) -> None:
    """Say what came of it; ends with the code of what went wrong."""
    from archiver.cli import output, problems
    from archiver.cli.program import described
    from archiver.cli.text import counted

    broken = [(row.run, row.error) for row in rows if row.error is not None]
    if as_json:
        document = {
            "runs": [_document(row) for row in rows],
            "error": described(error) if error else None,
        }
        output.document(document)
    elif not rows:
        output.line("Nothing waits for the store.")
    else:
        columns = ("RUN", "DELIVERED", "WAITING", "FORKS", "ERROR")
        output.table(columns, [_cells(row) for row in rows], middle=("RUN",))
    for warning in (warning for row in rows for warning in row.warnings):
        output.problem("warning", warning, None, style="1;33")
    problems.report((f"run {run}: {one}", one) for run, one in broken)
    if error is not None:
        left = sum(row.left for row in rows)
        output.note(f"Nothing was delivered: {counted(left, 'object')} of {counted(len(rows), 'run')} wait.")
        raise error
    if broken:
        codes = {one.exit_code for _, one in broken}
        raise typer.Exit(4 if 4 in codes else max(codes))


def _cells(row: Delivered) -> tuple[object, ...]:
    return row.run, row.delivered, row.left, row.forks, type(row.error).__name__ if row.error else ""


def _document(row: Delivered) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "run": row.run,
        "delivered": row.delivered,
        "waiting": row.left,
        "forks": row.forks,
        "warnings": list(row.warnings),
        "error": described(row.error) if row.error else None,
    }


def _show(found: Sequence[Listed], hidden: int, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted, size
    from archiver.model import utc_text

    if as_json:
        entries = [_entry(one) | {"at": utc_text(one.at)} for one in found]
        output.document({"spool": entries, "delivered_not_shown": hidden})
        return
    columns = ("RUN", "NO", "KIND", "STATE", "SIZE", "SINCE", "WRONG")
    rows = [
        (
            *(one.run, one.seq or "", one.kind, one.state),
            *(size(one.size) if output.tty() else one.size, output.when(one.at), one.error),
        )
        for one in found
    ]
    output.table(columns, rows, middle=("RUN",), fold=("WRONG",))
    if hidden:
        output.note(f"{counted(hidden, 'record')} besides: delivered, and kept; --all shows what.")


def _entry(one: Listed) -> dict[str, Any]:
    return {
        "store": one.store,
        "run": one.run,
        "seq": one.seq,
        "kind": one.kind or None,
        "state": one.state,
        "bytes": one.size,
        "path": str(one.path),
        "error": one.error or None,
    }


def _drop(found: Sequence[Listed], named: str, *, yes: bool, as_json: bool) -> None:
    """Show the forks of that number, and remove them if that is confirmed."""
    from archiver.cli import output
    from archiver.errors import NoSuchRunError
    from archiver.spool.listing import drop_fork

    run, _, seq = named.rpartition(":")
    if not run or not seq.isascii() or not seq.isdigit():
        raise UsageError(
            f"--drop-fork takes RUN:SEQ, not {named!r}", remedy="`archiver sync --list` has both"
        )
    chosen = [one for one in found if (one.state, one.run, one.seq) == ("fork", run, int(seq))]
    if not chosen:
        raise NoSuchRunError(
            f"there is no fork {seq} of run {run}", remedy="`archiver sync --list` shows forks"
        )
    if yes:
        for one in chosen:
            drop_fork(one)
    if as_json:
        output.document({"removed": yes, "forks": [_entry(one) for one in chosen]})
        return
    for one in chosen:
        output.line(f"{'Removed' if yes else 'Would remove'} {one.path}")
    if not yes:
        output.note("Nothing was changed: --yes removes it for good.")
