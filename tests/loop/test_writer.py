"""The background writer: what is saved, what is not, and that nobody waits for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spool.making import restored

from archiver import layout
from archiver.errors import (
    ArchiverError,
    LimitExceededError,
    NotSerialisableError,
    StoreUnreachableError,
    UsageError,
)
from archiver.loop.writer import Writer
from archiver.setup import Setup
from archiver.spool import open_spool
from loop.writing import Gate, Held, gated, notes, snapshot, writer

Make = Callable[..., Writer]


@pytest.fixture
def made(setup: Setup) -> Iterator[tuple[Make, Gate]]:
    """Makes writers on a store that can be shut; all are ended."""
    through, gate = gated(setup)
    writers: list[Writer] = []

    def make(**how: Any) -> Writer:
        writers.append(writer(through, **how))
        return writers[-1]

    yield make, gate
    gate.error = None
    gate.free()
    for one in writers:
        one.end(5)


def test_what_is_submitted_is_stored_in_order(made: tuple[Make, Gate], setup: Setup, tmp_path: Path) -> None:
    one = made[0]()
    taken = [snapshot(f"note {number}", plain=False) for number in range(3)]
    for each in taken:
        one.submit(each)
    assert one.flush()
    assert [(each.ticket.status, each.ticket.seq) for each in taken] == [("stored", n) for n in (1, 2, 3)]
    assert notes(setup) == ["note 0", "note 1", "note 2"]
    assert restored(setup, tmp_path) == "note 2"
    place = one.place
    assert (place.seq, place.head and place.head.note) == (4, "note 2")
    assert one.last_seconds is not None
    assert one.close()


def test_a_newer_plain_one_takes_the_place_of_one_that_waits(made: tuple[Make, Gate], setup: Setup) -> None:
    one, held = made[0](), Held()
    one.submit(held.snapshot)
    assert held.begun.wait(120)
    plain = [snapshot(f"plain {number}") for number in range(5)]
    mile = snapshot("mile", plain=False)
    for each in (*plain[:3], mile, *plain[3:]):
        one.submit(each)
    assert [each.ticket.status for each in plain] == ["replaced"] * 4 + ["waiting"]
    held.let_go()
    assert one.flush()
    assert notes(setup) == ["held", "mile", "plain 4"]


def test_milestones_are_never_dropped_and_wait_for_room(made: tuple[Make, Gate], setup: Setup) -> None:
    one, held = made[0](queue=2), Held()
    one.submit(held.snapshot)
    assert held.begun.wait(120)
    one.submit(plain := snapshot("plain"))
    miles = [snapshot(f"mile {number}", plain=False) for number in range(4)]
    one.submit(miles[0])
    one.submit(miles[1])
    assert plain.ticket.status == "replaced", "it makes room for a milestone"
    done = threading.Event()

    def rest() -> None:
        one.submit(miles[2])
        one.submit(miles[3])
        done.set()

    thread = threading.Thread(target=rest)
    thread.start()
    assert not done.wait(0.05)
    held.let_go()
    thread.join(120)
    assert one.flush()
    assert notes(setup) == ["held", "mile 0", "mile 1", "mile 2", "mile 3"]


def test_what_waits_is_bounded_by_its_bytes(made: tuple[Make, Gate]) -> None:
    one, held = made[0](most_bytes=1000), Held()
    one.submit(held.snapshot)
    assert held.begun.wait(120)
    one.submit(snapshot("large", plain=False, size=5000))
    thread = threading.Thread(target=lambda: one.submit(snapshot("small", plain=False, size=1)))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive(), "one that is too large waits alone"
    held.let_go()
    thread.join(120)
    assert one.flush()


def test_a_store_that_hangs_keeps_nobody(made: tuple[Make, Gate], setup: Setup) -> None:
    make, gate = made
    one = make()
    gate.shut()
    taken = [snapshot(f"note {number}", plain=False) for number in range(4)]
    for each in taken:
        one.submit(each)
    assert one.drain(), "all is sealed on disk"
    assert gate.entered.wait(120)
    assert [each.ticket.status for each in taken] == ["spooled"] * 4
    assert not one.flush(0.05)
    assert not taken[0].ticket.wait(0.05, stored=True)
    gate.free()
    assert one.flush()
    assert notes(setup) == [f"note {number}" for number in range(4)]


def test_a_store_that_is_away_is_tried_again(
    made: tuple[Make, Gate], setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    make, gate = made
    gate.error = StoreUnreachableError("no route")
    one = make()
    one.submit(first := snapshot("first", plain=False))
    assert gate.entered.wait(120)
    one.submit(second := snapshot("second", plain=False))
    assert one.drain()
    assert not one.flush(0.1)
    assert isinstance(first.ticket.error, StoreUnreachableError)
    assert first.ticket.saved
    gate.error = None
    assert one.flush(), "at once, whatever the pace was"
    assert first.ticket.error is None
    assert second.ticket.status == "stored"
    assert one.failures["StoreUnreachableError"] >= 1
    said = [line for line in caplog.records if "no route" in line.message and line.levelname == "WARNING"]
    assert len(said) == 1, "said once, however often it was tried"
    assert notes(setup) == ["first", "second"]


def test_close_leaves_in_the_spool_what_the_store_does_not_take(
    made: tuple[Make, Gate], setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    make, gate = made
    gate.error = StoreUnreachableError("no route")
    one = make()
    one.submit(snapshot("kept", plain=False))
    assert not one.close(1.0)
    assert "`archiver sync` delivers" in caplog.text
    with pytest.raises(UsageError, match="closed"):
        one.submit(snapshot("late"))
    assert open_spool(setup).of("r", "r").deliver().delivered == (1,)
    assert notes(setup) == ["kept"]


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_close_does_not_wait_again_for_a_store_that_is_away(made: tuple[Make, Gate], how: str) -> None:
    """One more attempt, and its patience is a minute."""
    make, gate = made
    one = make()
    if how == "hangs":
        gate.shut()
        one.reach.missed()
    else:
        gate.error = StoreUnreachableError("no route")
    one.submit(snapshot("kept", plain=False))
    assert gate.entered.wait(120)
    closing = threading.Thread(target=one.close)
    closing.start()
    closing.join(120)
    assert not closing.is_alive()
    assert one.waiting == 1


def test_what_lies_in_the_spool_is_delivered_by_the_next_writer(
    made: tuple[Make, Gate], setup: Setup
) -> None:
    make, gate = made
    gate.error = StoreUnreachableError("no route")
    one = make()
    one.save(snapshot("first", plain=False))
    place = one.place
    assert not one.close(0)
    gate.error = None
    again = make(place=place)
    assert again.flush()
    assert notes(setup) == ["first"]
    assert again.save(snapshot("second"), stored=True)
    assert notes(setup) == ["first", "second"]


class SecretError(Exception):
    pass


def test_a_snapshot_that_cannot_be_made_fails_alone(
    made: tuple[Make, Gate], setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(error: Exception) -> Callable[[], Any]:
        def make() -> Any:
            raise error

        return make

    one = made[0]()
    bad = snapshot("bad", plain=False, make=raises(NotSerialisableError("no JSON form", path="$.x")))
    worse = snapshot("worse", plain=False, make=raises(SecretError("the word of a customer")))
    good = snapshot("good", plain=False)
    for each in (bad, worse, good):
        one.submit(each)
    assert one.flush()
    assert isinstance(bad.ticket.error, NotSerialisableError)
    assert type(worse.ticket.error) is ArchiverError
    assert "SecretError in test_writer.py" in str(worse.ticket.error)
    assert "customer" not in str(worse.ticket.error) + caplog.text
    assert [each.ticket.status for each in (bad, worse, good)] == ["failed", "failed", "stored"]
    assert notes(setup) == ["good"]


def test_a_run_has_a_limit_that_is_not_counted_anew_each_time(made: tuple[Make, Gate], setup: Setup) -> None:
    make, gate = made
    one = make()
    for number in range(2):
        assert one.save(snapshot(f"{number}"), stored=True)
    before = gate.calls["list"]
    assert one.save(snapshot("2"), stored=True)
    # The spool's look at its record, and no more: the bundles of the run are not listed again.
    assert gate.calls["list"] - before <= 1
    one.close()
    used = sum(info.size for info in setup.store.list("bundles/"))
    limits = setup.settings.limits.model_copy(update={"run": used + used // 3 + 10})
    settings = setup.settings.model_copy(update={"limits": limits})
    full = writer(replace(setup, settings=settings), place=one.place)
    try:
        assert full.save(snapshot("3"), stored=True)
        full.submit(last := snapshot("4", plain=False))
        assert full.drain()
        assert isinstance(last.ticket.error, LimitExceededError)
    finally:
        full.end(5)


def test_a_secret_that_comes_into_the_environment_is_searched_for_from_then_on(
    made: tuple[Make, Gate], setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"correct-horse-{os.getpid()}-battery-9"
    one = made[0]()
    assert one.save(snapshot(f"before {word}"), stored=True)
    monkeypatch.setenv("DEPLOY_PASSWORD", word)
    assert one.save(snapshot(f"after {word}"), stored=True)
    first, second = notes(setup)
    assert word in first
    assert word not in second


def test_a_child_that_was_forked_may_not_use_it(made: tuple[Make, Gate], setup: Setup) -> None:
    one = made[0]()
    assert one.save(snapshot("parent"), stored=True)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (
            lambda: one.submit(snapshot("child")),
            one.flush,
            one.fence,
            one.close,
            lambda: one.place,
        ):
            try:
                call()
            except UsageError as error:
                refused += "another process" in str(error)
        os.write(write, b"%d" % refused)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 9) == b"5"
    os.close(read)
    os.close(write)
    assert one.save(snapshot("parent again"), stored=True)
    assert notes(setup) == ["parent", "parent again"]


def test_an_effect_that_was_put_aside_is_delivered(made: tuple[Make, Gate], setup: Setup) -> None:
    make, gate = made
    gate.error = StoreUnreachableError("no route")
    one = make()
    name = layout.effect_name("r", "0" * 32)
    one.put_aside(name, b"sealed")
    assert not one.flush(0.1)
    gate.error = None
    assert one.flush()
    assert setup.store.read(name, limit=100) == b"sealed"
