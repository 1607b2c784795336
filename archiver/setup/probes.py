"""Objects that only try a store out, under names that nobody reads."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from archiver import layout
from archiver.config import Settings
from archiver.errors import StoreError
from archiver.setup.remote import is_remote, store_options
from archiver.store import ObjectStore


class Probes:
    """Names for probes; at the end of the `with` they are removed as far as the store permits."""

    def __init__(self, store: ObjectStore, run: str, settings: Settings) -> None:
        self._store = store
        self._run = run
        self._settings = settings
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
        self.left = tuple(self._removed())

    def _removed(self) -> Iterator[str]:
        if is_remote(self._store):
            from archiver.store.probe.removal import remove  # it loads boto3
            from archiver.store.s3.address import parse
            from archiver.store.s3.client import S3

            yield from remove(S3(parse(self._store.url), store_options(self._settings)), self._names)
            return
        for name in self._names:
            try:
                self._store.delete(name)
            except StoreError:
                yield name
