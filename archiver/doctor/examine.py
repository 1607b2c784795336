"""Look at the store, then at the keys; what cannot be looked at is said, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from archiver.config import Settings
from archiver.doctor import away, in_use, keys, memory, room
from archiver.doctor.check import Check, failed
from archiver.errors import ArchiverError
from archiver.setup.contents import default_store
from archiver.setup.remote import is_remote, store_options
from archiver.store import open_store


def examine(
    settings: Settings, *, repair: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[Check]:
    """Check after check, as they are made. `repair` aborts uploads that dead writers left.

    Leaves nothing behind in the store where it may delete. Never raises what a check is about.
    """
    held = keys.hold(settings)
    remote = False
    try:
        store = open_store(settings.store.url or default_store(), options=store_options(settings))
    except ArchiverError as error:
        yield failed("store", error)
    else:
        remote = is_remote(store)
        if remote:
            from archiver.doctor.s3 import Examination  # not for folders: it loads boto3

            yield from Examination(settings, store.url, held, repair=repair, now=now).checks()
        else:
            from archiver.doctor import folder

            yield from folder.checks(settings, store)
        yield from memory.checks(settings, store)
    yield from room.checks(settings)
    yield from keys.examine(settings, held, remote=remote)
    yield from away.checks(settings, held)
    yield from in_use.checks(settings, held)
