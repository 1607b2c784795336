"""What every store must do with objects, whatever kind it is; tried with probes that nobody reads."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from archiver import layout
from archiver.config import Settings
from archiver.doctor.check import Check, failed, failure, ok, unknown, warning
from archiver.errors import (
    ArchiverError,
    ConfigError,
    ContextMismatchError,
    DigestMismatchError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
)
from archiver.model.record import RetentionClass
from archiver.parallel import in_order
from archiver.setup import contents
from archiver.store import ObjectInfo, ObjectStore, Remote

LISTED: Final = 2000
SAMPLE: Final = 100
"""Objects that are listed, and of those how many are asked for their class."""

_SIZE = 200_000
_SHOWN = 3


ClassOf = Callable[[str], RetentionClass | None]
"""The class of an object, or `StoreDeniedError` where it may not be seen."""


def store_id(store: ObjectStore, settings: Settings) -> Check:
    """Whether this is the store that was set up."""
    name = "store id"
    configured = settings.store.id
    try:
        found = contents.store_id(store)
    except ObjectNotFoundError:
        remedy = "mount it, or correct store.url; if there was never a store here, `archiver init` makes one"
        if configured is not None:
            remedy = f"check store.url; if it is right, the next archive writes {layout.STORE} again"
        return failure(name, f"there is no {layout.STORE}, so this is no store (yet)", remedy, ConfigError)
    except ArchiverError as error:
        return failed(name, error)
    if configured is None:
        return ok(name, f"{found}; no store.id is configured, so another store would not be noticed")
    if configured != found:
        return failure(
            name,
            f"this store has {found}, but store.id is {configured}",
            "this is another store than the one that was set up: check store.url before anything else",
            ContextMismatchError,
        )
    return ok(name, f"{found}, as configured")


def round_trip(store: ObjectStore, name: str) -> Check:
    """Whether what is read is what was put, whole and from the middle."""
    check = "round trip"
    body = secrets.token_bytes(_SIZE)
    try:
        info = store.create(name, [body[:100], body[100:]], retention="live")
        whole = store.read(name, limit=2 * _SIZE)
        with store.open(name, offset=_SIZE // 2) as file:
            rest = file.read()
    except StoreDeniedError as error:
        return unknown(check, f"these credentials may not read back what they put: {error}")
    except ArchiverError as error:
        return failed(check, error)
    if (whole, rest, info.size) == (body, body[_SIZE // 2 :], _SIZE):
        return ok(check, f"{_SIZE // 1000} kB came back as they were put, whole and from the middle")
    longer = " with something added, such as the checksum that was sent behind it" if body in whole else ""
    return failure(
        check,
        f"an object came back other than it was put{longer}",
        "do not use this store; where a server keeps checksums inside objects, "
        'store.checksums = "off" may help',
        DigestMismatchError,
    )


def tags(store: ObjectStore, name: str, class_of: ClassOf) -> Check:
    """Whether the class of an object is kept, at first and when it changes; the object is there, as live."""
    check = "class tags"
    try:
        first = class_of(name)
        store.retag(name, "intermediate")
        second = class_of(name)
        store.retag(name, "live")
    except StoreDeniedError as error:
        return unknown(check, f"these credentials may not read or change them: {error}")
    except ArchiverError as error:
        return failed(check, error)
    if (first, second) == ("live", "intermediate"):
        return ok(check, "kept when an object is put, and when they change")
    when = "when an object is put" if first != "live" else "when they change"
    return failure(
        check,
        f"lost {when}: no rule can tell what may expire",
        "nothing will ever expire here; use a server that keeps the tags of objects",
        StoreError,
    )


def classes(store: ObjectStore, class_of: ClassOf) -> Check:
    """Whether objects have a class; without one they never expire. Of many objects a sample is asked."""
    check = "classes"
    try:
        listed = list(islice(store.list(), LISTED + 1))
        found = [info for info in listed[:LISTED] if not layout.is_probe(info.name)]
        sample = found if len(found) <= SAMPLE else random.sample(found, SAMPLE)
        workers = store.parallel if isinstance(store, Remote) else 1
        without = [
            name
            for name in in_order(lambda info: _unclassed(info, class_of), sample, workers=workers)
            if name
        ]
    except StoreDeniedError as error:
        return unknown(check, f"these credentials may not look: {error}")
    except ArchiverError as error:
        return failed(check, error)
    count = "one object" if len(found) == 1 else f"{len(found)} objects"
    of = f"the first {LISTED} objects" if len(listed) > LISTED else count
    seen = of if len(sample) == len(found) else f"a sample of {len(sample)} of {of}"
    if not without:
        return ok(check, f"each has one: {seen}" if sample else "no objects yet")
    shown = ", ".join(without[:_SHOWN]) + (", …" if len(without) > _SHOWN else "")
    return warning(
        check,
        f"{len(without)} of {seen} without one, so never to expire: {shown}",
        "find out who put them there; what belongs to no run can be removed by hand",
    )


def _unclassed(info: ObjectInfo, class_of: ClassOf) -> str | None:
    try:
        return info.name if class_of(info.name) is None else None
    except ObjectNotFoundError:
        return None  # removed since it was listed


def left_over(store: ObjectStore) -> Iterator[Check]:
    """Probes that stay, of this visit and of others."""
    try:
        count = sum(
            1
            for run in (layout.INIT_PROBES, layout.DOCTOR_PROBES)
            for _ in islice(store.list(layout.effects_prefix(run)), LISTED)
        )
    except ArchiverError:
        return  # what keeps a listing from working has been said
    if count:
        yield ok(
            "probes",
            f"{count} lie in the store and nobody reads them: who made them may not delete, as is right",
        )
