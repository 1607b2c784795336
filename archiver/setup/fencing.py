"""Does the store let exactly one of several creators of a name win? Asked with objects that nobody reads."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from archiver.errors import AlreadyExistsError, ArchiverError, UnconfirmedError
from archiver.setup.probes import Probes
from archiver.store import ObjectStore

RACERS = 6
ROUNDS = 2

_Outcome = Literal["won", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Fencing:
    """What became of a name that several creators wanted; None where the store failed meanwhile."""

    in_turn: bool
    """The second of two creates, one after the other, was refused."""
    in_a_race: bool | None
    """Of creates at the same moment exactly one won, each time."""

    @property
    def enforced(self) -> bool | None:
        """Whether of two writers of one number one is always told that it lost."""
        return False if not self.in_turn else self.in_a_race


def probe(store: ObjectStore, probes: Probes) -> Fencing:
    """Try it. Raises what the store raises when not even a first object can be created."""
    in_turn = _in_turn(store, probes.name())
    return Fencing(in_turn, _in_a_race(store, probes) if in_turn else False)


def _in_turn(store: ObjectStore, name: str) -> bool:
    store.create(name, [secrets.token_bytes(16)], retention="live")
    try:
        store.create(name, [secrets.token_bytes(16)], retention="live")
    except (AlreadyExistsError, UnconfirmedError):
        return True
    return False


def _in_a_race(store: ObjectStore, probes: Probes) -> bool | None:
    rounds = [Counter(_race(store, probes.name())) for _ in range(ROUNDS)]
    if any(outcomes["won"] > 1 for outcomes in rounds):
        return False
    clear = all(outcomes["won"] == 1 and not outcomes["failed"] for outcomes in rounds)
    return True if clear else None


def _race(store: ObjectStore, name: str) -> list[_Outcome]:
    start = threading.Barrier(RACERS)
    outcomes: list[_Outcome] = []

    def create() -> None:
        body = secrets.token_bytes(16)
        start.wait()
        try:
            store.create(name, [body], retention="live")
            outcomes.append("won")
        except (AlreadyExistsError, UnconfirmedError):
            outcomes.append("refused")
        except ArchiverError:
            outcomes.append("failed")

    threads = [threading.Thread(target=create) for _ in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
