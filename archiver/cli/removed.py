"""What `rm` and `erase` have in common: what there is, and whether it shall go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from archiver.cli import output
from archiver.cli.options import interactive
from archiver.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from archiver.removing import Found
    from archiver.removing.planning import What
    from archiver.removing.unreached import Unreached
    from archiver.setup import Setup

_GOES = {
    "remove": "Its bundles and effects go; its records stay.",
    "erase": "All of it goes for good, every version; a signed tombstone stays.",
}
_WORD = {"remove": "rm", "erase": "erase"}


def looked(run: str, setup: Setup, what: What) -> Found:
    """What there is of the run. Raises as `removing.look`."""
    from archiver import removing

    return removing.look(run, setup, what, datetime.now(UTC))


def agreed(
    found: Found,
    what: What,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    left: Callable[[], Sequence[Unreached]] | None = None,
) -> bool:
    """Whether it shall be done; of a dry run, which says what there is, it shall not.

    `left` tells what cannot be reached, so that it is seen before anything is done.
    """
    from archiver.cli.text import counted, size

    if dry_run:
        _show(found, as_json, left)
        return False
    if found.goes_on and not yes:
        raise RefusedError(
            f"run {found.run} goes on: {found.goes_on}",
            remedy=f"end it first; or `archiver {_WORD[what]}` with --yes removes what is there now",
        )
    if yes:
        return True
    if as_json or not interactive():
        raise UsageError(
            "removing has to be confirmed, and nobody is here to be asked",
            remedy="look at it with --dry-run, then run it with --yes",
        )
    _show(found, False, left)
    objects = f"{counted(found.objects, 'object')} ({size(found.bytes)})"
    output.line(_GOES[what])
    if typer.confirm(f"Remove {objects} of run {found.run}?", err=True):
        return True
    output.line("Nothing was changed.")
    return False


def warn(warnings: Iterable[str]) -> None:
    """Say what is to be said beside the result."""
    for one in warnings:
        output.problem("warning", one, None, style="1;33")


def as_data(left: Iterable[Unreached]) -> list[dict[str, str]]:
    """What is not reached, for a document."""
    return [{"kind": one.kind, "name": one.name, "said": one.said} for one in left]


def not_reached(left: Iterable[Unreached]) -> None:
    """The same as a table."""
    output.heading("Not reached")
    rows = [(one.kind, one.name, one.said) for one in left]
    output.table(("KIND", "NAME", "WHAT IS KNOWN"), rows, fold=("NAME", "WHAT IS KNOWN"))


def _show(found: Found, as_json: bool, left: Callable[[], Sequence[Unreached]] | None) -> None:
    from archiver.cli.text import counted, size

    warn(found.warnings)
    if found.goes_on:
        warn((f"the run goes on: {found.goes_on}",))
    if as_json:
        output.document(
            {
                "run": found.run,
                "dry_run": True,
                "objects": found.objects,
                "versions": found.versions,
                "bytes": found.bytes,
                "goes_on": found.goes_on or None,
                "names": sorted({item.name for item in found.items if not item.deleted}),
                **({"unreached": as_data(left())} if left is not None else {}),
            }
        )
        return
    rows = [
        (item.name, item.size if not output.tty() else size(item.size), item.version or "", state)
        for item in found.items
        for state in ("marker" if item.deleted else "hidden" if not item.latest else "",)
    ]
    output.table(("OBJECT", "SIZE", "VERSION", "STATE"), rows, middle=("OBJECT",))
    if output.tty():
        versions = f", {counted(found.versions, 'version')}" if found.versions != found.objects else ""
        output.line(f"{counted(found.objects, 'object')}{versions}, {size(found.bytes)}.")
    if left is not None:
        not_reached(left())
