"""The effects of a run that goes on: intent before, outcome after, and each key done at most once.

    ready → intent in the store → fence → the effect → outcome in the store

An unreplayable effect is done only between the two: its intent is recorded, and nobody has taken the run over
since. A replayable one is done whatever becomes of its intent, unless somebody is seen to have taken the run
over. What the store does not take is put aside.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from archiver import gate, jsonio, ledger, telemetry
from archiver.effect_names import name_of
from archiver.errors import (
    DamagedError,
    EffectNotRecordedError,
    NeedsDecisionError,
    UnsupportedSchemaError,
    UsageError,
)
from archiver.gate import told
from archiver.ledger import effect_of
from archiver.loop.effect_call import Asked, Begun, EffectCall, Recorded
from archiver.loop.effect_records import NOT_TAKEN, EffectRecords, PutAside
from archiver.loop.reach import Reach
from archiver.loop.tools import effect
from archiver.model import Effect, JsonValue
from archiver.model.record import Decision

if TYPE_CHECKING:
    from archiver.ledger import Ledger, Subject
    from archiver.model.effect_entry import EffectEnd, EffectEntry

log = logging.getLogger("archiver")

_ATTEMPTS = 5
"""How often the ledger is read again because another copy of this run was first."""

__all__ = ["EffectBook", "EffectCall", "effect"]


class EffectBook:
    """Knows the effects of a run and does none twice; safe to share between threads.

    `fence` raises `StaleWriterError` if somebody else has taken the run over; `glance` does the same for
    effects that may be done again, and waits for less. `allowed` raises for the key of what comes too late.
    `ready` sees to it that the run has a record. `changed` is told of every effect whose status is another
    than before. With `strict` an outcome that reaches neither the store nor the disk is an error; else it is
    logged, and stands in the next checkpoint.
    """

    def __init__(
        self,
        ledger: Ledger,
        effects: Iterable[Effect] = (),
        decisions: Iterable[Decision] = (),
        *,
        fence: Callable[[], None],
        glance: Callable[[], None] | None = None,
        allowed: Callable[[str], None] = lambda _: None,
        ready: Callable[[], None] = lambda: None,
        put_aside: PutAside | None = None,
        changed: Callable[[Effect], None] = lambda _: None,
        strict: bool = False,
        reach: Reach | None = None,
    ) -> None:
        self._ledger = ledger
        self._records = EffectRecords(ledger, put_aside, strict=strict, reach=reach)
        self._fence, self._glance, self._allowed = fence, glance or fence, allowed
        self._ready, self._changed = ready, changed
        self._decisions = {decision.effect: decision for decision in decisions}
        self._lock = threading.Lock()
        self._effects: dict[str, tuple[Effect, ...]] = {}
        self._all: tuple[Effect, ...] | None = None
        self._busy: set[str] = set()
        self.prevented = 0
        """How often the recorded result of an effect was given in the place of doing it again."""
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
        taken = jsonio.exact(jsonio.dumps(arguments))
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
            with self._lock:
                self.prevented += 1
        return found

    def outcome(
        self, begun: Begun, status: EffectEnd, result: Any = None, *, reason: str = ""
    ) -> tuple[JsonValue, EffectEntry]:
        """The result in its JSON form, and the outcome to be given to `end`.

        Raises `NotSerialisableError` and `LimitExceededError` for what cannot be recorded.
        """
        taken = jsonio.exact(jsonio.taken(result))
        return taken, self._ledger.outcome(begun.intent, status, result=taken, reason=reason)

    @telemetry.span("archiver.effect.end")
    def end(self, entry: EffectEntry) -> None:
        """An attempt has this outcome; raises as `EffectRecords.outcome`."""
        try:
            self._records.outcome(entry)
        finally:
            self._free(
                entry.key, effect_of(entry, "confirmed" if entry.status == "confirmed" else "proposed")
            )

    def leave_open(self, begun: Begun) -> None:
        """Nobody said what came of the attempt."""
        entry = begun.intent
        self._free(entry.key, effect_of(entry, "in_progress" if entry.replayable else "uncertain"))

    def withdraw(self, begun: Begun, reason: str) -> None:
        """The attempt was not made after all."""
        self._records.withdrawn(begun.intent, reason)
        self._free(begun.intent.key, effect_of(begun.intent, "proposed"))

    def close(self) -> None:
        """The run is closed: record of intents that got no answer that nothing was done."""
        self._records.close()

    def alarm(self, what: str) -> None:
        """Something happened that must not."""
        log.error("run %s: %s", self._ledger.run, what)

    # --- the attempt --------------------------------------------------------------------------------------

    def _begin(self, subject: Subject, asked: Asked) -> Begun | Recorded:
        if not (asked.replayable or self._ledger.loaded or self._is_confirmed(subject.key)):
            with self._unless_refused(subject, asked, "what the store knows of it was not read"):
                self._demand_reach(asked)
                self._reread(subject, asked)
        for _ in range(_ATTEMPTS):
            known = gate.Effects(self._of(subject.key), self._decisions)
            if known.undecided:
                with suppress(*NOT_TAKEN):  # whoever was doing it may have said since how it ended
                    self._reread(subject, asked)
                known = gate.Effects(self._of(subject.key), self._decisions)
            answer = known.outcome(subject.key, subject.arguments, in_hand=True)
            if not answer.act:
                return Recorded(jsonio.exact(jsonio.dumps(answer.result)), answer.decision)
            intent = self._intent(subject, asked)
            if intent is not None:
                self._set(intent.key, effect_of(intent, "in_progress"))
                return Begun(intent)
        raise NeedsDecisionError(
            f"the effect {told([subject.key])} is begun by other copies of this run again and again",
            remedy="see which other processes work on this run, and end them",
        )

    def _intent(self, subject: Subject, asked: Asked) -> EffectEntry | None:
        """That of the attempt to be made; None where another copy of this run was first, and was read."""
        self._allowed(subject.key)
        if asked.replayable and (going_on := self._ledger.going_on(subject.key)) is not None:
            self._look(subject, asked)
            return going_on
        with self._unless_refused(subject, asked, "the run has no checkpoint yet"):
            self._ready()
        intent = None
        with self._unless_refused(subject, asked, "its intent is not in the store"):
            self._demand_reach(asked)
            self._ledger.settle(self._decisions_on(subject.key))
            intent = self._records.intent(subject)
            if intent is None:
                self._reread(subject, asked)
                return None
        if intent is None:
            return self._records.intent_aside(subject)
        try:
            self._look(subject, asked)
        except BaseException:
            self.withdraw(Begun(intent), "it was not begun")
            raise
        return intent

    def _look(self, subject: Subject, asked: Asked) -> None:
        """Nobody has taken the run over: whoever does so from now on sees the intent."""
        try:
            with self._unless_refused(subject, asked, "nobody could look whether the run was taken over"):
                self._demand_reach(asked)
                (self._glance if asked.replayable else self._fence)()
        except (DamagedError, UnsupportedSchemaError) as error:
            if not asked.replayable:
                raise
            log.warning("effect %s is done although the spool cannot be read: %s", told([subject.key]), error)

    @contextmanager
    def _unless_refused(self, subject: Subject, asked: Asked, what: str) -> Iterator[None]:
        """Go on though the store does not answer, if that is allowed; else the effect is not done."""
        try:
            yield
        except NOT_TAKEN as error:
            self._records.failed(error)
            if not self._may_do_without(asked):
                raise EffectNotRecordedError(
                    f"the effect {told([subject.key])} is not done, because {what}: {error}",
                    remedy="try again once the store is back; or, where doing it twice is better than not "
                    'doing it, say unrecorded="do"',
                ) from error
            log.warning("effect %s is done although %s: %s", told([subject.key]), what, error)

    def _demand_reach(self, asked: Asked) -> None:
        """Not to wait again for a store that is away, where the effect is done all the same."""
        if self._may_do_without(asked):
            self._records.demand_reach()

    @staticmethod
    def _may_do_without(asked: Asked) -> bool:
        return asked.replayable or asked.unrecorded == "do"

    def _reread(self, subject: Subject, asked: Asked) -> None:
        """What the store says of the effect now; `StaleWriterError` where it is another's run meanwhile."""
        entries = [one for one in self._ledger.load_in_time() if one.key == subject.key]
        found = ledger.merged(self._of(subject.key), entries, self._decisions_on(subject.key))
        if found:
            with self._lock:
                self._effects[subject.key], self._all = found, None
        if any(one.status in ("in_progress", "uncertain") for one in found) and not asked.replayable:
            self._fence()

    # --- small things -------------------------------------------------------------------------------------

    def _decisions_on(self, key: str) -> list[Decision]:
        return [one for one in self._decisions.values() if one.effect == name_of(key)]

    def _is_confirmed(self, key: str) -> bool:
        """Whether it happened, which nothing that the store knows can change."""
        return any(one.status == "confirmed" for one in self._of(key))

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
