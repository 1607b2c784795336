"""All that lies in a store under a run: every object, every version, every marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from archiver import layout
from archiver.errors import (
    InvalidNameError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
    StoreUnreachableError,
)
from archiver.layout import Kind
from archiver.model.record import RetentionClass
from archiver.parallel import in_order
from archiver.store import Guarded, ObjectStore, Remote, Versioned

UNVERSIONED: Final = "null"
"""The id of the one version of an object that was put while the bucket kept none."""

_PREFIXES = {
    "bundle": layout.bundles_prefix,
    "record": layout.records_prefix,
    "effect": layout.effects_prefix,
    "audit": layout.audit_prefix,
    "note": layout.notes_prefix,
}
NOT_HELD: Final[frozenset[RetentionClass | None]] = frozenset(
    ("live", "intermediate", "success", "failure", "record", None)
)
"""Classes of what may be removed when somebody asks for it."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object, one version of it, or a marker that hides the versions before it."""

    name: str
    kind: Kind
    seq: int | None
    size: int
    modified: datetime
    version: str | None = None
    """None where the store keeps no versions, or does not list them."""
    latest: bool = True
    deleted: bool = False

    @property
    def plain(self) -> bool:
        """Whether a request without a version is about it."""
        return self.version is None or (self.latest and self.version == UNVERSIONED)


def of_run(store: ObjectStore, run: str, kinds: Iterable[Kind]) -> Iterator[Item]:
    """What lies under the run, kind by kind, by name, of each name the newest first.

    What no part of this product makes is passed over. Hints are found by a look at all of them. Raises the
    store's errors; `StoreDeniedError` where versions may not be listed, for then nothing is known of them.
    """
    for kind in kinds:
        prefix = layout.INDEX if kind == "index" else _PREFIXES[kind](run)
        for item in _listed(store, prefix):
            if item is not None and item[0] == run:
                yield item[1]


def class_of(store: ObjectStore, item: Item) -> RetentionClass | None:
    """The class tag of that version; None also where it is gone."""
    try:
        if item.plain or not isinstance(store, Versioned):
            return store.class_of(item.name)
        return store.class_of_version(item.name, item.version or "")
    except ObjectNotFoundError:
        return None


def classes_of(store: ObjectStore, items: Sequence[Item]) -> list[RetentionClass | None]:
    """The class tags of these versions, in their order."""
    workers = store.parallel if isinstance(store, Remote) and len(items) > 1 else 1
    return list(in_order(lambda item: class_of(store, item), items, workers=workers))


def retag(store: ObjectStore, item: Item, retention: RetentionClass) -> bool:
    """Change the class tag of that version; False where it is gone meanwhile."""
    try:
        if item.plain or not isinstance(store, Versioned):
            store.retag(item.name, retention)
        else:
            store.retag_version(item.name, item.version or "", retention)
    except ObjectNotFoundError:
        return False
    return True


def remove(store: ObjectStore, item: Item) -> bool:
    """Remove that version for good, or that marker; False, and it stays, where it is on hold.

    In a folder the tag is looked at under its lock. `StoreDeniedError` where a lock protects it.
    """
    if isinstance(store, Guarded):
        return store.delete_if(item.name, NOT_HELD)
    if not item.deleted and class_of(store, item) == "hold":
        return False
    if item.version is None or not isinstance(store, Versioned):
        store.delete(item.name)
    else:
        store.delete_version(item.name, item.version)
    return True


def hide(store: ObjectStore, item: Item) -> bool:
    """The same by a plain delete: where the store keeps versions, that only hides it."""
    if isinstance(store, Guarded):
        return store.delete_if(item.name, NOT_HELD)
    if class_of(store, item) == "hold":
        return False
    store.delete(item.name)
    return True


def _listed(store: ObjectStore, prefix: str) -> Iterator[tuple[str, Item] | None]:
    if isinstance(store, Versioned):
        try:
            for one in store.versions(prefix):
                yield _item(one.name, one.size, one.modified, one.version, one.latest, one.deleted)
        except (StoreDeniedError, StoreUnreachableError):
            raise
        except StoreError:  # the server has no such list, so it keeps nothing that is not listed plainly
            for info in store.list(prefix):
                yield _item(info.name, info.size, info.modified)
        return
    for info in store.list(prefix):
        yield _item(info.name, info.size, info.modified)


def _item(
    name: str,
    size: int,
    modified: datetime,
    version: str | None = None,
    latest: bool = True,
    deleted: bool = False,
) -> tuple[str, Item] | None:
    try:
        place = layout.parse(name)
    except InvalidNameError:
        return None
    if place.run is None:
        return None
    return place.run, Item(name, place.kind, place.seq, size, modified, version, latest, deleted)
