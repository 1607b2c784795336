"""Many runs in one store: the newest record of each, chains, and what is wrong with one run alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from many import fill, name_of

from archiver import layout, records, restore
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.cli import program
from archiver.errors import ChainError, MissingRecordError, StoreUnreachableError
from archiver.model import Record
from archiver.setup import Setup
from archiver.store import ObjectInfo, open_store
from archiver.verify import verify

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


@pytest.mark.parametrize("which", ["recorded_at", "checkpoint_at", "created_at"])
def test_a_record_from_the_future_is_told_and_not_refused(
    setup: Setup, note: Path, which: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Order is by number alone; a clock that is ahead of the store's by more than ten minutes is said."""
    record = _saved(setup, note)
    _rewrite(setup, record, **{which: _written(setup, 1) + timedelta(minutes=10)})
    assert Catalog(setup).chain("r").warnings == ()
    _rewrite(setup, record, **{which: _written(setup, 1) + timedelta(minutes=10, seconds=1)})
    second = _saved(setup, note)
    assert second.seq == 2
    (warning,) = Catalog(setup).chain("r").warnings
    assert layout.record_name("r", 1) in warning
    assert "one of the clocks is wrong" in warning
    (finding,) = [one for one in verify(setup, "r") if one.state == "warning"]
    assert (finding.object, finding.seq, finding.ok, finding.note) == (
        layout.record_name("r", 1),
        1,
        True,
        warning,
    )
    assert warning in restore.plan("r", setup).warnings
    assert program.run("archiver", ["verify", "r", "--config", str(config)]) == 0
    assert f"warning\t{layout.record_name('r', 1)}" in capsys.readouterr().out


def test_order_is_by_number_whatever_the_times_say(setup: Setup, note: Path) -> None:
    for _ in range(3):
        _saved(setup, note)
    now = datetime.now(UTC)
    for seq, days in ((1, 1), (2, 300), (3, 30)):
        path = _at(setup, layout.record_name("r", seq))
        os.utime(path, ((now - timedelta(days=days)).timestamp(),) * 2)
    assert [link.record.seq for link in Catalog(setup).chain("r").links] == [1, 2, 3]
    head = Catalog(setup).head("r")
    assert head is not None
    assert head.record.seq == 3
    assert _saved(setup, note).seq == 4


def test_an_old_record_in_a_young_object_is_no_finding(setup: Setup, note: Path) -> None:
    """A copied store, or a saved session of last year."""
    record = _saved(setup, note)
    old = datetime(2020, 1, 1, tzinfo=UTC)
    _rewrite(setup, record, created_at=old, checkpoint_at=old, recorded_at=old)
    assert Catalog(setup).chain("r").warnings == ()


def _at(setup: Setup, name: str) -> Path:
    return Path(setup.store.url.removeprefix("file://")) / name


def _saved(setup: Setup, note: Path) -> Record:
    return archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id="r"))).record


def _written(setup: Setup, seq: int) -> datetime:
    return setup.store.head(layout.record_name("r", seq)).modified


def _rewrite(setup: Setup, record: Record, **times: datetime) -> None:
    """The same record with other times, as its writer signs it; the object keeps its time."""
    path = _at(setup, layout.record_name("r", record.seq))
    status = path.stat()
    said = record.model_copy(update=times)
    path.write_bytes(records.encode(said, setup.require_signing_key(), setup.recipients))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert setup.witness is not None
    assert setup.store_id is not None
    setup.witness.forget(setup.store_id, "r")
