"""Many runs in one store: the newest record of each, chains, and what is wrong with one run alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from many import fill, name_of

from archiver import layout
from archiver.catalog import Catalog
from archiver.errors import ChainError, MissingRecordError, StoreUnreachableError
from archiver.setup import Setup
from archiver.store import ObjectInfo, open_store

RUNS = 24


class Counting:
    """Counts what lists give out; everything else is the store inside."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.given = 0

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for info in self._store.list(prefix):
            self.given += 1
            yield info

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def full(setup: Setup) -> Setup:
    """A store with runs of three checkpoints each."""
    fill(setup, range(RUNS), 3)
    return setup


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_the_newest_record_of_each_run(full: Setup, workers: int) -> None:
    heads = list(Catalog(full, workers=workers).heads())
    assert [head.run for head in heads] == sorted(name_of(number) for number in range(RUNS))
    assert {(head.seq, head.record.seq if head.record else 0) for head in heads} == {(3, 3)}
    assert list(Catalog(full).runs()) == [head.run for head in heads]


def test_what_is_wrong_with_a_run_stays_with_it(full: Setup, tmp_path: Path) -> None:
    victim = name_of(5)
    (tmp_path / "store" / layout.record_name(victim, 3)).write_bytes(b"garbage")
    heads = {head.run: head for head in Catalog(full).heads()}
    assert len(heads) == RUNS
    assert [run for run, head in heads.items() if head.error] == [victim]
    error = heads[victim].error
    assert error is not None
    assert error.__traceback__ is None, "it would hold on to everything that was read"


def test_runs_stream_through(full: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first heads come before the list has ended, and the threads end with the iteration."""
    monkeypatch.setattr("archiver.catalog.GROUP", 2)
    store = Counting(full.store)
    heads = Catalog(replace(full, store=store), workers=2).heads()
    next(heads)
    assert store.given <= 3 * 14
    heads.close()  # type: ignore[attr-defined]
    before = store.given
    assert before < 3 * RUNS


def test_an_outage_is_not_told_run_by_run(full: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    class Down:
        """Lists still answer; every object takes all attempts in vain."""

        def __init__(self, broken: set[str]) -> None:
            self._broken = broken

        def read(self, name: str, *, limit: int) -> bytes:
            if name.split("/")[1] in self._broken:
                raise StoreUnreachableError(f"{name}: no answer")
            return full.store.read(name, limit=limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(full.store, name)

    monkeypatch.setattr("archiver.catalog.OUTAGE", 5)
    runs = list(Catalog(full).runs())
    apart = Catalog(replace(full, store=Down({*runs[:4], *runs[5:9]})))
    assert sum(head.error is not None for head in apart.heads()) == 8
    seen = []
    with pytest.raises(StoreUnreachableError, match="no answer"):
        for head in Catalog(replace(full, store=Down(set(runs[7:])))).heads():
            seen.append(head.run)  # noqa: PERF401 - what came before the error counts
    assert seen == runs[:11]


@pytest.mark.parametrize("workers", [1, 8])
def test_a_chain_read_in_parallel_is_checked_in_order(setup: Setup, tmp_path: Path, workers: int) -> None:
    fill(setup, range(2), 9)
    run = name_of(0)
    catalog = Catalog(setup, workers=workers)
    chain = catalog.chain(run)
    assert [link.record.seq for link in chain.links] == list(range(1, 10))
    records = tmp_path / "store" / "records"
    # Two things are wrong: the one that comes first in the chain is told.
    shutil.copy(records / name_of(1) / "00000008.age", records / run / "00000008.age")
    _put_in_another_history(setup, tmp_path, run)
    with pytest.raises(ChainError, match="record 5 does not follow the record 4"):
        catalog.chain(run)
    assert len(catalog.chain(run, upto=4).links) == 4
    (records / run / "00000003.age").unlink()
    with pytest.raises(MissingRecordError, match="record 3 is missing"):
        catalog.chain(run)


def _put_in_another_history(setup: Setup, folder: Path, run: str) -> None:
    """Record 5 of the same run, signed by the same writer, that follows another record 4."""
    other = open_store(str(folder / "other"), make=True)
    fill(replace(setup, store=other), range(1), 5)
    name = layout.record_name(run, 5)
    shutil.copy(folder / "other" / name, folder / "store" / name)
