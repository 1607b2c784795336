"""Give the objects of one run the classes they should have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from archiver import clock, layout, noting, retention, rollback
from archiver.catalog import Beginning, Catalog, Chain
from archiver.errors import (
    ArchiverError,
    NoSuchRunError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
)
from archiver.model.record import RetentionClass
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.retention import Committed, Standing
from archiver.store import ObjectStore, Remote, Versioned
from archiver.tagging import merged
from archiver.tagging.planning import Change, Known, There, next_time, ordered, wanted

if TYPE_CHECKING:
    from archiver.rollback import Sight
    from archiver.setup import Setup

AGAIN: Final = timedelta(hours=1)
"""How often it is looked whether what a run made is merged: nothing in the store tells."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the classes of one run."""

    run: str
    changes: tuple[Change, ...] = ()
    """Those that were made; of a dry run those that would be."""
    warnings: tuple[str, ...] = ()
    """What was not done, and why."""
    error: ArchiverError | None = None
    """What kept the run from being looked at."""
    held: bool = False
    merged: bool = False
    """Whether it was found now that what the run made is merged."""
    due: datetime | None = field(default=None, compare=False)
    """When it has to be looked at again although nothing was added to it."""
    open: bool = field(default=False, compare=False)
    """Whether something is left to be done, so that it has to be looked at again."""


def is_sweeper(setup: Setup) -> bool:
    """Whether this machine changes the classes of what it saves: by default in a folder, not in a bucket."""
    configured = setup.settings.retention.sweeper
    return not isinstance(setup.store, Remote) if configured is None else configured


def settle(
    setup: Setup,
    run: str,
    *,
    now: datetime,
    catalog: Catalog | None = None,
    dry_run: bool = False,
    look_for_merge: bool = False,
    lately: bool = False,
) -> Settled:
    """Look at one run and change the classes that are not as they should be.

    `now` is the time by the clock of this machine; the store's own counts where that is earlier. With
    `lately`, only what the newest record of the run changes, for whoever has just written it. What the store
    may not do for this caller is a warning. Raises the other errors of the store.
    """
    known, there, warnings = _look(setup, run, catalog or Catalog(setup), now)
    sure = clock.latest_sure(now, setup.store)
    is_merged = False
    if look_for_merge and known.whole and (found := merged.look(known)) is not None:
        known, said, is_merged = merged.note(setup, run, known, found, dry_run=dry_run, now=now)
        warnings += said
    keep = setup.settings.run.ring
    wants = wanted(known, there, keep=keep, now=sure)
    if lately:
        before = Known(known.run[:-1], known.standing, known.whole)
        same = {(want.there, want.to) for want in wanted(before, there, keep=keep, now=sure)}
        wants = [want for want in wants if (want.there, want.to) not in same]
    due = next_time(known, there, sure)
    if look_for_merge and merged.may_come(known) and merged.is_here(known):
        due = min(filter(None, (due, now + AGAIN)))
    work = _Work(setup.store, known, dry_run)
    done = work.through([want.there for want in wants], lambda tags: ordered(wants, tags, known))
    settled = Settled(
        run,
        tuple(done),
        (*warnings, *work.warnings(run)),
        held=known.standing.held is not None,
        merged=is_merged,
        due=due,
        open=bool(work.denied) or not known.whole,
    )
    if dry_run or not any(change.shortens for change in done) or not _noted_since(setup, run, known):
        return settled
    again = settle(setup, run, now=now)
    return replace(again, changes=(*done, *again.changes), merged=is_merged)


def _noted_since(setup: Setup, run: str, known: Known) -> bool:
    """Whether somebody has put the run on hold, after it was looked at and before its classes were changed.

    A hold puts its note before its tags: a tag of it that was changed here has a note by now.
    """
    standing, unread = _standing(Notes(setup), run)
    return bool(unread) or (standing.held is not None and known.standing.held is None)


def after_save(setup: Setup, run: str, seq: int, *, ended: bool = True) -> tuple[str, ...]:
    """What a writer that is its own sweeper does once it has committed that record; what went wrong.

    All records of the run are read for it. So it is done when the run has `ended`, and else at numbers that
    are powers of two: however long a run gets, that reads each record about twice. The first record changes
    the class of nothing.
    """
    due = ended or seq & (seq - 1) == 0
    if seq <= 1 or not due or not is_sweeper(setup):
        return ()
    try:
        return settle(setup, run, now=datetime.now(UTC), lately=isinstance(setup.store, Remote)).warnings
    except ArchiverError as error:
        return (f"the classes of run {run} were not looked at: {error}",)


