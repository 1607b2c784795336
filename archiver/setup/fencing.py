"""Does the store let exactly one of several creators of a name win? Asked with objects that nobody reads."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from archiver import layout
from archiver.errors import AlreadyExistsError, ArchiverError, StoreError, UnconfirmedError
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
    left: tuple[str, ...] = ()
    """Probes that could not be removed."""

    @property
    def enforced(self) -> bool | None:
        """Whether of two writers of one number one is always told that it lost."""
        return False if not self.in_turn else self.in_a_race


def probe(store: ObjectStore, run: str) -> Fencing:
    """Try it with probes of `run`, one of `layout`'s; they are removed as far as the store permits.

    Raises what the store raises when not even a first object can be created.
    """
    names = [layout.effect_name(run, secrets.token_hex(16)) for _ in range(1 + ROUNDS)]
    try:
        in_turn = _in_turn(store, names[0])
        in_a_race = _in_a_race(store, names[1:]) if in_turn else False
    finally:
        left = remove(store, names)
    return Fencing(in_turn, in_a_race, left)


def remove(store: ObjectStore, names: Iterable[str]) -> tuple[str, ...]:
    """Remove the probes, and say which of them stay: a writer that may not delete is the safe case."""
    left = []
    for name in names:
        try:
            store.delete(name)
        except StoreError:
            left.append(name)
    return tuple(left)


def _in_turn(store: ObjectStore, name: str) -> bool:
    store.create(name, [secrets.token_bytes(16)], retention="live")
    try:
        store.create(name, [secrets.token_bytes(16)], retention="live")
    except (AlreadyExistsError, UnconfirmedError):
        return True
    return False


def _in_a_race(store: ObjectStore, names: Iterable[str]) -> bool | None:
    rounds = [Counter(_race(store, name)) for name in names]
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
