"""What a shell offers when a word is completed: quick, and silent whatever is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import typer

_MOST: Final = 200
"""Names that are offered at most."""
_ACCEPTED: Final = (
    "age", "approvals", "budget", "credentials", "effects", "git_branch", "git_commit", "git_dirty",
    "harness", "installed", "lockfiles", "model", "platform", "prompt", "remote_head", "rollback", "runtime",
    "tools", "upstream",
)  # fmt: skip
"""What `--accept` takes, but for probes of the user's own."""


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Run ids of a store in a folder; a server is not asked while somebody types."""
    try:
        return list(islice(_runs(ctx, incomplete), _MOST))
    except Exception:  # whatever it is, the command itself says it
        return []


def spooled(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of runs that wait on this machine, of whatever store."""
    try:
        return list(islice(_spooled(ctx, incomplete), _MOST))
    except Exception:  # as above
        return []


def accepted(incomplete: str) -> list[str]:
    """Words of `--accept`."""
    return [word for word in _ACCEPTED if word.startswith(incomplete)]


def _runs(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    from archiver import layout
    from archiver.cli.options import settings_of
    from archiver.setup.contents import default_store
    from archiver.setup.remote import is_remote
    from archiver.store import open_store

    asked: dict[str, Any] = {**(ctx.parent.params if ctx.parent else {}), **ctx.params}
    settings = settings_of(asked.get("config"), asked.get("store"))
    store = open_store(settings.store.url or default_store())
    if is_remote(store):
        return
    last = None
    for info in store.list(layout.RECORDS):
        run = layout.parse(info.name).run
        if run is not None and run != last and run.startswith(incomplete) and run.isprintable():
            yield run
        last = run


def _spooled(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    from archiver import layout
    from archiver.cli.options import settings_of
    from archiver.spool import disk, listing
    from archiver.spool.spool import place

    asked: dict[str, Any] = {**(ctx.parent.params if ctx.parent else {}), **ctx.params}
    for folder in listing.spools(place(settings_of(asked.get("config")))):
        for run in map(layout.decode_run, disk.names(folder)):
            if run.startswith(incomplete) and run.isprintable():
                yield run
