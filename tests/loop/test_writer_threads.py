"""What the two threads of a writer do to each other, and what others can do to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archiver.loop.writer import Writer
from archiver.setup import Setup
from archiver.spool import RunSpool, open_spool
from loop.writing import PATIENCE, gated, notes, snapshot, writer


class Watched:
    """The spool of a run that does something else when it is asked for its forks."""

    def __init__(self, inner: RunSpool) -> None:
        self._inner = inner
        self.then: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def forks(self) -> Any:
        then, self.then = self.then, lambda: None
        then()
        return self._inner.forks()


def test_what_is_sealed_while_the_spool_is_looked_through_is_not_taken_for_stored(setup: Setup) -> None:
    through, gate = gated(setup)
    spool = Watched(open_spool(through).of("r", "r"))
    one: Writer = writer(through, spool=spool)  # type: ignore[arg-type]  # all that it does not have is there
    late = snapshot("late", plain=False)

    def seal_another() -> None:
        gate.shut()
        one.submit(late)
        assert one.drain(PATIENCE)

    try:
        spool.then = seal_another
        early = snapshot("early", plain=False)
        one.submit(early)
        assert early.ticket.wait(PATIENCE, stored=True)
        assert late.ticket.status == "spooled"
        assert one.waiting == 1
        gate.free()
        assert one.flush()
        assert (late.ticket.status, notes(setup)) == ("stored", ["early", "late"])
    finally:
        gate.free()
        one.end(5)


def test_a_listener_that_raises_stops_nothing(setup: Setup) -> None:
    one = writer(setup)
    try:
        for note in ("first", "second"):
            taken = snapshot(note, plain=False)
            taken.ticket.listen(lambda: 1 // 0)  # type: ignore[arg-type]
            assert one.save(taken, PATIENCE)
        assert one.flush()
        assert notes(setup) == ["first", "second"]
    finally:
        one.end(5)
