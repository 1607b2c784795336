"""Take the bundles and effects of a run away; its records stay, and say what was there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from archiver import audit, inventory, noting
from archiver.catalog import Catalog
from archiver.errors import NoSuchRunError
from archiver.inventory import Item
from archiver.removing import planning
from archiver.removing.planning import Found
from archiver.retention import NONCURRENT_DAYS
from archiver.shellwords import run_word

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Removed:
    """What was done."""

    run: str
    note: str
    """The note that says so, in words."""
    objects: int
    bytes: int
    hidden: int
    """Versions that the bucket still keeps, below a delete marker."""
    until: datetime | None
    """When the rules of this program for the bucket remove the first of these."""
    warnings: tuple[str, ...] = ()


def remove(
    run: str,
    setup: Setup,
    *,
    reason: str = "",
    tick: Callable[[], None] = lambda: None,
    now: datetime | None = None,
) -> Removed:
    """Remove what `planning.look` finds, for good in a folder; in a bucket with versions it is hidden.

    Can be run again after an interruption. Raises as `look`, `UntrustedWriterError`, `AuditError`, and
    `RunHeldError` where somebody puts the run on hold meanwhile.
    """
    now = now or datetime.now(UTC)
    found = planning.look(run, setup, "remove", now)
    if found.last is None:
        raise NoSuchRunError(
            f"run {run} has no record that could stay",
            remedy=f"`archiver erase {run_word(run)}` removes all of it",
        )
    warnings = write_down(setup, found, "remove", reason, now)
    noting.put_note(setup, run, found.task, "remove", reason=reason, last=found.last, now=now)
    planning.refuse_held(run, setup)  # whoever holds it signs first: one of the two sees the other
    gone = [item for item in in_turn(found) if item.latest and not item.deleted]
    for item in gone:
        if not inventory.hide(setup.store, item):
            raise planning.stopped(run, item.name)
        tick()
    hidden = [
        item for item in inventory.of_run(setup.store, run, planning.KINDS["remove"]) if not item.deleted
    ]
    hidden = [item for item in hidden if not item.latest]
    note = Catalog(setup).notes.newest(run, "remove")
    return Removed(
        run,
        noting.words(note) if note is not None else "",
        len(gone),
        sum(item.size for item in gone),
        len(hidden),
        _until(hidden, found, now),
        (*found.warnings, *warnings),
    )


def write_down(
    setup: Setup, found: Found, action: planning.What, reason: str, now: datetime
) -> tuple[str, ...]:
    """The audit line, before anything is done; of an erasure only here, for the store's would go with it."""
    setup = replace(setup, why=setup.why or reason)
    noting.demand_administrator(setup, now)
    setup.session.tasks[found.run] = found.task
    detail = {"objects": found.objects, "bytes": found.bytes}
    return audit.note(setup, action, run=found.run, detail=detail, local=action == "erase")


def in_turn(found: Found) -> list[Item]:
    """Kind by kind; of bundles and records the newest first, so nothing outlives what it needs."""
    order = {kind: place for place, kind in enumerate(planning.KINDS["erase"])}
    return sorted(found.items, key=lambda item: (order[item.kind], -(item.seq or 0), item.name))


def _until(hidden: list[Item], found: Found, now: datetime) -> datetime | None:
    classes = dict(zip(((item.name, item.version) for item in found.items), found.classes, strict=True))
    tags = [classes.get((item.name, item.version)) for item in hidden]
    days = [NONCURRENT_DAYS[tag] for tag in tags if tag is not None]
    known = [count for count in days if count is not None]
    return now + timedelta(days=min(known)) if known else None
