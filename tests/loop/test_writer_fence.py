"""Two copies of one run: the writer that lost it finds out, and its effects before they happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Queue
from typing import Any

import pytest
from spool.making import checkpoint

from archiver import position
from archiver.archive import Options, Source, archive
from archiver.errors import ArchiverError, StaleWriterError, StoreDeniedError, StoreUnreachableError
from archiver.loop.writer import Writer
from archiver.setup import Setup
from archiver.spool import open_spool
from loop.writing import PATIENCE, Gate, Held, gated, notes, snapshot, writer


@pytest.fixture
def pair(setup: Setup) -> Iterator[tuple[Writer, Gate]]:
    through, gate = gated(setup)
    one = writer(through)
    yield one, gate
    gate.error = None
    gate.free()
    one.end(5)


def compete(setup: Setup, note: str = "theirs") -> None:
    """Another process commits the next record of the run."""
    archive(Source(checkpoint=checkpoint("r", note)), setup, options=Options(capture=False))


def refuses_all(one: Writer) -> None:
    calls: tuple[Callable[[], Any], ...] = (
        one.raise_if_stale,
        lambda: one.submit(snapshot("more")),
        one.flush,
        one.drain,
        one.fence,
    )
    for call in calls:
        with pytest.raises(StaleWriterError):
            call()


def test_a_fence_lets_through_who_has_the_run(pair: tuple[Writer, Gate], setup: Setup) -> None:
    one, gate = pair
    one.fence()
    gate.shut()
    one.submit(taken := snapshot("mine", plain=False))
    assert one.drain()
    gate.free()
    one.fence()
    assert taken.ticket.status == "stored", "all that has a number is delivered first"


def test_a_fence_stops_who_has_lost_it(pair: tuple[Writer, Gate], setup: Setup) -> None:
    one, _ = pair
    one.save(snapshot("mine"), stored=True)
    compete(setup)
    with pytest.raises(StaleWriterError, match="taken over: record 2"):
        one.fence()
    refuses_all(one)
    with pytest.raises(StaleWriterError):
        one.close()
    assert notes(setup) == ["mine", "theirs"]


def test_a_fence_waits_for_the_number_that_is_being_given(pair: tuple[Writer, Gate], setup: Setup) -> None:
    """Or it would ask for a number that is its own a moment later."""
    one, _ = pair
    one.submit((held := Held()).snapshot)
    assert held.begun.wait(120)
    held.let_go()
    one.fence()
    assert one.place.seq == 2


def test_what_another_writer_overtook_becomes_a_fork(pair: tuple[Writer, Gate], setup: Setup) -> None:
    one, gate = pair
    gate.shut()
    mine = [snapshot(f"mine {number}", plain=False) for number in range(2)]
    for each in mine:
        one.submit(each)
    assert one.drain()
    compete(setup)
    one.submit((held := Held()).snapshot)
    assert held.begun.wait(120)
    one.submit(waiting := snapshot("waiting"))
    gate.free()
    for each in mine:
        assert not each.ticket.wait(10, stored=True)
        assert each.ticket.status == "failed"
        assert isinstance(each.ticket.error, StaleWriterError)
    held.let_go()
    assert not waiting.ticket.wait(10)
    assert not held.snapshot.ticket.wait(10)
    refuses_all(one)
    assert [fork.seq for fork in open_spool(setup).of("r", "r").forks()] == [1, 2]
    assert notes(setup) == ["theirs"]


@pytest.mark.parametrize("how", ["away", "denied", "hangs"])
def test_a_fence_that_cannot_be_known_is_an_error(setup: Setup, how: str) -> None:
    through, gate = gated(setup)
    one = writer(through, patience=0.3)
    expected: type[ArchiverError] = StoreUnreachableError
    if how == "hangs":
        gate.shut()
    else:
        expected = StoreDeniedError if how == "denied" else StoreUnreachableError
        gate.error = expected("not now")
    started = time.monotonic()
    with pytest.raises(expected):
        one.fence()
    assert time.monotonic() - started < 30
    gate.error = None
    gate.free()
    one.raise_if_stale()
    replace_patience(one)
    one.fence()
    one.end(5)


def replace_patience(one: Writer) -> None:
    """More of it, for a machine that is busy."""
    one.patience = PATIENCE


def test_a_fence_while_the_sealing_hangs_is_an_error(setup: Setup) -> None:
    one = writer(setup, patience=0.3)
    one.submit((held := Held()).snapshot)
    assert held.begun.wait(120)
    with pytest.raises(StoreUnreachableError, match="being sealed"):
        one.fence()
    held.let_go()
    one.end(20)
    assert notes(setup) == ["held"]


def test_a_glance_waits_for_nothing_and_sees_who_was_first(pair: tuple[Writer, Gate], setup: Setup) -> None:
    one, gate = pair
    held = threading.Event()

    def after(verb: str) -> None:
        assert verb != "create" or held.wait(PATIENCE)

    gate.after = after
    one.submit(snapshot("mine", plain=False))
    assert one.drain()
    one.glance()
    compete(setup)
    held.set()
    with pytest.raises(StaleWriterError):
        one.glance()
    assert notes(setup) == ["theirs"]


def test_a_fence_that_waits_for_a_delivery_hears_what_it_found(
    pair: tuple[Writer, Gate], setup: Setup
) -> None:
    """What was under way has become a fork, and the next number after it is free."""
    one, gate = pair
    held, told = threading.Event(), Queue[ArchiverError | None]()

    def after(verb: str) -> None:
        assert verb != "create" or held.wait(PATIENCE)

    def ask() -> None:
        try:
            told.put(one.fence())
        except ArchiverError as error:
            told.put(error)

    gate.after = after
    one.submit(snapshot("mine", plain=False))
    assert one.drain()
    compete(setup)
    asking = threading.Thread(target=ask)
    asking.start()
    with one._changed:
        assert one._changed.wait_for(lambda: one._deliverer._fences, PATIENCE)
    held.set()
    asking.join()
    assert isinstance(told.get(), StaleWriterError)


@pytest.mark.parametrize("ask", [Writer.fence, Writer.glance])
def test_a_fence_knows_what_another_process_found(
    pair: tuple[Writer, Gate], setup: Setup, ask: Callable[[Writer], None]
) -> None:
    """As `archiver sync` does, which delivers for whoever saved."""
    one, gate = pair
    gate.error = StoreUnreachableError("not now")
    one.submit(snapshot("mine", plain=False))
    assert one.drain()
    compete(setup)
    with pytest.raises(StaleWriterError):
        open_spool(setup).of("r", "r").deliver()
    gate.error = None
    with pytest.raises(StaleWriterError):
        ask(one)


def test_forks_of_before_are_nobody_s_now(pair: tuple[Writer, Gate], setup: Setup) -> None:
    one, gate = pair
    gate.error = StoreUnreachableError("not now")
    for number in (1, 2):
        one.submit(snapshot(f"mine {number}", plain=False))
    assert one.drain()
    compete(setup)
    gate.error = None
    with pytest.raises(StaleWriterError):
        one.flush()
    assert [fork.seq for fork in open_spool(setup).of("r", "r").forks()] == [1, 2]
    later = writer(setup, place=position.find("r", setup))
    later.save(new := snapshot("new"), stored=True)
    later.fence()
    later.close()
    assert (new.ticket.status, new.ticket.seq) == ("stored", 2)


def test_the_fence_is_the_last_that_is_asked(pair: tuple[Writer, Gate], setup: Setup) -> None:
    """A claim that comes while the own records are being delivered is seen: it is looked for after that."""
    one, gate = pair
    gate.shut()
    one.submit(snapshot("mine", plain=False))
    assert one.drain()
    through = replace(setup)

    def after(verb: str) -> None:
        if verb == "create" and any(through.store.list("records/")):
            gate.after = lambda _: None
            compete(through)

    gate.after = after
    gate.free()
    with pytest.raises(StaleWriterError):
        one.fence()
    assert notes(setup) == ["mine", "theirs"]
