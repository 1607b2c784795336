"""Snapshots as a run takes them, a writer for them, and a store that a test can stop or have fail."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from spool.making import checkpoint

from archiver import verify
from archiver.archive import Options
from archiver.catalog import Catalog
from archiver.errors import ArchiverError
from archiver.loop.snapshot import Snapshot, Ticket
from archiver.loop.writer import Writer
from archiver.model import Checkpoint
from archiver.position import Position
from archiver.redact import new_key
from archiver.setup import Setup
from archiver.spool import RunSpool, open_spool
from archiver.store import ObjectStore
from archiver.store.decorated import Decorated

Result = TypeVar("Result")
PATIENCE = 180.0
"""Far more than any wait of a test needs."""


class Gate(Decorated):
    """A store that hangs while it is `shut`, or answers with an error."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.error: ArchiverError | None = None
        self.after: Callable[[str], None] = lambda _: None
        """Called once a call has been carried out, with its verb."""
        self.calls: Counter[str] = Counter()
        self.entered = threading.Event()
        """A call waits, or has failed."""
        self._free = threading.Event()
        self._free.set()

    def shut(self) -> None:
        self._free.clear()

    def free(self) -> None:
        self._free.set()

    def _call(self, verb: str, work: Callable[[], Result]) -> Result:
        self.calls[verb] += 1
        if not self._free.is_set() or self.error is not None:
            self.entered.set()
        assert self._free.wait(PATIENCE), "nobody freed the store"
        if self.error is not None:
            raise self.error
        done = work()
        self.after(verb)
        return done


def gated(setup: Setup) -> tuple[Setup, Gate]:
    gate = Gate(setup.store)
    return replace(setup, store=gate), gate


def snapshot(
    note: str, *, plain: bool = True, make: Callable[[], Checkpoint] | None = None, size: int = 100
) -> Snapshot:
    made = make or (lambda: checkpoint("r", note))
    return Snapshot(made, size, plain, Ticket("waiting", note))


class Held:
    """A snapshot in the making, which keeps the sealing thread busy until it is let go."""

    def __init__(self, note: str = "held", *, plain: bool = False) -> None:
        self.begun, self._free = threading.Event(), threading.Event()
        self.snapshot = snapshot(note, plain=plain, make=lambda: self._make(note))

    def _make(self, note: str) -> Checkpoint:
        self.begun.set()
        assert self._free.wait(PATIENCE), "nobody let it go"
        return checkpoint("r", note)

    def let_go(self) -> None:
        self._free.set()


def writer(
    setup: Setup, *, spool: RunSpool | None = None, place: Position | None = None, **how: Any
) -> Writer:
    setup.redactor(new_key())  # compiles the rules where nobody did before, which is not what is waited for
    how = {"patience": PATIENCE, "queue": 8, "options": lambda: Options(capture=False), **how}
    found = place or Position("r", redaction_key=new_key())
    return Writer(setup, found, spool or open_spool(setup).of("r", "r"), **how)


def notes(setup: Setup) -> list[str]:
    """What the store has of the run, in order; it must be whole."""
    assert not [finding for finding in verify.verify(setup, "r", deep=True) if not finding.ok]
    return [link.record.note for link in Catalog(setup).chain("r").links]
