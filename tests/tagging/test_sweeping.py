"""A whole store: each run is looked at once, and again when something came to it or its time has come."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import many
import pytest

from archiver import layout, noting
from archiver.catalog import Catalog
from archiver.errors import StoreUnreachableError
from archiver.setup import Setup
from archiver.store.decorated import Decorated
from archiver.tagging import Settled, sweep
from archiver.tagging.memory import Memory, Remembered
from tagging.conftest import bundle_tags, older

RUNS = 12


@pytest.fixture
def runs(setup: Setup) -> list[str]:
    many.fill(setup, range(RUNS), 7)
    return sorted(map(many.name_of, range(RUNS)))


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


class Counting(Decorated):
    """Counts what is asked of a store."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    def _call(self, verb: str, work: Callable[[], Any]) -> Any:
        with self.lock:
            self.asked[verb] += 1
        return super()._call(verb, work)


def swept(
    setup: Setup, memory: Path | None, *, later: timedelta = timedelta(), **more: bool
) -> list[Settled]:
    return list(sweep(setup, memory=memory, now=datetime.now(UTC) + later, **more))


def test_the_second_sweep_asks_for_three_lists_alone(setup: Setup, runs: list[str], memory: Path) -> None:
    planned = swept(setup, memory, dry_run=True)
    assert {bundle_tags(setup, run)[0] for run in runs} == {"live"}
    first = swept(setup, memory)
    assert first == planned
    assert [one.run for one in first] == runs
    assert all(len(one.changes) == 6 for one in first)
    for run in runs:
        outcome = Catalog(setup).chain(run).head.record.outcome
        final = "success" if outcome == "succeeded" else "failure"
        assert bundle_tags(setup, run) == ["intermediate"] * 2 + [final] * 5
    counting = Counting(setup.store)
    assert swept(replace(setup, store=counting), memory) == []
    assert counting.asked == {"list": 3}
    assert [one.changes for one in swept(setup, None)] == [()] * RUNS


def test_a_run_to_which_something_came_is_looked_at_again(
    setup: Setup, runs: list[str], memory: Path, tmp_path: Path
) -> None:
    swept(setup, memory)
    task = Catalog(setup).chain(runs[3]).head.record.task
    noting.put_note(setup, runs[3], task, "hold", last=7)
    orphan = layout.bundle_name(runs[5], 9, secrets.token_hex(8))
    setup.store.create(orphan, [b"x"], retention="live")
    assert [(one.run, one.held) for one in swept(setup, memory)] == [(runs[3], True), (runs[5], False)]
    assert set(bundle_tags(setup, runs[3])) == {"hold"}
    swept(setup, memory)
    assert swept(setup, memory) == []
    effect = layout.effect_name(runs[3], secrets.token_hex(16))
    setup.store.create(effect, [b"x"], retention="record")
    assert [one.run for one in swept(setup, memory)] == [runs[3]]
    assert setup.store.class_of(effect) == "hold"
    older(tmp_path / "store", orphan, 2 * 86400 + 5)
    assert [one.changes[0].name for one in swept(setup, memory)] == [orphan]
    assert swept(setup, memory) == []


def test_an_orphan_is_looked_at_again_when_its_time_has_come(setup: Setup, memory: Path) -> None:
    orphan = layout.bundle_name("nobody", 1, secrets.token_hex(8))
    setup.store.create(orphan, [b"x"], retention="live")
    assert [one.changes for one in swept(setup, memory)] == [()]
    assert swept(setup, memory, later=timedelta(days=1)) == []
    (found,) = swept(setup, memory, later=timedelta(days=2, seconds=1))
    assert found.changes[0].to == setup.store.class_of(orphan) == "intermediate"


def test_other_settings_are_a_reason_to_look_again(setup: Setup, runs: list[str], memory: Path) -> None:
    swept(setup, memory)
    ring = setup.settings.run.model_copy(update={"ring": 2})
    fewer = replace(setup, settings=setup.settings.model_copy(update={"run": ring}))
    assert {len(one.changes) for one in swept(fewer, memory)} == {3}
    assert swept(fewer, memory) == []


def test_a_damaged_run_is_said_each_time_and_keeps_no_other_from_being_settled(
    setup: Setup, runs: list[str], memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "store" / layout.record_name(runs[0], 2)).write_bytes(b"damaged")
    first = swept(setup, memory)
    assert len(first) == RUNS
    assert [bool(one.warnings) for one in first] == [True] + [False] * (RUNS - 1)
    (again,) = swept(setup, memory)
    assert again.run == runs[0]
    assert again.warnings == first[0].warnings


class Away(Decorated):
    """A store of which some runs cannot be read."""

    def __init__(self, inner: Any, runs: set[str]) -> None:
        super().__init__(inner)
        self.runs = runs

    def list(self, prefix: str = "") -> Any:
        if any(layout.bundles_prefix(run) == prefix for run in self.runs):
            raise StoreUnreachableError("away")
        return super().list(prefix)


