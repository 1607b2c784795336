"""Run on the machine of an agent: make its store, and say at the end what the store holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from archiver.catalog import Catalog, Chain
from archiver.config import asked_for, load
from archiver.errors import ArchiverError, ConfigError
from archiver.setup import Setup, initialise, open_setup
from archiver.spool import open_spool
from archiver.verify import verify


def prepare() -> None:
    """Make the store, the keys and the configuration."""
    settings = load(without_file=True)
    if settings.store.url is None:
        raise ConfigError("no store is named for the agent under test")
    initialise(settings.store.url, asked_for(None), settings=settings, now=datetime.now(UTC))


def look() -> dict[str, Any]:
    """What is wrong in store and spool, deep; by run how it ended, and its effects left undecided."""
    setup = open_setup(load(), need="write")
    wrong = [f"{one.object}: {one.error}" for one in verify(setup, deep=True) if one.error is not None]
    return {"wrong": [*wrong, *_waiting(setup)], "runs": {run: _run(run, setup) for run in _runs(setup)}}


def tidy() -> None:
    """Remove all objects of a store that the harness made."""
    store = open_setup(load(), need="write").store
    for info in list(store.list()):
        store.delete(info.name)


def _runs(setup: Setup) -> list[str]:
    return list(Catalog(setup).runs())


def _run(run: str, setup: Setup) -> dict[str, Any]:
    try:
        chain = Catalog(setup).chain(run)
    except ArchiverError as error:
        return {"ended": f"cannot be read: {error}", "undecided": []}
    record = chain.head.record
    return {"ended": _ended(chain), "undecided": list(record.effects.undecided)}


def _ended(chain: Chain) -> str:
    return next(
        (link.record.outcome for link in reversed(chain.links) if link.record.bundle), "no checkpoint"
    )


def _waiting(setup: Setup) -> Iterator[str]:
    """What should have come into the store."""
    depth = open_spool(setup).depth()
    if depth.entries:
        yield f"{depth.entries} records or effects still wait in the spool"
    if depth.forks:
        yield f"{depth.forks} entries of the spool lost their number to somebody else"
