"""What an agent under test is given: a folder, a store's configuration, and an outside world to act on."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archiver import jsonio
from archiver.effect_names import name_of
from archiver.errors import DamagedError

if TYPE_CHECKING:
    from archiver.deciding import Outcome
    from archiver.model import Effect

# Taken before anybody counts calls of it: the journal is no part of what is tested.
_fsync, _write = os.fsync, os.write


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that was done in the world."""

    key: str
    value: Any = None
    replayable: bool = False
    """Whether it may be done again."""


def _nobody(_: str) -> None:
    """Nobody watches."""


class World:
    """The world outside the agent: a journal on disk of what was done in it, which no death takes back."""

    def __init__(self, journal: Path, *, watch: Callable[[str], None] = _nobody) -> None:
        self.journal = journal
        self._watch = watch
        self._file = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def act(self, key: str, value: Any = None, *, replayable: bool = False) -> Any:
        """Do something, durable when this returns; gives `value`, which has a JSON form.

        Each call counts: the harness finds what was done twice, unless it is `replayable`.
        """
        self._watch(f"before the action {key}")
        document = {"key": key, "value": value, "replayable": replayable}
        _write(self._file, jsonio.canonical(document) + b"\n")
        _fsync(self._file)
        self._watch(f"after the action {key}")
        return value

    def actions(self) -> list[Action]:
        """All that was done, in order."""
        try:
            return [
                Action(**jsonio.loads(line))
                for line in os.pread(self._file, os.fstat(self._file).st_size, 0).splitlines()
            ]
        except (TypeError, ValueError) as error:
            raise DamagedError(
                f"the journal {self.journal} holds a line that no action wrote",
                remedy="let the agent write there through World.act alone",
            ) from error

    def done(self, key: str) -> bool:
        """Whether it was done."""
        return any(action.key == key for action in self.actions())

    def value(self, key: str) -> Any:
        """What the last action of this key gave; None where it was not done."""
        return next((action.value for action in reversed(self.actions()) if action.key == key), None)

    def close(self) -> None:
        """Let go of the journal."""
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent under test works."""

    folder: Path
    """Its working folder, which is lost with the machine's disk."""
    config: Path
    """The configuration of its store; the environment names it too."""
    world: World
    resolve: Mapping[str, Outcome] = field(default_factory=dict)
    """What a person found out about effects that a run before this one left undecided; for `archiver.run`."""
    because: str = ""

    def check(self, effect: Effect) -> Outcome:
        """A precondition check for `archiver.run(check=…)`: an effect happened if the journal has its key."""
        return "done" if self.world.done(effect.key) else "not-done"


def found_in(world: World, keys: Collection[str]) -> dict[str, Outcome]:
    """What a person who looks into the journal says of these effects, by their names."""
    done = {name_of(action.key) for action in world.actions()}
    return {name_of(key): "done" if name_of(key) in done else "not-done" for key in keys}