def test_a_run_that_cannot_be_reached_is_an_answer_and_a_store_is_an_error(
    setup: Setup, runs: list[str], memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = swept(replace(setup, store=Away(setup.store, {runs[2]})), memory)
    assert [one.run for one in found if one.error] == [runs[2]]
    assert [one.run for one in swept(setup, memory)] == [runs[2]]
    monkeypatch.setattr("archiver.tagging.sweeping.OUTAGE", 3)
    with pytest.raises(StoreUnreachableError):
        swept(replace(setup, store=Away(setup.store, set(runs))), None)


def test_names_of_runs_that_start_alike_are_not_mixed_up(setup: Setup, memory: Path) -> None:
    for run in ("a", "a-b", "a.b", "a0", "ä", "a b"):
        for seq in (1, 2):
            name = layout.bundle_name(run, seq, secrets.token_hex(8))
            setup.store.create(name, [b"x"], retention="live")
        setup.store.create(layout.note_name(datetime.now(UTC), run, "0" * 16), [b"x"], retention="hold")
    found = [one.run for one in swept(setup, memory)]
    assert sorted(found) == sorted({"a", "a-b", "a.b", "a0", "ä", "a b"})


# --- the memory -----------------------------------------------------------------------------------------


def test_the_memory_is_private_and_its_loss_costs_time_alone(
    setup: Setup, runs: list[str], memory: Path
) -> None:
    swept(setup, memory)
    (file,) = memory.iterdir()
    assert file.name == f"{setup.store_id}.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(memory.stat().st_mode) == 0o700
    file.unlink()
    assert [one.changes for one in swept(setup, memory)] == [()] * RUNS
    assert swept(setup, memory) == []


@pytest.mark.parametrize(
    "damage",
    [
        "text",
        "version",
        *(pytest.param(one, marks=pytest.mark.soak) for one in ("middle", "table", "folder")),
    ],
)
def test_a_damaged_memory_is_put_aside(setup: Setup, runs: list[str], memory: Path, damage: str) -> None:
    swept(setup, memory)
    file = memory / f"{setup.store_id}.sqlite"
    if damage == "text":
        file.write_bytes(b"no database " * 1000)
    elif damage == "middle":
        data = bytearray(file.read_bytes())
        data[4096:] = os.urandom(len(data) - 4096)
        file.write_bytes(data)
    elif damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        words = "DROP TABLE runs; CREATE TABLE runs (x)" if damage == "table" else "PRAGMA user_version = 9"
        with sqlite3.connect(file) as database:
            database.executescript(words)
        database.close()
    assert len(swept(setup, memory)) == RUNS
    assert len(swept(setup, memory)) == (RUNS if damage == "folder" else 0)


def test_no_folder_for_the_memory_is_no_error(setup: Setup, runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert len(swept(setup, tmp_path / "file" / "memory")) == RUNS


def test_two_processes_remember_in_one_file(tmp_path: Path) -> None:
    one, other = Memory(tmp_path, "0" * 32), Memory(tmp_path, "0" * 32)
    at = datetime(2026, 5, 1, tzinfo=UTC)
    one.put([Remembered("a", "1", at, held=True)])
    other.put([Remembered("b", "2")])
    assert one.of("b") == Remembered("b", "2")
    assert other.of("a") == Remembered("a", "1", at, held=True)
    one.put([Remembered("a", "3")])
    assert other.of("a") == Remembered("a", "3")
    assert other.of("c") is None
    one.close()
    assert one.of("a") is None
    assert Memory(None, "0" * 32).of("a") is None


def test_what_was_seen_is_kept_when_nobody_wants_the_rest(
    setup: Setup, runs: list[str], memory: Path
) -> None:
    answers = sweep(setup, memory=memory, now=datetime.now(UTC))
    for _ in range(4):
        next(answers)
    answers.close()  # type: ignore[attr-defined]
    left = [one.run for one in swept(setup, memory)]
    assert left
    assert set(left) <= set(runs[3:])


def test_a_dry_run_leaves_the_memory_as_it_is(tmp_path: Path) -> None:
    written = Memory(tmp_path, "s")
    written.put([Remembered("run", "seen")])
    written.close()
    file = tmp_path / "s.sqlite"
    os.utime(file, ns=(1, 1))
    before = (file.read_bytes(), file.stat().st_mtime_ns, sorted(tmp_path.iterdir()))
    reader = Memory(tmp_path, "s", read_only=True)
    assert reader.of("run") == Remembered("run", "seen")
    reader.put([Remembered("run", "other")])
    reader.close()
    assert (file.read_bytes(), file.stat().st_mtime_ns, sorted(tmp_path.iterdir())) == before
    assert Memory(tmp_path / "none", "s", read_only=True).of("run") is None
    assert not (tmp_path / "none").exists()
