"""Where intents and outcomes go: into the store, else onto the local disk, else into the next checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from archiver import telemetry
from archiver.errors import (
    AWAY,
    AlreadyExistsError,
    ArchiverError,
    KeyUnavailableError,
    StaleWriterError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)
from archiver.gate import told
from archiver.ledger import Sealed
from archiver.loop.reach import Reach

if TYPE_CHECKING:
    from archiver.ledger import Ledger, Subject
    from archiver.model.effect_entry import EffectEntry

log = logging.getLogger("archiver")

NOT_TAKEN = (StoreError, KeyUnavailableError)
"""Why the store may not have what it was to be given."""
_SURELY_NOT = (StoreDeniedError, StoreFullError, KeyUnavailableError)
"""Of these, the ones after which it has not got it."""
PutAside = Callable[[str, bytes], None]
"""Keeps an object on the local disk, by its name, until the store takes it."""


class EffectRecords:
    """Records what happens to effects of one run; safe to share between threads."""

    def __init__(
        self, ledger: Ledger, put_aside: PutAside | None, *, strict: bool, reach: Reach | None = None
    ) -> None:
        """`reach` is told whether the store answers, and heard where it does not matter much."""
        self._ledger, self._put_aside, self._strict = ledger, put_aside, strict
        self._reach = reach or Reach()
        self._elsewhere: set[str] = set()
        """Attempts of which the store does not have the intent: it need not have the outcome first."""
        self._doubtful: dict[str, Sealed] = {}
        """Intents of which the store gave no answer, by key: they may be there."""

    def intent(self, subject: Subject) -> EffectEntry | None:
        """Put the intent of the next attempt; None where another copy of this run was first.

        Raises `NOT_TAKEN`.
        """
        sealed = self._doubtful.pop(subject.key, None) or self._ledger.seal(self._ledger.intent(subject))
        try:
            self._ledger.put(sealed)
        except AlreadyExistsError:
            if not self._ledger.holds(sealed):
                return None
        except NOT_TAKEN as error:
            if not isinstance(error, _SURELY_NOT):
                self._doubtful[subject.key] = sealed
            raise
        self._reach.answered()
        telemetry.effect_recorded("intent")
        return sealed.entry

    def intent_aside(self, subject: Subject) -> EffectEntry:
        """Count the next attempt as begun although the store does not have its intent; for one that is done
        all the same.
        """
        doubtful = self._doubtful.pop(subject.key, None)
        entry = self._ledger.intent(subject) if doubtful is None else doubtful.entry
        self._ledger.note(entry)
        self._elsewhere.add(entry.id)
        if self._aside(doubtful or entry):
            telemetry.effect_recorded("intent", "spool")
        return entry

    def outcome(self, entry: EffectEntry) -> None:
        """Put how an attempt ended, or put it aside.

        What reaches neither the store nor the disk is an error only if that is wanted: the next checkpoint
        has it too. Raises `StaleWriterError` if another copy of this run has said otherwise of it.
        """
        sealed: Sealed | None = None
        try:
            sealed = self._ledger.seal(entry)
            if self._reach.away and entry.intent in self._elsewhere and self._aside(sealed):
                self._ledger.note(entry)
                telemetry.effect_recorded("outcome", "spool")
                return
            self._ledger.put(sealed)
            self._reach.answered()
            telemetry.effect_recorded("outcome")
        except AlreadyExistsError as error:
            self._compare(entry, error)
        except NOT_TAKEN as error:
            self.failed(error)
            self._ledger.note(entry)
            log.warning("the outcome of effect %s is not in the store: %s", told([entry.key]), error)
            if sealed is not None and self._aside(sealed):
                telemetry.effect_recorded("outcome", "spool")
                return
            log.error("the outcome of effect %s is only in memory: %s", told([entry.key]), error)  # noqa: TRY400
            if self._strict:
                raise

    def withdrawn(self, intent: EffectEntry, reason: str) -> None:
        """The attempt was not made after all; what keeps that from being recorded is logged."""
        try:
            self.outcome(self._ledger.outcome(intent, "not-done", reason=reason))
        except ArchiverError as error:
            log.warning("that effect %s was not done is not recorded: %s", told([intent.key]), error)

    def failed(self, error: ArchiverError) -> None:
        """Something that was asked of the store for an effect was in vain."""
        if isinstance(error, AWAY):
            self._reach.missed()

    def demand_reach(self) -> None:
        """For who can do without the store: `StoreUnreachableError` where it did not answer before."""
        if self._reach.away:
            raise StoreUnreachableError("the store did not answer before, and is not waited for again")

    def close(self) -> None:
        """Say of intents that may have reached the store without an answer that nothing was done."""
        while self._doubtful:
            _, sealed = self._doubtful.popitem()
            # Not into the store: that is what did not answer, and nobody waits for it twice.
            self._aside(self._ledger.outcome(sealed.entry, "not-done", reason="its intent was not recorded"))

    def _compare(self, entry: EffectEntry, error: AlreadyExistsError) -> None:
        """Another copy of this run has recorded how the attempt ended, or the own put got there after all."""
        said = self._ledger.stored(entry.id)
        self._ledger.note(entry if said is None else said)
        if said is not None and said.status != entry.status:
            raise StaleWriterError(
                f"effect {told([entry.key])} is {entry.status}, but somebody else who has this run has "
                f"recorded that it is {said.status}",
                remedy="look in the system that it acts on, and at what the other one did since",
            ) from error

    def _aside(self, what: Sealed | EffectEntry) -> bool:
        """Whether it was put aside; what is not sealed yet is."""
        if self._put_aside is None:
            return False
        try:
            sealed = what if isinstance(what, Sealed) else self._ledger.seal(what)
            self._put_aside(sealed.name, sealed.data)
        except ArchiverError as error:
            log.warning("what is known of an effect was not put aside: %s", error)
            return False
        return True