def _look(
    setup: Setup, run: str, catalog: Catalog, now: datetime
) -> tuple[Known, list[There], tuple[str, ...]]:
    """What is known of the run, and its objects as lists show them."""
    sight = _sight(run, setup)
    why = ""
    try:
        beginning = catalog.beginning(run, near=False)
        why = str(beginning.error or "") or _doubt(sight, beginning, now)
    except NoSuchRunError:
        beginning = Beginning(run, (), 0)
        gone = None if isinstance(sight, str) else sight.vanished(now)
        why = sight if isinstance(sight, str) else str(gone or "")
    except StoreError:
        raise
    except ArchiverError as error:  # more versions or notes than are looked at
        beginning, why = Beginning(run, (), 0), str(error)
    standing, unread = _standing(catalog.notes, run)
    newest, erased = beginning.newest, catalog.notes.tombstone(run)
    if erased is not None:  # what a writer has put there since is of no use to anybody
        beginning, why = Beginning(run, (), 0), ""
    why = why or unread
    committed = tuple(Committed(link.record, link.written) for link in beginning.links)
    known = Known(committed, standing, whole=not why)
    warnings: tuple[str, ...] = (f"no class of run {run} was shortened: {why}",) if why else ()
    there = list(_objects(setup.store, run, standing))
    if erased is not None and (there or newest):
        warnings += (noting.with_leavings(noting.erased(run, erased), run),)
    return known, there, warnings


def _sight(run: str, setup: Setup) -> Sight | str:
    try:
        return rollback.look(run, setup)
    except ArchiverError as error:
        return str(error)


def _doubt(sight: Sight | str, beginning: Beginning, now: datetime) -> str:
    """What speaks against a chain that holds together: more of it was seen, or another one."""
    if isinstance(sight, str):
        return sight
    try:
        sight.judge(Chain(beginning.run, beginning.links, beginning.newest), remember=False, now=now)
    except ArchiverError as error:
        return str(error)
    return ""


def _standing(notes: Notes, run: str) -> tuple[Standing, str]:
    """What notes say of it, and why that may not be all: one that cannot be read may be a hold."""
    try:
        wrong = notes.unread(run)
    except StoreDeniedError as error:
        return retention.NOTHING, f"its notes cannot be read: {error}"
    except StoreError:
        raise
    except ArchiverError as error:
        return retention.NOTHING, str(error)
    return notes.standing(run), f"a note cannot be believed: {wrong.error}" if wrong else ""


def _objects(store: ObjectStore, run: str, standing: Standing) -> Iterator[There]:
    """Bundles as they are; of a run that is or was on hold every object, in every version."""
    if standing.held is None and standing.released is None:
        yield from (There(info.name, info.modified) for info in store.list(layout.bundles_prefix(run)))
        return
    for prefix in (layout.records_prefix, layout.bundles_prefix, layout.effects_prefix, layout.audit_prefix):
        yield from _versions(store, prefix(run))


def _versions(store: ObjectStore, prefix: str) -> Iterator[There]:
    if isinstance(store, Versioned):
        found = [one for one in store.versions(prefix) if not one.deleted]
        yield from (There(one.name, one.modified, one.version) for one in found)
    else:
        yield from (There(info.name, info.modified) for info in store.list(prefix))


_Plan = Callable[[Mapping[There, RetentionClass | None]], list[Change]]


class _Work:
    """Reads and changes tags, until that is refused."""

    def __init__(self, store: ObjectStore, known: Known, dry_run: bool) -> None:
        self._store, self._known, self._dry_run = store, known, dry_run
        self.denied: dict[str, int] = {}
        """Rights that are lacking, with how many objects were left as they are."""

    def through(self, there: Sequence[There], plan: _Plan) -> list[Change]:
        """Read the present tags, and make the changes that `plan` finds; returns those."""
        changes = plan(self._tags(there))
        if self._dry_run:
            return changes
        done: list[Change] = []
        for place, change in enumerate(changes):
            try:
                if self._make(change):
                    done.append(change)
            except ObjectNotFoundError:
                continue  # it was removed, or has expired, since it was listed
            except StoreDeniedError:
                # What comes after may need what was refused: the order is what keeps it whole.
                self._refused("Put", change.version, len(changes) - place)
                break
        return done

    def warnings(self, run: str) -> Iterator[str]:
        for right, count in self.denied.items():
            objects = f"{count} object{'' if count == 1 else 's'}"
            yield f"the class of {objects} of run {run} stays as it is: {right} is not allowed here"

    def _tags(self, there: Iterable[There]) -> dict[There, RetentionClass | None]:
        todo = list(there)
        workers = self._store.parallel if isinstance(self._store, Remote) and len(todo) > 1 else 1
        return dict(in_order(self._tag, todo, workers=workers))

    def _tag(self, one: There) -> tuple[There, RetentionClass | None]:
        try:
            return one, self._present(one.name, one.version)
        except ObjectNotFoundError:
            return one, None
        except StoreDeniedError:
            self._refused("Get", one.version, 1)
            return one, None

    def _present(self, name: str, version: str | None) -> RetentionClass | None:
        if version is not None and isinstance(self._store, Versioned):
            return self._store.class_of_version(name, version)
        return self._store.class_of(name)

    def _make(self, change: Change) -> bool:
        """Change the tag, unless somebody has changed it since it was read: it may be on hold by now."""
        if change.shortens and self._present(change.name, change.version) != change.was:
            return False
        if change.version is not None and isinstance(self._store, Versioned):
            self._store.retag_version(change.name, change.version, change.to)
        else:
            self._store.retag(change.name, change.to)
        return True

    def _refused(self, verb: str, version: str | None, count: int) -> None:
        right = f"s3:{verb}Object{'' if version is None else 'Version'}Tagging"
        if not isinstance(self._store, Remote):
            right = "changing files of the store's folder" if verb == "Put" else "reading them"
        self.denied[right] = self.denied.get(right, 0) + count
