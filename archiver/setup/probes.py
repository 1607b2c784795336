"""Objects that only try a store out, under names that nobody reads."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from archiver import layout
from archiver.config import Settings
from archiver.errors import StoreError
from archiver.setup.remote import is_remote, store_options
from archiver.store import ObjectStore

Remove = Callable[[Sequence[str]], Iterable[str]]
"""Removes the objects with these names as far as the store permits, and gives those that stay."""


class Probes:
    """Names for probes; at the end of the `with` they are removed as far as the store permits."""

    def __init__(self, run: str, remove: Remove) -> None:
        self._run = run
        self._remove = remove
        self._names: list[str] = []
        self.left: tuple[str, ...] = ()
        """Those that stay: their maker may not delete, as is right for a writer, or they are locked."""

    def name(self) -> str:
        """A new name, one of `run`, which is one of `layout`'s for probes."""
        self._names.append(layout.effect_name(self._run, secrets.token_hex(16)))
        return self._names[-1]

    def forget(self, name: str) -> None:
        """No object has come to be under this name."""
        self._names.remove(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.left = tuple(self._remove(self._names))


def remover(store: ObjectStore, settings: Settings) -> Remove:
    """What removes probes from the store."""
    if not is_remote(store):
        return lambda names: (name for name in names if not _deleted(store, name))
    from archiver.store.probe.removal import remove  # it loads boto3
    from archiver.store.s3.address import parse
    from archiver.store.s3.client import S3

    s3 = S3(parse(store.url), store_options(settings))
    return lambda names: remove(s3, names)


def _deleted(store: ObjectStore, name: str) -> bool:
    try:
        store.delete(name)
    except StoreError:
        return False
    return True
