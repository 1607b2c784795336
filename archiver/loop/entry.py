"""`archiver.run`: what a loop opens."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from contextvars import Token
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from archiver import describe, layout
from archiver.config import load
from archiver.errors import AWAY, ArchiverError, ObjectNotFoundError, UsageError
from archiver.gate import told
from archiver.loop import current, demands, writer_exit
from archiver.loop.asynchronous import AsyncRun, opened_for
from archiver.loop.effects import EffectBook
from archiver.loop.face import Run
from archiver.loop.given import Budget
from archiver.loop.opening import Opened, Wanted, open_run
from archiver.loop.saving import Saver
from archiver.loop.writer import Writer
from archiver.model import Workspace
from archiver.parallel import in_time
from archiver.policy import Policy, Profile
from archiver.setup import Setup, open_setup

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.deciding import Outcome
    from archiver.taking_over import Check


@dataclass(slots=True)
class Opening:
    """A run that is opened by `with`, by `async with`, or by `open`."""

    task: str
    run_id: str
    said: dict[str, Any]
    """What the checkpoint says of the run from its beginning, by field of the state."""
    wanted: Wanted
    config: Path | None
    setup: Setup | None
    rules: Policy | Profile | None
    strict: bool
    _run: Run | None = field(default=None, init=False)
    _token: Token[Run | None] | None = field(default=None, init=False)

    def open(self) -> Run:
        """The run, begun or taken over; whoever opens it so closes it with `close`.

        Raises `StoreUnreachableError` while the store is away and nothing on this machine proves where the
        run stands, `StaleCheckpointError` for a world that has changed, `NeedsDecisionError` for effects of
        which nobody knows whether they happened, `BudgetExhaustedError` (which is one of those), and
        `StaleWriterError` where somebody else resumes the run at the same time.
        """
        setup, away = self._reached()
        setup = replace(setup, without_kms=True)  # a loop cannot wait for it, and what is missing is marked
        opened = open_run(self.wanted, setup, away=away, now=datetime.now(UTC))
        return _begun(self, opened, setup)

    def _demand_unused(self) -> None:
        if self._run is not None:
            raise UsageError(
                f"run {self.run_id} is open by this very call of archiver.run",
                remedy="call archiver.run for each `with`, of a run of its own",
            )

    def _reached(self) -> tuple[Setup, ArchiverError | None]:
        """The store and the keys; the error of a store that is away, whose id the settings know."""
        settings = load(self.config) if self.setup is None else self.setup.settings
        patience = settings.run.patience.total_seconds()
        try:
            return in_time(lambda: self._asked(settings), patience), None
        except AWAY as error:
            if self.setup is not None:
                return self.setup, error
            if settings.store.id is None:
                raise
            return open_setup(settings, need="write", offline=True), error

    def _asked(self, settings: Settings) -> Setup:
        """The setup, after the store has answered once."""
        if self.setup is None:
            return open_setup(settings, need="write")
        with suppress(ObjectNotFoundError):
            self.setup.store.head(layout.STORE)
        return self.setup

    def __enter__(self) -> Run:
        self._demand_unused()
        self._run = self.open()
        self._token = current.enter(self._run)
        return self._run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            if self._token is not None:
                current.leave(run, self._token)
            run.leave(error)

    async def __aenter__(self) -> AsyncRun:
        self._demand_unused()
        self._run = await opened_for(self.open)
        self._token = current.enter(self._run)
        return AsyncRun(self._run)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            if self._token is not None:
                current.leave(run, self._token)
            await asyncio.shield(asyncio.to_thread(run.leave, error))


def run(
    task: str,
    *,
    run_id: str | None = None,
    harness: str | None = None,
    model: str | None = None,
    budget: Budget | None = None,
    policy: Policy | Profile | None = None,
    objective: str | None = None,
    dialect: str | None = None,
    workspace: str | Path | None = None,
    user: str | None = None,
    strict: bool = False,
    offline: Literal["refuse", "start"] = "refuse",
    accept: Collection[str] = (),
    resolve: Mapping[str, Outcome] | None = None,
    because: str = "",
    check: Check | None = None,
    config: str | Path | None = None,
    setup: Setup | None = None,
) -> Opening:
    """A run of an agent on a task, to be opened by `with` or `async with`: resumed if there is something to.

    `run_id` names this run of the task; without it the task is the id, so that the same call resumes it.
    `budget` counts instead of the one that was saved. `policy` says when it is saved: a profile or a
    `Policy`, else what `[run]` in the settings says. `dialect` is the format of the messages, which is found
    out otherwise; `workspace` the folder that the run works in, whose changes count when it is resumed.
    `accept`, `resolve`, `because` and `check` are those of a restore. `offline="start"` begins also while the
    store is away and nothing proves that there is nothing to resume. `config` names the configuration file,
    `setup` a store and keys that are open already. Raises `UsageError` for what cannot be right.
    """
    demands.texts(task=task, run_id=run_id, harness=harness, model=model, objective=objective, user=user)
    demands.texts(because=because)
    demands.opening(
        budget=budget,
        policy=policy,
        dialect=dialect,
        workspace=workspace,
        offline=offline,
        accept=accept,
        resolve=resolve,
        check=check,
        config=config,
        setup=setup,
    )
    name = task if run_id is None else run_id
    said: dict[str, Any] = {
        "objective": objective,
        "dialect": dialect,
        "user_id": user,
        "budget": None if budget is None else budget.model(),
        "workspace": None if workspace is None else Workspace(path=str(Path(workspace).absolute())),
    }
    environment = describe.host(harness=harness, model=model)
    return Opening(
        task,
        name,
        {**{key: value for key, value in said.items() if value is not None}, "environment": environment},
        Wanted(
            task,
            name,
            accept=accept,
            resolve=resolve,
            because=because or "",
            check=check,
            budget=said["budget"],
            harness=harness,
            model=model,
            start_offline=offline == "start",
        ),
        None if config is None else Path(config),
        setup,
        policy,
        strict,
    )


def _begun(opening: Opening, opened: Opened, setup: Setup) -> Run:
    """The run with its writer and its book of effects."""
    settings = setup.settings
    state = replace(opened.state, **opening.said)
    if state.user_id is None:
        state.user_id = settings.archive.user
    patience = settings.run.patience.total_seconds()
    writer = Writer(setup, opened.place, opened.spool, patience=patience, queue=settings.run.queue)
    rules = _rules(opening.rules, settings)
    if opened.offline:
        writer.reach.missed()
    saver = Saver(
        state,
        writer,
        rules=rules,
        strict=opening.strict,
        patience=patience,
        captures=settings.workspace.capture,
    )
    book = EffectBook(
        opened.ledger,
        opened.effects,
        opened.decisions,
        fence=writer.fence,
        glance=writer.glance,
        allowed=lambda key: saver.demand_open(f"effect {told([key])}"),
        ready=saver.begin,
        put_aside=writer.put_aside,
        changed=saver.acted,
        strict=opening.strict,
        reach=writer.reach,
    )
    saver.effects = lambda: book.effects
    writer_exit.watch(saver)
    return Run(opened, setup, saver, book, strict=opening.strict)


def _rules(given: Policy | Profile | None, settings: Settings) -> Policy:
    if isinstance(given, Policy):
        return given
    asked = settings.run
    return Policy(given or asked.profile, floor=asked.floor.total_seconds(), floor_calls=asked.floor_calls)
