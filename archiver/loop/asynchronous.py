"""The twin of a run for an event loop: what waits does so in a thread, and the loop goes on."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, ParamSpec, TypeVar, overload

from archiver.loop import demands, given
from archiver.loop.effects import EffectCall
from archiver.loop.ending import End
from archiver.loop.face import Run
from archiver.loop.left import Left
from archiver.loop.snapshot import Ticket
from archiver.model import Evidence, JsonValue, Outcome, Plan, Record, Spend

Args = ParamSpec("Args")
T = TypeVar("T")


class AsyncRun:
    """A run whose waiting calls are awaited; for one event loop. What each does is said at `Run`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        """The run itself, for code that is not asynchronous; it is safe to share between threads."""
        self._steps: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.run.id

    @property
    def task(self) -> str:
        """What the run is about, in a name."""
        return self.run.task

    @property
    def resumed(self) -> bool:
        """Whether there was something to go on with."""
        return self.run.resumed

    @property
    def finished(self) -> bool:
        """Whether the run has ended: here, or before, if it was opened again after it had succeeded."""
        return self.run.finished

    @property
    def outcome(self) -> Outcome:
        """How the run ended, or `running`."""
        return self.run.outcome

    @property
    def messages(self) -> list[Any]:
        """The conversation as it was saved or given last; a new list each time."""
        return self.run.messages

    @property
    def phase(self) -> str:
        """Where the run is, as it was said last."""
        return self.run.phase

    @property
    def note(self) -> str:
        """What was said of that."""
        return self.run.note

    @property
    def plan(self) -> Plan:
        """What is done, what is left, and what waits for a person, as it was said last."""
        return self.run.plan

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What proved the state good, as it was said last."""
        return self.run.evidence

    @property
    def results(self) -> dict[str, JsonValue]:
        """Recorded outputs of completed steps, by key."""
        return self.run.results

    @property
    def spent(self) -> Spend:
        """What the run has used so far, over all its resumes."""
        return self.run.spent

    @property
    def left(self) -> Left:
        """What is left of the budget."""
        return self.run.left

    @property
    def seq(self) -> int:
        """The number of the newest record that this process knows of; 0 where there is none."""
        return self.run.seq

    async def ring(self) -> tuple[Record, ...]:
        """As `Run.ring`: records of the newest checkpoints, the newest first."""
        return await asyncio.to_thread(self.run.ring)

    @overload
    async def step(
        self, key: str, work: Callable[Args, Awaitable[T]], /, *args: Args.args, **kwargs: Args.kwargs
    ) -> T: ...

    @overload
    async def step(
        self, key: str, work: Callable[Args, T], /, *args: Args.args, **kwargs: Args.kwargs
    ) -> T: ...

    async def step(self, key: str, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `Run.step`; what `work` returns may be awaited. A function that is not asynchronous blocks."""
        demands.callable_("work of a step", work)
        with self.run.inside(key):
            async with self._steps[key]:
                known, value = self.run.recorded(key)
                if known:
                    return value
                output = work(*args, **kwargs)
                if inspect.isawaitable(output):
                    output = await output
                return await asyncio.to_thread(self.run.record, key, output)

    async def checkpoint(
        self,
        messages: Iterable[Any] | None = None,
        *,
        phase: str | None = None,
        note: str | None = None,
        plan: given.PlanLike | None = None,
        evidence: given.EvidenceLike | Iterable[given.EvidenceLike] = (),
        milestone: str = "",
        waiting: bool = False,
        force: bool = False,
    ) -> Ticket:
        """As `Run.checkpoint`: the snapshot is taken before anything else of the event loop runs."""
        call = self.run.understand(
            messages,
            phase=phase,
            note=note,
            plan=plan,
            evidence=evidence,
            milestone=milestone,
            waiting=waiting,
            force=force,
        )
        return call if isinstance(call, Ticket) else await asyncio.to_thread(self.run.carry_out, call)

    async def pause(self, messages: Iterable[Any] | None = None, **said: Any) -> Ticket:
        """As `Run.pause`: save before a wait that this process need not survive; as `checkpoint`."""
        return await self.checkpoint(messages, **{**said, "waiting": True, "force": True})

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
        """As `Run.effect`, for `async with`."""
        return self.run.effect(
            tool,
            key=key,
            arguments=arguments,
            replayable=replayable,
            not_done_on=not_done_on,
            unrecorded=unrecorded,
        )

    def spend(
        self,
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
        usd: float = 0.0,
        iterations: int = 0,
    ) -> Left:
        """As `Run.spend`: count what was used; gives what is left of the budget."""
        return self.run.spend(
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tokens_cached=tokens_cached,
            usd=usd,
            iterations=iterations,
        )

    async def rewind(self, to: int, *, because: str = "") -> list[Any]:
        """As `Run.rewind`: go on from checkpoint `to` under a new number; gives its conversation."""
        return await asyncio.to_thread(self.run.rewind, to, because=because)

    async def flush(self, timeout: float | None = None) -> bool:
        """As `Run.flush`: wait until all is in the store; False if it is not by then. In seconds."""
        return await asyncio.to_thread(self.run.flush, timeout)

    async def finish(self, outcome: End, *, note: str | None = None) -> Ticket:
        """As `Run.finish`: end the run; its last checkpoint is saved before this returns."""
        return await asyncio.to_thread(self.run.finish, outcome, note=note)

    async def close(self) -> None:
        """As `Run.close`: save what was said last and end the writer; leaving the block does it."""
        await asyncio.to_thread(self.run.close)


async def opened_for(open_: Callable[[], Run]) -> Run:
    """The run, opened in a thread; one that nobody waits for any more is closed again."""
    lock = threading.Lock()
    made: list[Run] = []
    unwanted = False

    def work() -> None:
        run = open_()
        with lock:
            if not unwanted:
                made.append(run)
                return
        run.leave(None)

    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        with lock:
            unwanted = True
        for run in made:
            asyncio.get_running_loop().run_in_executor(None, run.leave, None)
        raise
    return made[0]
