"""What has expired in a folder is removed: there no rule of a bucket does it.

The class tag and the age decide, as a rule would: days from the settings, age from the later one of the times
of the store and of the record. Classes are settled first. Bundles go before what they need and before their
records; the records of a run go together, the newest first, for a chain without its beginning cannot be
verified. Hints and audit go by their own age. Nothing without a class and nothing on hold is ever removed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from archiver import audit, layout, retention
from archiver.catalog import Beginning, Catalog
from archiver.errors import (
    ArchiverError,
    InvalidNameError,
    ObjectNotFoundError,
    RefusedError,
    StoreError,
    UsageError,
)
from archiver.layout import ParsedName
from archiver.model import utc_text
from archiver.model.record import RetentionClass
from archiver.store import Guarded, ObjectInfo
from archiver.tagging.settling import settle

if TYPE_CHECKING:
    from archiver.setup import Setup

AHEAD: Final = timedelta(days=30)
"""How much later than the newest object the clock of this machine may be without a person's word for it."""
FRESH: Final = timedelta(days=1)
"""What is younger may have been written by the very clock that is asked about: a sweep before an expiry."""
QUIET: Final = timedelta(days=100)
"""How much later it may be than the newest object older than that; a store may be used once a quarter."""
BEHIND: Final = timedelta(minutes=5)
"""How much earlier, for the clock of the machine that a folder on a network lies on."""


