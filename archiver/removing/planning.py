"""What there is of a run, and what stands against its removal; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from archiver import inventory, noting
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, NoSuchRunError, RunHeldError
from archiver.inventory import Item
from archiver.layout import Kind
from archiver.model import utc_text
from archiver.model.record import Record, RetentionClass
from archiver.notes import Believed
from archiver.shellwords import run_word

if TYPE_CHECKING:
    from archiver.setup import Setup

What = Literal["remove", "erase"]
RECENT: Final = timedelta(days=1)
"""How long after its newest record a run that has not ended counts as one that goes on."""
KINDS: Final[dict[What, tuple[Kind, ...]]] = {
    "remove": ("bundle", "effect"),
    "erase": ("bundle", "effect", "audit", "index", "note", "record"),
}
"""In the order in which they go: bundles first, for they are what nobody is to have; records last, so that a
run of which something is left is found by its id."""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a run."""

    run: str
    task: str
    last: int | None
    """Number of its newest record; None where it has none."""
    items: tuple[Item, ...]
    """Every version and marker of what would go."""
    classes: tuple[RetentionClass | None, ...]
    """Their class tags, in the same order."""
    goes_on: str = ""
    """Why it seems to be still going on, in words."""
    tombstone: Believed | None = None
    warnings: tuple[str, ...] = ()

    @property
    def objects(self) -> int:
        return len({item.name for item in self.items if not item.deleted})

    @property
    def versions(self) -> int:
        return sum(not item.deleted for item in self.items)

    @property
    def bytes(self) -> int:
        return sum(item.size for item in self.items)


def look(run: str, setup: Setup, what: What, now: datetime) -> Found:
    """Look at the run; what is damaged can be removed as well as what is whole.

    Raises `NoSuchRunError` for a run of which nothing is there, `RunErasedError` for one to be removed that
    was erased, `RunHeldError` for one that is on hold or has an object that is, and the store's errors.
    """
    catalog = Catalog(setup)
    tombstone = catalog.notes.newest(run, "erase")
    if tombstone is not None and what == "remove":
        raise noting.erased(run, tombstone)
    refuse_held(run, setup, catalog)
    stones = {one.name for one in catalog.notes.of(run) if one.note.kind == "erase"}
    items = tuple(item for item in inventory.of_run(setup.store, run, KINDS[what]) if item.name not in stones)
    tagged = [item for item in items if not item.deleted and item.kind not in ("note", "index")]
    tags = dict(zip(tagged, inventory.classes_of(setup.store, tagged), strict=True))
    held = [item for item, tag in tags.items() if tag == "hold"]
    if held:
        more = f" and {len(held) - 1} more" if len(held) > 1 else ""
        raise _on_hold(run, f"{held[0].name}{more} of run {run} has the tag `hold`")
    record, last = _newest(run, catalog, bool(items) or tombstone is not None)
    return Found(
        run,
        record.task if record else tombstone.note.task if tombstone else run,
        last or (tombstone.note.last if tombstone else None),
        items,
        tuple(tags.get(item) for item in items),
        _goes_on(record, now),
        tombstone,
        noting.doubted(run, catalog.notes),
    )


def refuse_held(run: str, setup: Setup, catalog: Catalog | None = None) -> None:
    """`RunHeldError` where a believed note says that the run is on hold."""
    notes = (catalog or Catalog(setup)).notes
    if notes.standing(run).held is None:
        return
    note = notes.newest(run, "hold")
    raise _on_hold(run, f"run {run} is {noting.words(note)}" if note else f"run {run} is on hold")


def stopped(run: str, name: str) -> RunHeldError:
    """The error of a run that was put on hold while it was removed: what is left stays."""
    return _on_hold(run, f"{name} was put on hold meanwhile, so it stays, and what comes after it")


def _on_hold(run: str, said: str) -> RunHeldError:
    return RunHeldError(
        said,
        remedy="find out who needs it; `archiver release` with the run's id "
        f"({run_word(run)}) ends the hold, and then run this again",
    )


def _newest(run: str, catalog: Catalog, something: bool) -> tuple[Record | None, int | None]:
    """The newest record that can be read, and the number of the newest that is there."""
    try:
        beginning = catalog.beginning(run)
    except NoSuchRunError:
        if not something:
            raise
        return None, None
    record = beginning.links[-1].record if beginning.links else None
    if beginning.error is not None:
        try:
            head = catalog.newest_of(run)
        except ArchiverError:
            head = None
        record = head.record if head is not None and head.record is not None else record
    return record, beginning.newest


def _goes_on(record: Record | None, now: datetime) -> str:
    if record is None or record.outcome != "running" or now - record.recorded_at > RECENT:
        return ""
    verb = "was claimed" if record.kind == "claim" else "was saved"
    return f"it has not ended, and {verb} on {utc_text(record.recorded_at)}: whoever runs it may save more"
