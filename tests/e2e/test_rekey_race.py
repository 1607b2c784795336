"""A record is replaced between the moment it is listed and the moment it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from archiver import age, layout, records
from archiver.catalog import Catalog
from archiver.errors import RefusedError, UntrustedWriterError
from archiver.rekey import rekey
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.store import ObjectInfo, ObjectStore

from .rekeying import RUN, at, backdate, distrusting, names, overwrite, save, to


class _Racing:
    """A store in which a record is replaced right after it was listed."""

    def __init__(self, store: ObjectStore, replace_record: Callable[[], None]) -> None:
        self._store = store
        self._replace = replace_record
        self._done = False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        found = list(self._store.list(prefix))
        if prefix.startswith(layout.RECORDS) and not self._done:
            self._done = True
            self._replace()
        return iter(found)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_a_forgery_between_list_and_reading_gets_no_note(setup: Setup, note: Path) -> None:
    """A stolen key is distrusted from a day on; its holder puts a forgery where an old record was listed."""
    save(setup, note)
    save(setup, note)
    now = datetime.now(UTC)
    backdate(setup, now - timedelta(days=30), "records/", "bundles/")
    operator = SigningKey.generate()
    new = age.X25519Identity.generate()
    trusted = distrusting(to(setup, new), now - timedelta(days=10), operator.public)
    head = Catalog(setup).head(RUN)
    assert head is not None
    assert head.record is not None
    forged = head.record.model_copy(update={"objective": "FORGED"})
    sealed = records.encode(forged, setup.require_signing_key(), setup.recipients)
    place = at(setup, layout.record_name(RUN, 2))
    racing = _Racing(trusted.store, lambda: overwrite(place, sealed))
    careful = replace(trusted, signing_key=operator, store=cast("ObjectStore", racing))
    failed = next(rekey([RUN], careful))
    assert isinstance(failed.error, RefusedError)
    assert "was changed while it was looked at" in str(failed.error)
    assert names(trusted, "notes/") == []
    with pytest.raises(UntrustedWriterError):
        Catalog(trusted).chain(RUN)
