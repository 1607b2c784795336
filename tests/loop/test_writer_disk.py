"""A spool that cannot be used: saved into the store directly, and kept in memory where that is away too."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archiver.config import load
from archiver.errors import AlreadyExistsError, StaleWriterError, StoreFullError, StoreUnreachableError
from archiver.loop.writer import Writer
from archiver.setup import Setup, open_setup
from archiver.spool import RunSpool, open_spool
from loop.writing import Gate, gated, notes, snapshot, writer


class FullSpool:
    """The spool of a run, whose disk is full while `full` is set."""

    def __init__(self, inner: RunSpool) -> None:
        self._inner = inner
        self.full = True
        self.refused = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def add(self, *args: Any, **kwargs: Any) -> Any:
        if self.full:
            self.refused.set()
            raise StoreFullError("the spool has no room")
        return self._inner.add(*args, **kwargs)


@pytest.fixture
def parts(setup: Setup) -> Iterator[tuple[Writer, Gate, FullSpool]]:
    through, gate = gated(setup)
    spool = FullSpool(open_spool(through).of("r", "r"))
    one = writer(through, spool=spool)  # type: ignore[arg-type]
    yield one, gate, spool
    gate.error, spool.full = None, False
    gate.free()
    one.end(5)


def test_without_a_spool_it_goes_straight_into_the_store(
    parts: tuple[Writer, Gate, FullSpool], setup: Setup
) -> None:
    one, _, spool = parts
    spool.full = False
    assert one.save(snapshot("spooled"), stored=True)
    spool.full = True
    assert one.save(taken := snapshot("direct"), stored=True)
    assert taken.ticket.seq == 2
    spool.full = False
    assert one.save(snapshot("spooled again"), stored=True)
    one.fence()
    assert notes(setup) == ["spooled", "direct", "spooled again"]


def test_what_the_spool_holds_comes_first(parts: tuple[Writer, Gate, FullSpool], setup: Setup) -> None:
    one, gate, spool = parts
    spool.full = False
    go, held, real = threading.Event(), threading.Event(), gate.create

    def create(name: str, body: Any, *, retention: Any) -> Any:
        if name.startswith("records/") and "00000001" in name:
            held.set()
            assert go.wait(120)
        return real(name, body, retention=retention)

    gate.create = create  # type: ignore[method-assign]
    assert one.save(snapshot("spooled", plain=False))
    assert held.wait(120)
    spool.full = True
    one.submit(direct := snapshot("direct", plain=False))
    assert spool.refused.wait(120)
    assert not direct.ticket.wait(0.5), "record 1 is not there yet"
    go.set()
    assert direct.ticket.wait(60, stored=True)
    assert notes(setup) == ["spooled", "direct"]


def test_with_neither_the_newest_waits_in_memory(
    parts: tuple[Writer, Gate, FullSpool], setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    one, gate, spool = parts
    gate.error = StoreUnreachableError("no route")
    one.submit(old := snapshot("old"))
    assert spool.refused.wait(120)
    mile, new, tried = snapshot("mile", plain=False), snapshot("new"), threading.Event()
    mile.ticket.listen(tried.set)
    one.submit(mile)
    one.submit(new)
    assert tried.wait(120)
    assert mile.ticket.status == "waiting"
    assert isinstance(mile.ticket.error, StoreFullError | StoreUnreachableError)
    assert not one.flush(0)
    assert one.failures
    spool.full, gate.error = False, None
    assert one.flush()
    assert [each.ticket.status for each in (old, mile, new)] == ["replaced", "stored", "stored"]
    assert notes(setup) == ["mile", "new"]
    assert "is lost" not in caplog.text


def test_what_cannot_be_saved_to_the_end_is_said_to_be_lost(
    parts: tuple[Writer, Gate, FullSpool], setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    one, gate, spool = parts
    gate.error = StoreUnreachableError("no route")
    one.submit(taken := snapshot("lost", plain=False))
    assert spool.refused.wait(120)
    one.close(0.1)
    assert not taken.ticket.wait(60)
    lost = [line for line in caplog.records if "is lost" in line.message]
    assert len(lost) == 1
    assert lost[0].levelname == "ERROR"
    assert "a milestone (lost) is lost" in lost[0].message


def test_a_full_queue_does_not_hold_the_loop_up_for_ever(setup: Setup) -> None:
    """No disk, no store: the oldest milestone goes, and only after the patience is over."""
    through, gate = gated(setup)
    gate.error = StoreUnreachableError("no route")
    spool = FullSpool(open_spool(through).of("r", "r"))
    one = writer(through, spool=spool, queue=2, patience=0.3)  # type: ignore[arg-type]
    taken = [snapshot(f"mile {number}", plain=False) for number in range(5)]
    for each in taken:
        one.submit(each)
    lost = [each for each in taken if each.ticket.status == "failed"]
    assert lost
    assert not set(lost) & set(taken[3:]), "the newest are kept"
    spool.full, gate.error = False, None
    assert one.flush(60)
    one.end(5)
    assert notes(setup) == [each.ticket.because for each in taken if each not in lost]


def test_an_answer_that_was_lost_makes_no_second_record(
    parts: tuple[Writer, Gate, FullSpool], setup: Setup
) -> None:
    one, gate, _ = parts
    creates = iter(range(100))

    def after(verb: str) -> None:
        if verb == "create" and next(creates) == 1:
            raise StoreUnreachableError("the answer was lost")

    gate.after = after
    assert one.save(taken := snapshot("once", plain=False), stored=True)
    assert taken.ticket.seq == 1
    assert one.save(snapshot("and on"), stored=True)
    assert notes(setup) == ["once", "and on"]


def test_a_record_of_somebody_else_is_not_taken_for_the_own(
    parts: tuple[Writer, Gate, FullSpool], setup: Setup
) -> None:
    one, gate, _ = parts
    real = gate.create

    def create(name: str, body: Any, *, retention: Any) -> Any:
        if name.startswith("records/"):
            setup.store.create(name, [b"somebody else's"], retention="record")
            raise AlreadyExistsError(name)
        return real(name, body, retention=retention)

    gate.create = create  # type: ignore[method-assign]
    one.submit(taken := snapshot("mine", plain=False))
    assert not taken.ticket.wait(10, stored=True)
    with pytest.raises(StaleWriterError):
        one.flush()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    if subprocess.run(["umount", place]).returncode:
        subprocess.run(["umount", "-l", place], check=True)
        pytest.fail("something on the disk is still open")


def test_a_disk_that_is_really_full(config: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch files and the spool lie on it; what was there before stays whole."""
    monkeypatch.setenv("ARCHIVER_RUN__SPOOL", str(small_disk / "spool"))
    setup = open_setup(load(config), need="write")
    through, gate = gated(setup)
    gate.error = StoreUnreachableError("no route")
    one = writer(through)
    assert one.save(snapshot("spooled", plain=False))
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(4096)):
            pass
    one.submit(waiting := snapshot("waiting", plain=False))
    assert not waiting.ticket.wait(0.3)
    gate.error = None
    assert one.flush()
    assert one.save(snapshot("direct"), stored=True)
    (small_disk / "filler").unlink()
    assert one.save(snapshot("spooled again"), stored=True)
    assert one.close()
    assert notes(setup) == ["spooled", "waiting", "direct", "spooled again"]
