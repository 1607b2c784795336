"""What one call of `checkpoint` takes along, and what the caller can ask of it later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from archiver.errors import ArchiverError
from archiver.model import Checkpoint

log = logging.getLogger("archiver")

Status = Literal["skipped", "waiting", "replaced", "spooled", "stored", "failed"]
"""`skipped`: the policy did not have it saved. `waiting`: for the background writer. `replaced`: a newer one
is saved in its place. `spooled`: sealed on the local disk, not in the store yet. `stored`: committed.
`failed`: not saved; the error says why."""
_ENDED: Final = ("skipped", "replaced", "stored", "failed")


class Hold:
    """A call that waits while the folder of its run is read: tree and conversation are of one moment."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._read = self._gone = False

    def wait(self, timeout: float) -> bool:
        """For the call: wait until the folder was read, for so many seconds; whether it was by then."""
        with self._changed:
            read = self._changed.wait_for(lambda: self._read, timeout)
            self._gone = True
            return read

    def end(self) -> bool:
        """For who reads: have the call go on; whether it has waited until now."""
        with self._changed:
            held, self._read, self._gone = not self._gone, True, True
            self._changed.notify_all()
            return held


class Ticket:
    """What became of one checkpoint; safe to ask from any thread."""

    def __init__(self, status: Status, because: str, *, awaited: bool = False) -> None:
        self.awaited = awaited
        """Whether the call that took it waits for it."""
        self.because = because
        """Why it is saved, or why it is not."""
        self.seq: int | None = None
        """Its number, once it has one."""
        self.error: ArchiverError | None = None
        """Why it is not saved, or not in the store yet."""
        self.hold: Hold | None = None
        """What keeps its call while the folder of the run is read; None where that is not saved."""
        self._status: Status = status
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], None]] = []

    @property
    def status(self) -> Status:
        return self._status

    @property
    def saved(self) -> bool:
        """Whether it survives the end of this process: in the store, or sealed in the spool."""
        return self._status in ("spooled", "stored")

    def wait(self, timeout: float | None = None, *, stored: bool = False) -> bool:
        """Wait until it is saved, or `stored`, or never will be; True if it is. `timeout` in seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._status in _ENDED or (self.saved and not stored), timeout)
            return self._status == "stored" or (self.saved and not stored)

    def wait_told(self, timeout: float) -> None:
        """Wait until it is stored, or never will be, or an attempt to deliver it has failed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._status in _ENDED or (self._status == "spooled" and self.error is not None),
                timeout,
            )

    def settle(self, status: Status, *, seq: int | None = None, error: ArchiverError | None = None) -> None:
        """Say what became of it; for the writer."""
        with self._changed:
            self._status = status
            self.seq = seq if seq is not None else self.seq
            self.error = error
            self._changed.notify_all()
            listeners = tuple(self._listeners)
        if self.hold is not None:
            self.hold.end()
        for listener in listeners:
            try:
                listener()
            except Exception as error:  # a listener must not end the thread that all checkpoints wait for
                log.error("a listener of checkpoint %s raised %s", self.seq, type(error).__name__)  # noqa: TRY400

    def listen(self, listener: Callable[[], None]) -> None:
        """Have `listener` called, in the writer's thread, whenever the status changes."""
        with self._changed:
            self._listeners.append(listener)

    def __repr__(self) -> str:
        number = "" if self.seq is None else f" {self.seq}"
        return f"<Ticket{number} {self._status}: {self.because}>"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One checkpoint that is to be saved, as bytes and immutable values that the loop cannot change."""

    make: Callable[[], Checkpoint]
    """Parses and validates: the writer calls it, off the loop, once."""
    size: int
    """Bytes that it holds in memory."""
    plain: bool
    """Whether a newer one may take its place while it waits."""
    ticket: Ticket
