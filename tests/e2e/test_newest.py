"""The newest runs through hints: as the records say, whatever the hints say; missing ones are no damage."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from many import START, fill, name_of

from archiver import layout, newest
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog, Head
from archiver.errors import StoreDeniedError
from archiver.newest import place
from archiver.setup import Setup
from archiver.verify import verify

RUNS = 20


@pytest.fixture
def full(setup: Setup) -> Setup:
    """Twenty runs of three checkpoints, the later the higher their number."""
    fill(setup, range(RUNS), 3)
    return setup


def hint(setup: Setup, at: datetime, run: str, seq: int) -> None:
    setup.store.create(layout.index_name(at, run, seq), (), retention="record")


def names(setup: Setup, limit: int, **options: Any) -> list[str]:
    return [head.run for head in newest.newest(setup, limit, **options).heads]


def later(number: int) -> list[str]:
    """The last so many runs, newest first."""
    return [name_of(at) for at in range(RUNS - 1, RUNS - 1 - number, -1)]


@pytest.mark.parametrize("limit", [1, 5, RUNS, RUNS + 7])
def test_the_same_as_of_all_runs(full: Setup, limit: int) -> None:
    expected = sorted(Catalog(full).heads(), key=place)[:limit]
    found = newest.newest(full, limit)
    assert list(found.heads) == expected
    assert found.stopped == ""
    assert names(full, limit) == later(min(limit, RUNS))


def test_a_save_leaves_a_hint_and_the_newest_is_found(setup: Setup, note: Path) -> None:
    for run in ("first", "second", "first"):
        done = archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=run)))
        assert done.warnings == (
            "the format of the transcript is not known: redacted, kept whole, not compacted",
        )
    assert names(setup, 5) == ["first", "second"]
    hints = [layout.parse(info.name) for info in setup.store.list(layout.INDEX)]
    assert [(name.run, name.seq) for name in hints] == [("first", 2), ("second", 1), ("first", 1)]
    assert {setup.store.head(info.name).retention for info in setup.store.list(layout.INDEX)} == {"record"}
    assert {info.size for info in setup.store.list(layout.INDEX)} == {0}


def test_hints_that_lie_change_nothing(full: Setup, tmp_path: Path) -> None:
    far = START + timedelta(days=4000)
    hint(full, far, "never-was", 1)
    hint(full, far, name_of(3), 3)  # a time that its record does not have
    hint(full, far + timedelta(days=1), name_of(2), 77)  # a number that is not there
    hint(full, START - timedelta(days=4000), name_of(19), 1)
    for garbage in ("0000000000000", "zzz", "0000000000000-run-00000000", "0000000000000-~zz-00000001"):
        (tmp_path / "store" / "index" / garbage).touch()
    assert names(full, 4) == later(4)
    assert names(full, RUNS + 5) == later(RUNS)


def test_runs_hinted_into_the_future_do_not_push_out_the_newest(full: Setup) -> None:
    """As many as are asked for: still those that are found are the newest."""
    for number in range(10):
        hint(full, START + timedelta(days=4000 + number), name_of(number), 3)
    assert names(full, 5) == later(5)


def test_a_missing_hint_is_made_up_for_by_an_older_one(full: Setup, tmp_path: Path) -> None:
    """The truth is read from the records: a stale number leads to the newest one."""
    for info in list(full.store.list(layout.INDEX)):
        name = layout.parse(info.name)
        if name.run == name_of(19) and name.seq != 1:
            full.store.delete(info.name)
    (head,) = newest.newest(full, 1).heads
    assert (head.run, head.seq) == (name_of(19), 3)


def test_a_run_without_hints_is_only_in_the_full_list(full: Setup) -> None:
    for info in list(full.store.list(layout.INDEX)):
        if layout.parse(info.name).run == name_of(19):
            full.store.delete(info.name)
    assert names(full, 3) == [name_of(at) for at in (18, 17, 16)]
    assert name_of(19) in {head.run for head in Catalog(full).heads()}


def test_only_wanted_runs_count(full: Setup) -> None:
    def failed(head: Head) -> bool:
        return head.record is not None and head.record.outcome == "failed"

    assert names(full, 3, wanted=failed) == [name_of(at) for at in (15, 10, 5)]


def test_a_run_that_cannot_be_read_is_shown_with_its_error(full: Setup, tmp_path: Path) -> None:
    (tmp_path / "store" / layout.record_name(name_of(18), 3)).write_bytes(b"garbage")
    found = newest.newest(full, 3).heads
    assert [(head.run, head.error is not None) for head in found] == [
        (name_of(18), True),
        (name_of(19), False),
        (name_of(17), False),
    ]


def test_the_search_is_bounded_and_says_so(full: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    for seq in range(4, 100):
        hint(full, START + timedelta(days=1, seconds=seq), name_of(0), seq)
    assert names(full, 3) == later(3)
    monkeypatch.setattr(newest, "MAX_HINTS", 100)
    found = newest.newest(full, 3)
    assert found.stopped.startswith("the search for the newest runs ended after 100 hints of 3 runs: `list`")
    assert {head.run for head in found.heads} == {name_of(0), name_of(18), name_of(19)}
    monkeypatch.setattr(newest, "MAX_HINTS", 20_000)
    monkeypatch.setattr(newest, "MAX_RUNS", 4)
    assert newest.newest(full, 3).stopped == ""
    assert "4 runs" in newest.newest(full, 5).stopped


def test_a_hint_that_cannot_be_written_is_a_warning(setup: Setup, note: Path, tmp_path: Path) -> None:
    (tmp_path / "store" / "index").touch()  # a file where a folder belongs
    done = archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id="r")))
    assert done.record.seq == 1
    (warning,) = [text for text in done.warnings if "hint" in text]
    assert warning.startswith("checkpoint 1 of run r is saved, but `list --newest` may miss it")
    assert len(Catalog(setup).chain("r").links) == 1


def test_a_store_that_takes_no_hints_takes_the_checkpoint(setup: Setup, note: Path) -> None:
    class Full:
        """Refuses hints; everything else is the store inside."""

        def create(self, name: str, *rest: Any, **options: Any) -> Any:
            if name.startswith(layout.INDEX):
                raise StoreDeniedError(f"{name} is refused")
            return setup.store.create(name, *rest, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(setup.store, name)

    source, options = Source(paths=(note,)), Options(given=Given(run_id="r"))
    done = archive(source, replace(setup, store=Full()), options=options)
    assert [text for text in done.warnings if "is refused" in text]
    assert names(setup, 1) == []
    assert archive(source, setup, options=options).record.seq == 2
    assert names(setup, 1) == ["r"]


def test_verify_notes_what_has_no_record(full: Setup) -> None:
    assert [finding for finding in verify(full) if finding.note.startswith("no record")] == []
    hint(full, START, "never-was", 1)
    hint(full, START, name_of(3), 4)
    lost = layout.bundle_name("never-was", 1, 16 * "0")
    full.store.create(lost, [b"lost"], retention="live")
    findings = list(verify(full))
    assert [finding for finding in findings if not finding.ok] == []
    noted = {(f.object.partition("/")[0], f.run, f.seq) for f in findings if f.note.startswith("no record")}
    assert noted == {
        ("bundles", "never-was", None),
        ("index", "never-was", 1),
        ("index", name_of(3), 4),
    }
    runs = [finding.run for finding in findings if finding.object.startswith(layout.RECORDS)]
    assert runs == sorted(runs, key=str)
    assert len(runs) == 3 * RUNS


def test_death_between_record_and_hint(reopen: Callable[[], Setup], note: Path) -> None:
    """SIGKILL right after the commit: the checkpoint is there, and only the hint is missing."""
    setup = reopen()
    source, options = Source(paths=(note,)), Options(given=Given(run_id="r"))
    archive(source, setup, options=Options(given=Given(run_id="before")))

    class Dying:
        def create(self, name: str, *rest: Any, **more: Any) -> Any:
            if name.startswith(layout.INDEX):
                os.kill(os.getpid(), 9)
            return setup.store.create(name, *rest, **more)

        def __getattr__(self, name: str) -> Any:
            return getattr(setup.store, name)

    child = os.fork()
    if child == 0:
        archive(source, replace(setup, store=Dying()), options=options)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9
    assert len(Catalog(setup).chain("r").links) == 1
    assert names(setup, 5) == ["before"]
    assert archive(source, reopen(), options=options).record.seq == 2
    assert names(setup, 5) == ["r", "before"]