@dataclass(frozen=True, slots=True)
class Expired:
    """An object that has had its time."""

    name: str
    run: str
    size: int
    retention: RetentionClass
    since: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What would go, in the order in which it goes."""

    expired: tuple[Expired, ...]
    kept: int
    """Objects that stay."""
    doubt: str = ""
    """What is wrong with the clock, as it seems."""
    warnings: tuple[str, ...] = ()

    def totals(self) -> dict[RetentionClass, tuple[int, int]]:
        """Objects and bytes by class."""
        return totals(self.expired)


@dataclass(frozen=True, slots=True)
class Done:
    """What was removed."""

    removed: tuple[Expired, ...]
    kept: tuple[str, ...]
    """Names of what stays after all, because somebody has changed the class of it, or of what it is with."""
    warnings: tuple[str, ...] = ()


def totals(expired: Sequence[Expired]) -> dict[RetentionClass, tuple[int, int]]:
    """Objects and bytes by class."""
    objects: Counter[RetentionClass] = Counter(one.retention for one in expired)
    sizes: Counter[RetentionClass] = Counter()
    for one in expired:
        sizes[one.retention] += one.size
    return {name: (count, sizes[name]) for name, count in sorted(objects.items())}


def plan(setup: Setup, *, now: datetime | None = None, tick: Callable[[], None] = lambda: None) -> Plan:
    """What has expired; nothing is changed.

    Raises `UsageError` for a bucket, whose rules do this, and the store's errors.
    """
    demand_folder(setup)
    return _Look(setup, now or datetime.now(UTC), tick, dry_run=True).plan()


def expire(
    setup: Setup,
    *,
    now: datetime | None = None,
    now_is_right: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> Done:
    """Settle classes, then remove what has expired. Can be run again after an interruption.

    Raises as `plan`; `RefusedError` where the clock of this machine seems to be wrong, unless somebody says
    that it is right; and `AuditError`, before anything is done.
    """
    store, now = demand_folder(setup), now or datetime.now(UTC)
    doubt = doubtful([info.modified for info in setup.store.list()], now)
    if doubt and not now_is_right:
        raise RefusedError(
            doubt, remedy="set the clock; if it is right, `archiver expire --yes --now-is-right` goes on"
        )
    audit_said = audit.note(setup, "expire", run=None, detail={"now": utc_text(now)})
    found = _Look(setup, now, lambda: None, dry_run=False).plan()
    removed, kept = [], []
    stays: set[str] = set()
    for one in found.expired:
        # Where one object was held meanwhile, what it needs stays too, and so does what it is known by.
        if one.run not in stays and store.delete_if(one.name, (one.retention,)):
            removed.append(one)
        else:
            kept.append(one.name)
            stays.add(one.run)
        tick()
    return Done(tuple(removed), tuple(kept), (*audit_said, *found.warnings))


def demand_folder(setup: Setup) -> Guarded:
    """The store, if it is a folder; `UsageError` for a bucket."""
    store = setup.store
    if isinstance(store, Guarded):
        return store
    raise UsageError(
        f"{store.url} is a bucket, in which its lifecycle rules remove what has expired",
        remedy="see `archiver lifecycle show`",
    )


def doubtful(written: Collection[datetime], now: datetime) -> str:
    """Why the clock seems to be wrong, by when objects of the store were written; empty if it does not."""
    if not written:
        return ""
    newest = max(written)
    if newest - now > BEHIND:
        return (
            f"the clock of this machine says {utc_text(now)}, and the newest object of the store is of "
            f"{utc_text(newest)}: one of the two is wrong"
        )
    what, limit = "the newest object of the store", AHEAD
    if now - newest < FRESH:
        what, limit = f"{what} that is older than a day", QUIET
        newest = max((at for at in written if now - at >= FRESH), default=newest)
    if now - newest > limit:
        return (
            f"the clock of this machine says {utc_text(now)}, and {what} is of {utc_text(newest)}, more than "
            f"{limit.days} days before: by a clock that is ahead, what is young would be removed"
        )
    return ""


class _Look:
    """One look at a whole store."""

    def __init__(self, setup: Setup, now: datetime, tick: Callable[[], None], *, dry_run: bool) -> None:
        self._setup, self._now, self._tick, self._dry_run = setup, now, tick, dry_run
        self._days = setup.settings.retention.days
        self._warnings: list[str] = []
        self._kept = 0

    def plan(self) -> Plan:
        """Run by run."""
        runs: dict[str, list[tuple[ParsedName, ObjectInfo]]] = defaultdict(list)
        written = []
        for info in self._setup.store.list():
            written.append(info.modified)
            try:
                place = layout.parse(info.name)
            except InvalidNameError:
                continue
            if place.run is not None and place.kind != "note":
                runs[place.run].append((place, info))
        found: list[Expired] = []
        for run in sorted(runs):
            expired = list(self._of_run(run, runs[run]))
            self._kept += len(runs[run]) - len(expired)
            found += expired
            self._tick()
        return Plan(tuple(found), self._kept, doubtful(written, self._now), tuple(self._warnings))

    def _of_run(self, run: str, objects: list[tuple[ParsedName, ObjectInfo]]) -> Iterator[Expired]:
        """What of the run has expired. Where all of it is young nothing else is asked of it."""
        least = min(count for count in self._days.values() if count is not None)
        if not any(_after(info.modified, least) <= self._now for _, info in objects):
            return
        catalog = Catalog(self._setup)
        kinds = {place.kind for place, _ in objects}
        changes = self._settled(run, catalog) if kinds & {"record", "bundle"} else {}
        if self._may_be_held(run, catalog):
            return
        times = _times(self._known(run, catalog) if "record" in kinds else None)
        expired = {}
        for place, info in objects:
            told = max(filter(None, (info.modified, times.get(info.name), place.at)))
            one = self._expired(run, info, changes.get(info.name), told)
            if one is not None:
                expired[info.name] = one
        yield from _in_turn(objects, expired)

    def _may_be_held(self, run: str, catalog: Catalog) -> bool:
        """Whether it is on hold; a note that does not open here may say so."""
        try:
            if catalog.notes.standing(run).held is not None:
                return True
            wrong = catalog.notes.unread(run)
            said = f"a note cannot be believed: {wrong.error}" if wrong else ""
        except StoreError:
            raise
        except ArchiverError as error:
            said = str(error)
        if said:
            self._warnings.append(f"run {run} stays, for it may be on hold: {said}")
        return bool(said)

    def _known(self, run: str, catalog: Catalog) -> Beginning | None:
        """The records of the run as far as they can be read; of the others the store's time alone counts."""
        try:
            found = catalog.beginning(run)
        except ArchiverError as error:
            self._warnings.append(f"run {run}: its records cannot be read: {error}")
            return None
        if found.error is not None:
            self._warnings.append(f"run {run}: {found.error}")
        return found

    def _settled(self, run: str, catalog: Catalog) -> dict[str, RetentionClass]:
        """Classes that have changed, or would, by name."""
        try:
            done = settle(self._setup, run, now=self._now, catalog=catalog, dry_run=self._dry_run)
        except ArchiverError as error:
            self._warnings.append(f"run {run}: its classes are as they were: {error}")
            return {}
        self._warnings.extend(done.warnings)
        return {change.name: change.to for change in done.changes}

    def _expired(self, run: str, info: ObjectInfo, to: RetentionClass | None, at: datetime) -> Expired | None:
        """The object as one that has had its time; None where it has not, or nobody knows its age."""
        try:
            has = to or self._setup.store.class_of(info.name)
        except ObjectNotFoundError:
            return None
        count = self._days[has] if has is not None else None
        if has is None or count is None or at < retention.BEGINNING:
            return None
        since = _after(at, count)
        if since > self._now:
            return None
        why = f"class {has}, {count} days from {at.date().isoformat()}"
        return Expired(info.name, run, info.size, has, since, why)


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def _after(at: datetime, days: int) -> datetime:
    try:
        return at + timedelta(days=days)
    except OverflowError:
        return _NEVER


def _times(known: Beginning | None) -> dict[str, datetime]:
    """When records say that they and their bundles were made, by name."""
    found = {}
    for link in known.links if known is not None else ():
        found[link.info.name] = link.record.recorded_at
        if link.record.bundle is not None:
            found[link.record.bundle.name] = link.record.recorded_at
    return found


def _in_turn(objects: list[tuple[ParsedName, ObjectInfo]], expired: dict[str, Expired]) -> Iterator[Expired]:
    """What has expired, bundles first, the newest of them first; records last, if none of the run stays."""
    order = ("bundle", "effect", "audit", "index", "record")
    whole = all(info.name in expired for place, info in objects if place.kind in ("bundle", "record"))
    found = [(place, expired[info.name]) for place, info in objects if info.name in expired]
    found.sort(key=lambda pair: (order.index(pair[0].kind), -(pair[0].seq or 0), pair[1].name))
    yield from (one for place, one in found if place.kind != "record" or whole)
