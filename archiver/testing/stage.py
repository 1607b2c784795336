"""Where the rounds are played: a machine and a store for each, one life after another, and how it ended."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from archiver.deciding import Outcome
from archiver.errors import ArchiverError, UsageError
from archiver.testing.ending import Ending, Same, differences, ending, repeated
from archiver.testing.lives import Agent, Life, Lives
from archiver.testing.machine import Machine
from archiver.testing.place import Action, World, found_in
from archiver.testing.points import Point, written
from archiver.testing.report import Death, Round

_STANDING: Final = "archiver.testing.standing"
_LOOK: Final = 600.0
"""Seconds for making a store, and for a look at all that is in it."""
_ASKED: Final = 8
"""How often a person is asked in one round before the harness gives up."""


@dataclass(frozen=True, slots=True)
class Usual:
    """The run that nobody interrupts."""

    ending: Ending
    counts: Mapping[str, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class Terms:
    """What is tested and how, as `kill_at_random` is told."""

    agent: Agent
    lose_disk: bool = False
    store: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0
    same: Same | None = None
    keep: Path | None = None


class Stage:
    """Plays one round after another below `folder`."""

    def __init__(self, terms: Terms, lives: Lives, folder: Path) -> None:
        self._terms, self._lives, self._folder = terms, lives, folder
        self._new: Machine | None = None
        """With a store that nothing was saved in yet."""
        self._store = terms.store and f"{terms.store.rstrip('/')}/{secrets.token_hex(4)}"

    @property
    def terms(self) -> Terms:
        return self._terms

    def uninterrupted(self, name: str = "uninterrupted") -> Usual:
        """Run the agent and kill nobody; `UsageError` if it does not end well then."""
        machine = self._machine(name)
        life = self._live(machine, None, {})
        if not life.ended:
            raise UsageError(
                f"the agent {self._terms.agent.name} does not end well when nobody kills it: {life.problem}",
                remedy="mend it, or make `timeout` longer; then look at what kills do",
            )
        usual = Usual(self._ending(life, machine), life.counts, life.seconds)
        self._remove(machine)
        if usual.ending.wrong:
            raise UsageError(
                f"the agent {self._terms.agent.name} leaves a store that is not whole when nobody kills it: "
                + "; ".join(usual.ending.wrong)
            )
        return usual

    def steady(self, usual: Usual) -> bool:
        """Whether it ends like that once more, when nobody kills it."""
        return not list(differences(usual.ending, self.uninterrupted("again").ending, self._terms.same))

    def round(self, number: int, plan: tuple[Point, ...], usual: Usual) -> Round:
        """A new run, killed at these points one after another, and resumed until it ends."""
        machine = self._machine(str(number))
        deaths: list[Death] = []
        life = self._live(machine, plan[0], {})
        lives, asked = 1, 0
        while life.died or (life.undecided and asked < _ASKED):
            resolve: Mapping[str, Outcome] = {}
            if life.died:
                deaths.append(Death(plan[len(deaths)], life.died))
                if self._terms.lose_disk:
                    machine.lose()
            else:
                asked += 1
                resolve = _found(machine, life.undecided)
            point = plan[len(deaths)] if len(deaths) < len(plan) else None
            life = self._live(machine, point, resolve)
            lives += 1
        found = self._ending(life, machine)
        problems = tuple(differences(usual.ending, found, self._terms.same))
        if not life.ended:
            problems = (f"resumed, {life.problem}",)
        if problems and self._terms.keep is not None:
            shutil.copytree(machine.root, self._terms.keep / written(plan), dirs_exist_ok=True)
        self._remove(machine)
        return Round(plan, tuple(deaths), lives, problems, repeated(usual.ending, found))

    def _live(self, machine: Machine, point: Point | None, resolve: Mapping[str, Outcome]) -> Life:
        return self._lives.live(
            self._terms.agent, machine, point=point, resolve=resolve, timeout=self._terms.timeout
        )

    def _ending(self, life: Life, machine: Machine) -> Ending:
        found = self._helper("look", machine)
        if not found.ended:
            return Ending(life.outcome, _actions(machine), wrong=(f"it cannot be read: {found.problem}",))
        return ending(life.outcome, _actions(machine), found.outcome)

    def _machine(self, name: str) -> Machine:
        """A new machine with a new store."""
        root = self._folder / name
        machine = Machine(
            root, f"{self._store}/{name}" if self._store else str(root / "store"), self._terms.environment
        )
        machine.make()
        if not machine.remote and self._new is not None:
            machine.set_up_like(self._new)  # which takes less time than to prove a new store and new keys
            return machine
        made = self._helper("prepare", machine)
        if not made.ended:
            raise ArchiverError(
                f"the store {machine.url} for the agent under test cannot be made: {made.problem}",
                remedy="name a store that `archiver init` can make, and what it needs in `environment`",
            )
        if not machine.remote:
            self._new = Machine(self._folder / "new", machine.url, self._terms.environment)
            self._new.make()
            self._new.set_up_like(machine)
        return machine

    def _remove(self, machine: Machine) -> None:
        if machine.remote:
            self._helper("tidy", machine)  # a caller who may not delete keeps the objects
        shutil.rmtree(machine.root)

    def _helper(self, function: str, machine: Machine) -> Life:
        return self._lives.live(Agent(function, _STANDING, function), machine, watched=False, timeout=_LOOK)


def _actions(machine: Machine) -> tuple[Action, ...]:
    with closing(World(machine.journal)) as world:
        return tuple(world.actions())


def _found(machine: Machine, keys: Collection[str]) -> Mapping[str, Outcome]:
    """What a person finds who looks into the journal."""
    with closing(World(machine.journal)) as world:
        return found_in(world, keys)
