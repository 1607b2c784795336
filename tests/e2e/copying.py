"""Copies of one run, each a process of its own, that are stopped at a step of opening or acting and let on.

    python copying.py CONFIG JOURNAL KEYS KIND:PLAY...

plays these, each with a run of its own, and prints one JSON line for each: how the copies ended, and what
they did. KEYS is `one` signing key for all copies on one machine, or `two`: then the second copy has a key
and a machine of its own. KIND is what they do: an `effect` that cannot be done again, one that may be done
`again`, or a `step`; PLAY is one of `PLAYS`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import archiver
from archiver.config import load
from archiver.errors import ArchiverError
from archiver.redact import Redactor, new_key
from archiver.setup import Setup, open_setup
from archiver.sign import SigningKey
from archiver.store.decorated import Decorated, DecoratedRemote
from archiver.writers import Writer, Writers

FIRST, SECOND = "one", "two"
"""The keys of what each copy does, in this order."""

# Each turn: whose it is, and up to where; a copy with `-` looks nowhere what came of what is undecided.
PLAYS: dict[str, tuple[str, ...]] = {
    "before": ("A before one", "B ended", "A ended"),
    "between intent and fence": ("A intent", "B ended", "A ended"),
    "before the claim": ("A before one", "B claim", "A before two", "B ended", "A ended"),
    "between claim and ledger": ("A before one", "B claimed", "A ended", "B ended"),
    "in the act": ("A acting", "-B ended", "A ended"),
    "both between": ("A before one", "-B claim", "A intent", "-B ended", "A ended", "C ended"),
}


class Stops:
    """The points at which a copy waits for its turn."""

    def __init__(self, told: int, turns: int) -> None:
        self._told, self._turns = told, turns
        self.opened = False

    def at(self, point: str) -> None:
        self.tell(point)
        os.read(self._turns, 1)

    def tell(self, point: str) -> None:
        os.write(self._told, point.encode() + b"\n")


class Stopping(Decorated):
    """Stops around the claim of a copy that resumes, and after each intent."""

    def __init__(self, inner: Any, stops: Stops) -> None:
        super().__init__(inner)
        self._stops = stops

    def create(self, name: str, body: Iterable[bytes], *, retention: Any) -> Any:
        claim = name.startswith("records/") and not self._stops.opened
        if claim:
            self._stops.at("claim")
        made = super().create(name, body, retention=retention)
        if claim or name.startswith("effects/"):
            self._stops.at("claimed" if claim else "intent")
        return made


class StoppingRemote(Stopping, DecoratedRemote):
    """The same for a bucket."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a copy is to do."""

    name: str
    run: str
    kind: str
    looks: bool
    journal: Path


def live(part: Part, setup: Setup, stops: Stops) -> None:
    """The whole life of a copy."""

    def act(key: str) -> str:
        stops.at("acting")
        with part.journal.open("a") as journal:
            journal.write(f"{part.run}\t{part.name} {key}\n")
        return part.name

    def check(effect: archiver.Effect) -> archiver.Outcome:
        done = any(line.split()[-1] == effect.key for line in did(part))
        return "done" if done else "not-done"

    wrapper = StoppingRemote if setup.settings.store.url.startswith("s3:") else Stopping
    setup = replace(setup, store=wrapper(setup.store, stops))
    opening = archiver.run(part.run, setup=setup, policy=RULES, check=check if part.looks else None)
    with opening as run:
        stops.opened = True
        if not run.resumed:
            run.checkpoint([{"role": "user", "content": "go"}])
        for key in (FIRST, SECOND):
            stops.at(f"before {key}")
            if part.kind == "step":
                run.step(key, act, key)
            else:
                run.effect("act", key=key, replayable=part.kind == "again").do(act, key)
        run.finish("succeeded")


RULES = archiver.Policy("every-step", floor=0)


def did(part: Part) -> list[str]:
    """What copies of this run have done."""
    lines = part.journal.read_text().splitlines() if part.journal.exists() else []
    return [line.partition("\t")[2] for line in lines if line.startswith(f"{part.run}\t")]


class Copy:
    """A process, seen from outside."""

    def __init__(self, part: Part, make: Callable[[], Setup]) -> None:
        told, turns = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become(part, make, Stops(told[1], turns[0]))
        for end in (told[1], turns[0]):
            os.close(end)
        self._turns, self._told = turns[1], os.fdopen(told[0])
        self._waits = False
        self.ended = ""

    def go(self, upto: str) -> None:
        """Let it go on until it is there, or has ended."""
        while not self.ended:
            if self._waits:
                os.write(self._turns, b".")
            self._waits = True
            point = self._told.readline().strip()
            if not point or point.startswith("ended"):
                self.ended = point.partition(" ")[2] or "without a word"
                os.waitpid(self._pid, 0)
            if point == upto:
                return
        assert upto == "ended", f"ended with {self.ended} before it came to {upto}"


def _become(part: Part, make: Callable[[], Setup], stops: Stops) -> None:
    try:
        live(part, make(), stops)
        stops.tell("ended well")
    except ArchiverError as error:
        stops.tell(f"ended {type(error).__name__}")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def play(part: Part, turns: Iterable[str], makes: dict[str, Callable[[], Setup]]) -> Any:
    """One run: how its copies ended, and what they did."""
    copies: dict[str, Copy] = {}
    for turn in turns:
        who, _, upto = turn.lstrip("-").partition(" ")
        if who not in copies:
            copies[who] = Copy(replace(part, name=who, looks=turn[0] != "-"), makes.get(who, makes["A"]))
        copies[who].go(upto)
    return {"ended": {name: copy.ended for name, copy in copies.items()}, "did": did(part)}


def main(config: Path, journal: Path, keys: str, plays: list[str]) -> None:
    Redactor.load(new_key())  # once here, so that the copies need not
    key = SigningKey.generate()
    own = open_setup(load(config), need="write").require_signing_key().public
    both = Writers((Writer(name="a", key=own), Writer(name="b", key=key.public)), Path("writers.toml"))

    def first() -> Setup:
        return replace(open_setup(load(config), need="write"), writers=both)

    def second() -> Setup:
        os.environ["XDG_STATE_HOME"] = str(journal.parent / "second")
        return replace(first(), signing_key=key, witness=None)

    makes = {"A": first, "B": first if keys == "one" else second}
    for number, asked in enumerate(plays):
        kind, _, name = asked.partition(":")
        told = play(Part("", f"run-{number}", kind, True, journal), PLAYS[name], makes)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
