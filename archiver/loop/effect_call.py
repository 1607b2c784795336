"""One effect at the place where it is done: a `with` block, or a call."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from archiver.errors import EffectDoneError, UsageError
from archiver.gate import told
from archiver.loop import demands, skipping
from archiver.loop.skipping import CannotSkipError, Skip

if TYPE_CHECKING:
    from archiver.loop.effects import EffectBook
    from archiver.model import JsonValue
    from archiver.model.effect_entry import EffectEntry
    from archiver.model.record import Decision

P = ParamSpec("P")
T = TypeVar("T")
State = Literal["new", "begun", "confirmed", "not-done", "left"]


@dataclass(frozen=True, slots=True)
class Asked:
    """An effect as the loop wants it."""

    tool: str
    key: str
    arguments: JsonValue
    replayable: bool
    not_done_on: tuple[type[BaseException], ...]
    unrecorded: Literal["refuse", "do"]


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt whose intent is recorded: it is to be done now."""

    intent: EffectEntry


@dataclass(frozen=True, slots=True)
class Recorded:
    """The effect happened before: its result stands for it."""

    result: JsonValue
    decision: Decision | None = None


class EffectCall:
    """One use of an effect: as `with … as effect`, as `async with`, or with `do` and `ado`.

    The block of the `with` is not run if the effect happened before; `result` then has what was recorded.
    """

    def __init__(self, book: EffectBook, asked: Asked) -> None:
        self.tool, self.key = asked.tool, asked.key
        self.result: Any = None
        """What `confirm` was given, or what is recorded, in its JSON form."""
        self.recorded = False
        """Whether it happened before this call, so that nothing was done now."""
        self.decision: Decision | None = None
        """Whose word it is that it happened before; its result is then not known."""
        self._book, self._asked = book, asked
        self._state: State = "new"
        self._begun: Begun | None = None
        self._skip: Skip | None = None
        self._later: EffectEntry | None = None
        self._deferring = False
        self._unwanted = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<EffectCall {self.tool} {self.key}: {self._state}>"

    @property
    def done(self) -> bool:
        """Whether it is known to have happened, before or now."""
        return self._state == "confirmed"

    # --- as a block ---------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._begin()
        if self.recorded:
            self._leave_out(sys._getframe(1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if self._left_out(error):
            return True
        self._end(error)
        return False

    async def __aenter__(self) -> Self:
        self._deferring = True
        await self._in_thread(self._begin)
        if self.recorded:
            self._leave_out(sys._getframe(1))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if self._left_out(error):
            return True
        await asyncio.shield(asyncio.to_thread(self._end, error))
        return False

    # --- as a call ----------------------------------------------------------------------------------------

    def do(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The recorded result, or what `work` returns now, which is confirmed; in its JSON form."""
        demands.function(f"work of the effect {told([self.key])}", work)
        self._begin()
        if self.recorded:
            return self.result  # type: ignore[no-any-return]  # what `work` returned, as JSON has it
        try:
            result: T = self.confirm(self._at_once(work(*args, **kwargs)))
        except BaseException as error:
            self._end(error)
            raise
        return result

    def _at_once(self, result: T) -> T:
        if inspect.iscoroutine(result):
            result.close()  # it has not begun
            self.not_done("it is a coroutine, and nobody awaited it")
            raise UsageError(
                f"the effect {told([self.key])} was not done: it is a coroutine", remedy="await its `ado`"
            )
        return result

    async def ado(self, work: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a coroutine function."""
        demands.callable_(f"work of the effect {told([self.key])}", work)
        self._deferring = True
        await self._in_thread(self._begin)
        if self.recorded:
            return self.result  # type: ignore[no-any-return]  # as in `do`
        failure: BaseException | None = None
        try:
            result = work(*args, **kwargs)
            self.confirm(await result if inspect.isawaitable(result) else result)
        except BaseException as error:
            failure = error
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(self._end, failure))
        return self.result  # type: ignore[no-any-return]  # as in `do`

    # --- what came of it ----------------------------------------------------------------------------------

    def confirm(self, result: Any = None) -> Any:
        """It happened, with this result: record that, and return the result in its JSON form.

        In an `async with` it is recorded when the block is left. Raises `NotSerialisableError` or
        `LimitExceededError` for a result that cannot be recorded: the effect stays open then.
        """
        begun = self._demand_begun("confirmed")
        self.result, entry = self._book.outcome(begun, "confirmed", result)
        self._settle(entry, "confirmed")
        return self.result

    def not_done(self, reason: str = "") -> None:
        """It certainly did not happen: record that; it may be attempted again."""
        begun = self._demand_begun("called not done")
        _, entry = self._book.outcome(begun, "not-done", reason=reason)
        self._settle(entry, "not-done")

    # --- inside -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._state != "new":
            raise UsageError(
                f"the effect {told([self.key])} was used already", remedy="call run.effect for each use"
            )
        self._state = "left"  # unless it begins
        found = self._book.begin(self._asked)
        if isinstance(found, Recorded):
            self.result, self.decision, self.recorded = found.result, found.decision, True
            self._state = "confirmed"
            return
        with self._lock:
            self._begun, self._state = found, "begun"
            unwanted = self._unwanted
        if unwanted:
            self._book.withdraw(found, "cancelled before it began")

    async def _in_thread(self, work: Callable[[], None]) -> None:
        """Wait for the store without keeping others of the loop from going on; a cancelled one never acts."""
        try:
            await asyncio.to_thread(work)
        except asyncio.CancelledError:
            with self._lock:
                self._unwanted = True
                begun = self._begun
            if begun is not None:
                self._book.withdraw(begun, "cancelled before it began")
            raise

    def _leave_out(self, frame: FrameType) -> None:
        """The last thing that is done before the block would begin."""
        try:
            skipping.demand_working()
            skip = Skip(frame, self)
        except CannotSkipError as error:
            raise EffectDoneError(
                f"the effect {told([self.key])} happened before, and its block cannot be left out here: "
                f"{error}",
                result=self.result,
                remedy="write it as `run.effect(...).do(function, ...)`; `result` of this error is what was "
                "recorded",
            ) from error
        self._skip = skip
        skip.arm()

    def _left_out(self, error: BaseException | None) -> bool:
        skip, self._skip = self._skip, None
        if skip is None:
            return False
        if not skip.over(error) and error is None:
            self._book.alarm(f"the block of the effect {told([self.key])} ran although it happened before")
        return skip.over(error)

    def _demand_begun(self, what: str) -> Begun:
        if self._state != "begun" or self._begun is None or self._later is not None:
            raise UsageError(
                f"the effect {told([self.key])} cannot be {what} now: it is {_SAID[self._state]}",
                remedy="confirm it, or call it not done, once, inside its block",
            )
        return self._begun

    def _settle(self, entry: EffectEntry, state: Literal["confirmed", "not-done"]) -> None:
        if self._deferring:
            self._later = entry
            return
        self._state = state
        self._book.end(entry)

    def _end(self, error: BaseException | None) -> None:
        """The block is left, or the call is over."""
        begun, later = self._begun, self._later
        if begun is None or self._state != "begun":
            return
        if later is not None:
            self._later = None
            self._state = "confirmed" if later.status == "confirmed" else "not-done"
            self._book.end(later)
            return
        if error is not None and isinstance(error, self._asked.not_done_on):
            self._deferring = False
            self.not_done(f"{type(error).__name__}: {error}")
            return
        self._state = "left"
        self._book.leave_open(begun)
        if error is None:
            raise UsageError(
                f"the block of the effect {told([self.key])} ended without saying whether it happened",
                remedy="call effect.confirm(result) once it is done, or effect.not_done(); until then "
                + ("it may be done again" if self._asked.replayable else "nobody knows whether it happened"),
            )


_SAID: dict[State, str] = {
    "new": "not begun",
    "begun": "settled already",
    "confirmed": "confirmed already",
    "not-done": "called not done already",
    "left": "over",
}
