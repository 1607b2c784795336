"""Open a store for somebody who only copies from it, and may have no key at all."""

from __future__ import annotations

from dataclasses import replace

from archiver.config import Settings
from archiver.errors import ConfigError, KeyUnavailableError, ObjectNotFoundError, StoreUnreachableError
from archiver.setup import contents
from archiver.setup.contents import default_store
from archiver.setup.opening import Setup, open_setup
from archiver.setup.remote import is_remote, store_options
from archiver.store import open_store
from archiver.writers import Writers


def open_to_copy(settings: Settings) -> tuple[Setup, str]:
    """As `open_setup` for reading; where a key is missing, without keys, and why.

    Raises what that raises but for `KeyUnavailableError`.
    """
    try:
        return open_setup(settings, "read"), ""
    except KeyUnavailableError as error:
        store = open_store(settings.store.url or default_store(), options=store_options(settings))
        try:
            store_id: str | None = contents.store_id(store)
        except (ObjectNotFoundError, StoreUnreachableError) as missing:
            if isinstance(missing, StoreUnreachableError) and is_remote(store):
                raise
            store_id = settings.store.id
            if not contents.holds_objects(store):
                raise ConfigError(
                    f"there is no store at {store.url}", remedy="check the address with store.url or --store"
                ) from error
        return Setup(store, store_id, (), (), None, Writers(), settings), str(error)


def at_copy(setup: Setup, url: str) -> Setup:
    """The same keys and lists for a copy of objects in a folder, of which nothing is remembered."""
    return replace(setup, store=open_store(url), witness=None)
