"""The store for the audit of its rules, also for who administers a bucket and opens nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.errors import ContextMismatchError
from archiver.setup import Setup, contents, keys
from archiver.setup.contents import default_store
from archiver.setup.remote import store_options
from archiver.sign import SigningKey
from archiver.store import open_store
from archiver.writers import Writers

if TYPE_CHECKING:
    from archiver.config import Settings


def without_identity(settings: Settings) -> Setup:
    """The store, whose id has to be the configured one, without anything that opens what lies in it."""
    store = open_store(settings.store.url or default_store(), options=store_options(settings))
    store_id = contents.store_id(store)
    if settings.store.id not in (None, store_id):
        raise ContextMismatchError(
            f"the store at {store.url} has the id {store_id}, but store.id is {settings.store.id}",
            remedy="this is another store than the one that was set up: check store.url before anything else",
        )
    signing_key: SigningKey | None = keys.load_signing_key(settings)
    return Setup(store, store_id, keys.recipients(settings, ()), (), signing_key, Writers(), settings)
