"""The effects of a run that goes on: intent before, outcome after, and each key done at most once.

    ready → intent in the store → fence → the effect → outcome in the store

An unreplayable effect is done only between the two: its intent is recorded, and nobody has taken the run over
since. A replayable one is done whatever becomes of its intent. What the store does not take is put aside.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from archiver import gate, jsonio, ledger, telemetry
from archiver.effect_names import name_of
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    EffectNotRecordedError,
    KeyUnavailableError,
    NeedsDecisionError,
    StaleWriterError,
    StoreError,
    UsageError,
)
from archiver.gate import told
from archiver.ledger import effect_of
from archiver.loop.effect_call import Asked, Begun, EffectCall, Recorded
from archiver.loop.tools import effect
from archiver.model import Effect, JsonValue
from archiver.model.record import Decision

if TYPE_CHECKING:
    from archiver.ledger import Ledger, Sealed, Subject
    from archiver.model.effect_entry import EffectEnd, EffectEntry

log = logging.getLogger("archiver")

NOT_TAKEN = (StoreError, KeyUnavailableError)
"""Why the store may not have what it was to be given."""
PutAside = Callable[[str, bytes], None]
"""Keeps an object on the local disk, by its name, until the store takes it."""

_ATTEMPTS = 5
"""How often the ledger is read again because another copy of this run was first."""

__all__ = ["EffectBook", "EffectCall", "effect"]


class EffectBook:
    """Knows the effects of a run and does none twice; safe to share between threads.

    `fence` raises `StaleWriterError` if somebody else has taken the run over. `ready` sees to it that the run
    has a record. `changed` is told of every effect whose status is another than before. With `strict` an
    outcome that reaches neither the store nor the disk is an error; else it is logged, and stands in the
    next checkpoint.
    """

    def __init__(
        self,
        ledger: Ledger,
        effects: Iterable[Effect] = (),
        decisions: Iterable[Decision] = (),
        *,
        fence: Callable[[], None],
        ready: Callable[[], None] = lambda: None,
        put_aside: PutAside | None = None,
        changed: Callable[[Effect], None] = lambda _: None,
        strict: bool = False,
    ) -> None:
        self._ledger = ledger
        self._fence, self._ready, self._put_aside, self._changed = fence, ready, put_aside, changed
        self._strict = strict
        self._decisions = {decision.effect: decision for decision in decisions}
        self._lock = threading.Lock()
        self._effects: dict[str, tuple[Effect, ...]] = {}
        self._all: tuple[Effect, ...] | None = None
        self._busy: set[str] = set()
        self._doubtful: dict[str, Sealed] = {}
        """Intents of which the store gave no answer, by key: they may be there."""
        for one in effects:
            self._effects[one.key] = (*self._effects.get(one.key, ()), one)

    # --- what is known ------------------------------------------------------------------------------------

    @property
    def effects(self) -> tuple[Effect, ...]:
        """All of them as they are now, for a checkpoint; their keys and arguments hold no credentials."""
        with self._lock:
            if self._all is None:
                self._all = tuple(one for same in self._effects.values() for one in same)
            return self._all

    @property
    def undecided(self) -> tuple[Effect, ...]:
        """Those of which nobody knows whether they happened, and that cannot be done again."""
        return gate.Effects(self.effects).undecided

    def knows(self, key: str) -> bool:
        """Whether there is an effect with this key, whatever came of it."""
        subject = self._ledger.subject(key, "", None, replayable=False)
        with self._lock:
            return subject.key in self._effects

    # --- an effect ----------------------------------------------------------------------------------------

    def effect(
        self,
        tool: str,
        *,
        key: str,
        arguments: JsonValue = None,
        replayable: bool = False,
        not_done_on: tuple[type[BaseException], ...] = (),
        unrecorded: Literal["refuse", "do"] = "refuse",
    ) -> EffectCall:
        """One effect, to be used as a block or with `do`; nothing is recorded yet.

        `not_done_on`: errors that say that it certainly did not happen. `unrecorded="do"`: do it although its
        intent cannot be recorded. Raises `UsageError` and `NotSerialisableError`.
        """
        if not key or not isinstance(key, str) or not tool:
            raise UsageError(
                "an effect needs the name of its tool and a key",
                remedy="a key stands for one effect of the run: name what it is about, as in invoice-4711",
            )
        taken = jsonio.loads(jsonio.dumps(arguments))
        return EffectCall(self, Asked(tool, key, taken, replayable, not_done_on, unrecorded))

    @telemetry.span("archiver.effect.begin")
    def begin(self, asked: Asked) -> Begun | Recorded:
        """What was recorded of it, or the attempt that is to be made now.

        Raises what `gate.Effects.outcome` does, `EffectNotRecordedError`, `StaleWriterError`.
        """
        subject = self._ledger.subject(asked.key, asked.tool, asked.arguments, replayable=asked.replayable)
        with self._lock:
            if subject.key in self._busy:
                raise NeedsDecisionError(
                    f"the effect {told([subject.key])} is being done by this process right now",
                    remedy="wait until that has ended, then ask again: it gives the recorded result",
                )
            self._busy.add(subject.key)
        try:
            found = self._begin(subject, asked)
        except BaseException:
            self._free(subject.key)
            raise
        if isinstance(found, Recorded):
            self._free(subject.key)
        return found

    def outcome(
        self, begun: Begun, status: EffectEnd, result: Any = None, *, reason: str = ""
    ) -> tuple[JsonValue, Sealed]:
        """The result in its JSON form, and the outcome to be given to `end`.

        Raises `NotSerialisableError` and `LimitExceededError` for what cannot be recorded.
        """
        taken = jsonio.loads(jsonio.dumps(result))
        return taken, self._ledger.outcome(begun.intent, status, result=taken, reason=reason)

    @telemetry.span("archiver.effect.end")
    def end(self, sealed: Sealed) -> None:
        """The attempt has this outcome: have the store know it, else the disk, else the next checkpoint.

        `StaleWriterError` if another copy of this run has said otherwise of it meanwhile.
        """
        entry = sealed.entry
        try:
            self._end(sealed)
        finally:
            self._free(
                entry.key, effect_of(entry, "confirmed" if entry.status == "confirmed" else "proposed")
            )

    def leave_open(self, begun: Begun) -> None:
        """Nobody said what came of the attempt."""
        entry = begun.intent
        self._free(entry.key, effect_of(entry, "in_progress" if entry.replayable else "uncertain"))

    def withdraw(self, begun: Begun, reason: str) -> None:
        """The attempt was not made after all; what keeps that from being recorded is logged."""
        entry = begun.intent
        try:
            self._end(self._ledger.outcome(entry, "not-done", reason=reason))
        except ArchiverError as error:
            log.warning("that effect %s was not done is not recorded: %s", told([entry.key]), error)
        finally:
            self._free(entry.key, effect_of(entry, "proposed"))

    def close(self) -> None:
        """Say of intents that may have reached the store without an answer that nothing was done."""
        while self._doubtful:
            _, sealed = self._doubtful.popitem()
            self.withdraw(Begun(sealed.entry), "its intent could not be recorded")

    def alarm(self, what: str) -> None:
        """Something happened that must not."""
        log.error("run %s: %s", self._ledger.run, what)

    # --- the attempt --------------------------------------------------------------------------------------

    def _begin(self, subject: Subject, asked: Asked) -> Begun | Recorded:
        if not asked.replayable and not self._ledger.loaded:
            self._look(subject, asked)
        for _ in range(_ATTEMPTS):
            answer = gate.Effects(self._of(subject.key), self._decisions).outcome(
                subject.key, subject.arguments, in_hand=True
            )
            if not answer.act:
                return Recorded(jsonio.loads(jsonio.dumps(answer.result)), answer.decision)
            begun = self._attempt(subject, asked)
            if begun is not None:
                return begun
        raise NeedsDecisionError(
            f"the effect {told([subject.key])} is begun by other copies of this run again and again",
            remedy="see which other processes work on this run, and end them",
        )

    def _attempt(self, subject: Subject, asked: Asked) -> Begun | None:
        """Record the intent; None where another copy of this run was first, and its word was read since."""
        going_on = [one for one in self._ledger.attempts(subject.key) if one.status is None]
        if asked.replayable and going_on:
            return self._start(going_on[-1].said)
        self._demand_ready(subject, asked)
        try:
            sealed = self._doubtful.pop(subject.key, None) or self._ledger.intent(subject)
        except NOT_TAKEN as error:
            raise self._unrecorded(subject, error) from error
        try:
            self._ledger.put(sealed)
        except AlreadyExistsError:
            if not self._ledger.holds(sealed):
                self._reread(subject, asked)
                return None
        except NOT_TAKEN as error:
            self._without_store(subject, asked, sealed, error)
            return self._start(sealed.entry)
        self._demand_place(subject, asked, sealed)
        return self._start(sealed.entry)

    def _look(self, subject: Subject, asked: Asked) -> None:
        """Read the ledger, if that was not possible when the run was opened."""
        try:
            self._reread(subject, asked)
        except NOT_TAKEN as error:
            if asked.unrecorded == "refuse":
                raise self._unrecorded(subject, error) from error
            log.warning("what is known of effect %s was not read: %s", told([subject.key]), error)

    def _reread(self, subject: Subject, asked: Asked) -> None:
        """What the store says of the effect now; `StaleWriterError` where it was another writer's run."""
        entries = self._ledger.load()
        found = ledger.merged(
            self._of(subject.key),
            [one for one in entries if one.key == subject.key],
            [one for one in self._decisions.values() if one.effect == name_of(subject.key)],
        )
        with self._lock:
            self._effects[subject.key], self._all = found, None
        if any(one.status in ("in_progress", "uncertain") for one in found) and not asked.replayable:
            self._fence()

    def _demand_ready(self, subject: Subject, asked: Asked) -> None:
        try:
            self._ready()
        except NOT_TAKEN as error:
            if not asked.replayable and asked.unrecorded == "refuse":
                raise self._unrecorded(subject, error) from error
            log.warning("effect %s is done before the run has a checkpoint: %s", told([subject.key]), error)

    def _without_store(self, subject: Subject, asked: Asked, sealed: Sealed, error: ArchiverError) -> None:
        """The store did not take the intent: go on without it if that is allowed, and put it aside."""
        if not asked.replayable and asked.unrecorded == "refuse":
            self._doubtful[subject.key] = sealed
            raise self._unrecorded(subject, error) from error
        log.warning("the intent of effect %s is not in the store: %s", told([subject.key]), error)
        self._ledger.note(sealed.entry)
        self._aside(sealed)

    def _demand_place(self, subject: Subject, asked: Asked, sealed: Sealed) -> None:
        """Nobody has taken the run over: whoever does so from now on sees the intent."""
        if asked.replayable:
            return
        begun = Begun(sealed.entry)
        try:
            self._fence()
        except NOT_TAKEN as error:
            if asked.unrecorded == "do":
                log.warning("effect %s is done though nobody could look: %s", told([subject.key]), error)
                return
            self.withdraw(begun, "whether the run was taken over could not be seen")
            raise self._unrecorded(subject, error) from error
        except BaseException:
            self.withdraw(begun, "the run was taken over")
            raise

    def _unrecorded(self, subject: Subject, error: ArchiverError) -> EffectNotRecordedError:
        return EffectNotRecordedError(
            f"the effect {told([subject.key])} is not done, because its intent cannot be recorded: {error}",
            remedy="try again once the store is back; or, where doing it twice is better than not doing it, "
            'say unrecorded="do"',
        )

    def _start(self, intent: EffectEntry) -> Begun:
        self._set(intent.key, effect_of(intent, "in_progress"))
        return Begun(intent)

    def _end(self, sealed: Sealed) -> None:
        entry = sealed.entry
        try:
            self._ledger.put(sealed)
        except AlreadyExistsError as error:
            self._compare(sealed, error)
        except NOT_TAKEN as error:
            self._ledger.note(entry)
            log.warning("the outcome of effect %s is not in the store: %s", told([entry.key]), error)
            if not self._aside(sealed):
                log.error("the outcome of effect %s is only in memory: %s", told([entry.key]), error)  # noqa: TRY400
                if self._strict:
                    raise

    def _compare(self, sealed: Sealed, error: AlreadyExistsError) -> None:
        """Another copy of this run has said how the attempt ended."""
        entry = sealed.entry
        self._ledger.load()
        said = next((one for one in self._ledger.entries if one.id == entry.id), None)
        if said is None or said.status == entry.status:
            return
        self._ledger.note(entry)
        raise StaleWriterError(
            f"effect {told([entry.key])} is {entry.status}, but somebody else who has this run has recorded "
            f"that it is {said.status}",
            remedy="look in the system that it acts on, and at what the other one did since",
        ) from error

    # --- small things -------------------------------------------------------------------------------------

    def _aside(self, sealed: Sealed) -> bool:
        if self._put_aside is None:
            return False
        try:
            self._put_aside(sealed.name, sealed.data)
        except ArchiverError as error:
            log.warning("what was to be put aside of effect %s was not: %s", told([sealed.entry.key]), error)
            return False
        return True

    def _of(self, key: str) -> tuple[Effect, ...]:
        with self._lock:
            return self._effects.get(key, ())

    def _set(self, key: str, effect: Effect) -> None:
        with self._lock:
            self._effects[key], self._all = (effect,), None
        self._changed(effect)

    def _free(self, key: str, effect: Effect | None = None) -> None:
        if effect is not None:
            self._set(key, effect)
        with self._lock:
            self._busy.discard(key)
