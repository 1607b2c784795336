"""Erase a run: the tombstone, then every version of everything else, then what this machine remembers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Final

from archiver import inventory, layout, noting
from archiver.catalog import Catalog
from archiver.errors import StoreDeniedError
from archiver.inventory import Item
from archiver.notes import Notes
from archiver.removing import planning, unreached
from archiver.removing.planning import Found
from archiver.removing.removal import in_turn, write_down
from archiver.removing.unreached import Unreached
from archiver.spool import disk
from archiver.spool.folder import RunFolder
from archiver.spool.spool import place
from archiver.store import Versioned

if TYPE_CHECKING:
    from archiver.setup import Setup

_PASSES: Final = 3
"""Looks at a run that somebody saves meanwhile; what comes later goes with the next erasure."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was done, and what was not reached."""

    run: str
    note: str
    """The tombstone, in words."""
    objects: int
    versions: int
    """Versions and markers that were removed."""
    bytes: int
    local: tuple[str, ...]
    """What this machine had of it, and has no more."""
    unreached: tuple[Unreached, ...]
    warnings: tuple[str, ...] = ()


def erase(
    run: str,
    setup: Setup,
    *,
    reason: str = "",
    tick: Callable[[], None] = lambda: None,
    now: datetime | None = None,
) -> Erased:
    """Remove every version of all that lies under the run but its tombstone, and its traces here.

    Can be run again, also on what an interrupted one has left. What a lock protects is hidden and named.
    Raises as `planning.look`, `UntrustedWriterError`, `AuditError`, and `RunHeldError` where somebody puts
    the run on hold meanwhile.
    """
    now = now or datetime.now(UTC)
    found = planning.look(run, setup, "erase", now)
    left = unreached.beforehand(run, setup)
    warnings = write_down(setup, found, "erase", reason, now)
    if found.tombstone is None:
        noting.put_note(setup, run, found.task, "erase", reason=reason, last=found.last, now=now)
        planning.refuse_held(run, setup)  # whoever holds it signs first: one of the two sees the other
    work = _Work(run, setup, tick)
    work.through(found)
    said = Catalog(setup).notes.newest(run, "erase")
    return Erased(
        run,
        noting.words(said) if said is not None else "",
        len({item.name for item in work.gone if not item.deleted}),
        len(work.gone),
        sum(item.size for item in work.gone),
        _forget_here(run, setup),
        (*work.stays.values(), *left),
        (*found.warnings, *warnings),
    )


class _Work:
    """Removes, and keeps what it could not remove."""

    def __init__(self, run: str, setup: Setup, tick: Callable[[], None]) -> None:
        self._run, self._setup, self._tick = run, setup, tick
        self.gone: list[Item] = []
        self.stays: dict[tuple[str, str | None], Unreached] = {}

    def through(self, found: Found) -> None:
        """Remove it all; what was put there meanwhile too."""
        items = in_turn(found)
        for _ in range(_PASSES):
            tombstones = self._tombstones()
            for name, group in groupby(items, key=lambda item: item.name):
                if name not in tombstones:
                    self._remove(name, list(group))
                    self._tick()
            items = self._rest()
            if not items:
                return

    def _rest(self) -> list[Item]:
        """What is there still, but for tombstones and for what stays."""
        items = tuple(inventory.of_run(self._setup.store, self._run, planning.KINDS["erase"]))
        tombstones = self._tombstones()
        kept = {name for name, _ in self.stays} | tombstones
        left = tuple(item for item in items if item.name not in kept)
        return in_turn(Found(self._run, "", None, left, (None,) * len(left)))

    def _tombstones(self) -> set[str]:
        """Believed ones, also those of others who erase the run at the same time."""
        examined = Notes(self._setup).examined(self._run)
        return {
            one.name for one in examined if one.believed is not None and one.believed.note.kind == "erase"
        }

    def _remove(self, name: str, items: Sequence[Item]) -> None:
        """Bodies first: without its marker, a body that is locked would come back."""
        bodies = [item for item in items if not item.deleted]
        markers = [item for item in items if item.deleted]
        for item in bodies:
            self._one(item)
        stays = [item for item in bodies if (item.name, item.version) in self.stays]
        if not stays:
            for item in markers:
                self._one(item)
        elif not any(item.latest for item in markers) and any(item.version for item in stays):
            self._hide(name)

    def _one(self, item: Item) -> None:
        store = self._setup.store
        try:
            if item.kind in ("note", "index"):
                _plainly(item, self._setup)
            elif not inventory.remove(store, item):
                raise planning.stopped(self._run, item.name)
        except StoreDeniedError as error:
            self.stays[item.name, item.version] = unreached.version(item, self._setup, error)
        else:
            self.gone.append(item)

    def _hide(self, name: str) -> None:
        try:
            self._setup.store.delete(name)
        except StoreDeniedError:
            return


def _plainly(item: Item, setup: Setup) -> None:
    """Notes are tagged `hold` from the start, which is not the hold of a run."""
    if item.version is None or not isinstance(setup.store, Versioned):
        setup.store.delete(item.name)
    else:
        setup.store.delete_version(item.name, item.version)


def _forget_here(run: str, setup: Setup) -> tuple[str, ...]:
    """Remove what this machine keeps of the run outside the store; says what that was."""
    gone = []
    folder = place(setup.settings) / setup.require_store_id() / layout.encode_run(run)
    spooled = RunFolder(folder, setup.require_store_id(), run)
    if spooled.exists:
        with spooled.delivering(), spooled.changing(), disk.translated(folder):
            shutil.rmtree(folder)
        gone.append(f"spool {folder}")
    if setup.witness is not None and setup.store_id is not None:
        where = setup.witness.where(setup.store_id, run)
        if setup.witness.forget(setup.store_id, run):
            gone.append(f"witness {where}")
    return tuple(gone)
