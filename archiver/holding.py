"""A run is kept without end, and is not any more: hold and release.

The note comes first, then the tag of every version of every object: rules of a bucket know tags alone. Both
can be run again at any time, and then do what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from archiver import audit, inventory, noting
from archiver.catalog import Beginning, Catalog
from archiver.errors import RunHeldError
from archiver.inventory import Item
from archiver.layout import Kind
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.retention import Standing
from archiver.shellwords import run_word
from archiver.tagging.settling import settle

if TYPE_CHECKING:
    from archiver.setup import Setup

KINDS: Final[tuple[Kind, ...]] = ("bundle", "record", "effect", "audit")
"""What is held; notes are never removed by age, and hints say nothing that records do not."""
_PASSES: Final = 3
"""Looks at a run that goes on meanwhile; what comes later is for the sweeper, or for the next call."""
_Kind = Literal["hold", "release"]


@dataclass(frozen=True, slots=True)
class Changed:
    """What was found, and what was done or (`dry_run`) would be."""

    run: str
    note: str
    """The note that says so, in words; empty where there is none."""
    objects: int
    versions: int
    changed: int
    """Versions whose tag was another one."""
    bytes: int
    dry_run: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Call:
    """What was asked for, and what is known of the run."""

    setup: Setup
    kind: _Kind
    reason: str
    now: datetime
    known: Beginning
    standing: Standing
    seen: frozenset[str]
    """Names of the notes that were there."""
    tick: Callable[[], None]

    @property
    def run(self) -> str:
        return self.known.run

    @property
    def task(self) -> str:
        return self.known.links[-1].record.task


def hold(
    run: str,
    setup: Setup,
    *,
    reason: str,
    dry_run: bool = False,
    tick: Callable[[], None] = lambda: None,
    now: datetime | None = None,
) -> Changed:
    """Keep all of the run until it is released.

    Raises `NoSuchRunError`, `RunErasedError` (also where that came meanwhile), `UntrustedWriterError` where
    nobody would believe the note, `AuditError`, and the store's errors: then run it again.
    """
    call, warnings = _call(run, setup, "hold", reason, tick, now)
    items = _items(setup, run)
    if dry_run:
        tags = inventory.classes_of(setup.store, items)
        return _changed(call, items, sum(tag != "hold" for tag in tags), True, warnings)
    warnings += _sign(call, items, call.standing.held is None)
    changed = 0
    for _ in range(_PASSES):
        items = _items(setup, run)
        count = _tag(call, items)
        changed += count
        if not count:
            break
    return _changed(call, items, changed, False, (*warnings, *_overtaken(call)))


def release(
    run: str,
    setup: Setup,
    *,
    reason: str = "",
    dry_run: bool = False,
    tick: Callable[[], None] = lambda: None,
    now: datetime | None = None,
) -> Changed:
    """End that: what is tagged `hold` gets the class that the records give it.

    Raises the same, and `RunHeldError` where somebody else puts it on hold at the same time.
    """
    call, warnings = _call(run, setup, "release", reason, tick, now)
    items = _items(setup, run)
    held = sum(tag == "hold" for tag in inventory.classes_of(setup.store, items))
    if dry_run:
        return _changed(call, items, held, True, warnings)
    is_held = call.standing.held is not None
    if not is_held and not held:
        return _changed(call, items, 0, False, warnings)
    warnings += _sign(call, items, is_held or call.standing.released is None)
    settled = settle(setup, run, now=call.now)
    changed = sum(change.was == "hold" for change in settled.changes)
    return _changed(call, items, changed, False, (*warnings, *settled.warnings))


def _call(
    run: str, setup: Setup, kind: _Kind, reason: str, tick: Callable[[], None], now: datetime | None
) -> tuple[_Call, tuple[str, ...]]:
    catalog = Catalog(setup)
    standing = catalog.notes.standing(run)
    if kind == "hold" or standing.held is None:  # a hold that an erasure came upon can be released
        noting.refuse_erased(run, catalog.notes)
    known = catalog.beginning(run)
    if not known.links and known.error is not None:
        raise known.error
    seen = frozenset(one.name for one in catalog.notes.examined(run))
    call = _Call(setup, kind, reason, now or datetime.now(UTC), known, standing, seen, tick)
    return call, noting.doubted(run, catalog.notes)


def _items(setup: Setup, run: str) -> list[Item]:
    return [item for item in inventory.of_run(setup.store, run, KINDS) if not item.deleted]


def _sign(call: _Call, items: list[Item], anew: bool) -> tuple[str, ...]:
    """Write it down, then put the note, unless the newest one says the same already."""
    setup = replace(call.setup, why=call.setup.why or call.reason)
    noting.demand_administrator(setup, call.now)
    setup.session.tasks[call.run] = call.task
    said = audit.note(setup, call.kind, run=call.run, detail={"versions": len(items)})
    if anew:
        _put(call, call.kind, call.reason)
        _agree(call)
    return said


def _put(call: _Call, kind: _Kind, reason: str) -> None:
    noting.put_note(
        call.setup, call.run, call.task, kind, reason=reason, last=call.known.newest, now=call.now
    )


def _agree(call: _Call) -> None:
    """Of a hold and a release at the same time the hold counts, whoever's clock is ahead.

    Both look once more when their notes are there, so one of them sees the other.
    """
    notes = Notes(call.setup)
    if call.kind == "hold":
        if notes.standing(call.run).held is None:
            _put(call, "hold", call.reason)
        return
    unseen = [one for one in notes.of(call.run) if one.note.kind == "hold" and one.name not in call.seen]
    if not unseen:
        return
    if notes.standing(call.run).held is None:
        _put(call, "hold", unseen[0].note.reason)
    raise RunHeldError(
        f"run {call.run} was put on hold meanwhile: {noting.words(unseen[0])}",
        remedy="if that is to end as well, release it once more",
    )


def _overtaken(call: _Call) -> tuple[str, ...]:
    """What was removed while the note of the hold came; `RunErasedError` where all of it may be.

    Who removes looks for a hold behind the own note, and goes on without one: so whoever holds looks, too.
    """
    said = []
    for one in Notes(call.setup).of(call.run):
        if one.name not in call.seen and one.note.kind == "erase":
            error = noting.erased(call.run, one)
            error.remedy = f"what is left of it is on hold: `archiver verify {run_word(call.run)}` names it"
            raise error
        if one.name not in call.seen and one.note.kind == "remove":
            said.append(f"bundles of run {call.run} were removed meanwhile: {noting.words(one)}")
    return tuple(said)


def _tag(call: _Call, items: list[Item]) -> int:
    """Tag what is not on hold yet: bundles one by one, those first that others need. Gives how many."""
    store = call.setup.store

    def held(item: Item) -> bool:
        return inventory.class_of(store, item) != "hold" and inventory.retag(store, item, "hold")

    bundles = sorted((item for item in items if item.kind == "bundle"), key=lambda item: item.seq or 0)
    rest = [item for item in items if item.kind != "bundle"]
    count = 0
    for group, workers in ((bundles, 1), (rest, Catalog(call.setup).workers)):
        for one in in_order(held, group, workers=workers):
            count += one
            call.tick()
    return count


def _changed(
    call: _Call, items: list[Item], changed: int, dry_run: bool, warnings: tuple[str, ...]
) -> Changed:
    found = Catalog(call.setup).notes.newest(call.run, call.kind)
    return Changed(
        call.run,
        noting.words(found) if found is not None and not dry_run else "",
        len({item.name for item in items}),
        len(items),
        changed,
        sum(item.size for item in items),
        dry_run,
        warnings,
    )
