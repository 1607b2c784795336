"""What a kill test found: each death, what was covered, and what did not end as the uninterrupted run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from archiver.testing.points import KINDS, Point, written


@dataclass(frozen=True, slots=True)
class Death:
    """One kill: where it was planned, and what the agent was doing."""

    point: Point
    what: str


@dataclass(frozen=True, slots=True)
class Round:
    """A new run of the agent, killed and resumed until it ended."""

    plan: tuple[Point, ...]
    deaths: tuple[Death, ...] = ()
    lives: int = 0
    problems: tuple[str, ...] = ()
    """In what it differs from the uninterrupted run; empty where it does not."""
    again: int = 0
    """Replayable actions that were done again, of which checkpoints should leave few."""

    @property
    def not_reached(self) -> tuple[Point, ...]:
        """Points that it ended before: nothing was tried there."""
        return self.plan[len(self.deaths) :]

    def __str__(self) -> str:
        told = [f"[{written(self.plan)}]"]
        told += [f"killed {death.what}" for death in self.deaths]
        if self.not_reached:
            told.append(f"did not come to {written(self.not_reached)}")
        if self.again:
            told.append(f"{self.again} replayable action{'s' * (self.again > 1)} done again")
        told += [problem.partition("\n")[0] for problem in self.problems] or [
            "ended as the uninterrupted run"
        ]
        return "; ".join(told)


@dataclass(frozen=True, slots=True)
class Report:
    """All rounds of one kill test; `str` says it in full."""

    agent: str
    seed: int
    times: int
    """Kills that were asked for."""
    lose_disk: bool
    counts: Mapping[str, int]
    """Events of the uninterrupted run, by kind."""
    rounds: tuple[Round, ...]
    steady: bool = True
    """Whether the agent, where that had to be found out, ends the same when nobody kills it."""

    @property
    def kills(self) -> int:
        """Deaths that really happened."""
        return sum(len(one.deaths) for one in self.rounds)

    @property
    def again(self) -> int:
        """Replayable actions that were done again, in all rounds."""
        return sum(one.again for one in self.rounds)

    @property
    def coverage(self) -> dict[str, int]:
        """Deaths by kind; a kind that the agent has no events of is missing."""
        died = Counter(death.point.kind for one in self.rounds for death in one.deaths)
        return {kind: died[kind] for kind in KINDS if kind in self.counts or died[kind]}

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong; empty if each round ended as the uninterrupted run, and nothing was left untried."""
        return tuple(self._problems())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def check(self) -> None:
        """Raise `AssertionError`, with everything that there is to say, unless all is well."""
        if not self.ok:
            raise AssertionError(str(self))

    def _problems(self) -> Iterator[str]:
        if not self.steady:
            yield "the agent ends differently each time, even if nobody kills it: make its outcome steady"
        for one in self.rounds:
            for problem in one.problems:
                yield f"[{written(one.plan)}] {problem}"
        if self.kills < self.times:
            yield f"only {self.kills} of {self.times} kills took place: the other points were not reached"

    def __str__(self) -> str:
        first, *rest = self.summary()
        rounds = (f"  {number}. {one}" for number, one in enumerate(self.rounds, 1))
        return "\n".join((first, *rounds, *rest))

    def summary(self) -> list[str]:
        """The same without the rounds, as lines."""
        lives = sum(one.lives for one in self.rounds)
        lost = ", its disk lost each time" if self.lose_disk else ""
        size = f"{self.kills} kills in {len(self.rounds)} runs and {lives} lives"
        died = (f"{kind} {n} ({self.counts.get(kind, '?')})" for kind, n in self.coverage.items())
        told = [
            f"{self.agent}: {size}, {self.again} replayable actions done again, seed {self.seed}{lost}",
            f"deaths by kind (and events of the uninterrupted run): {', '.join(died)}",
        ]
        bad = [written(one.plan) for one in self.rounds if one.problems]
        if bad:
            told.append(f"the same deaths again: points={bad!r}")
        told += [f"WRONG: {problem}" for problem in self.problems]
        return told if self.problems else [*told, "nothing is wrong"]

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "agent": self.agent,
            "seed": self.seed,
            "times": self.times,
            "kills": self.kills,
            "lose_disk": self.lose_disk,
            "counts": dict(self.counts),
            "coverage": self.coverage,
            "problems": list(self.problems),
            "rounds": [_document(one) for one in self.rounds],
        }


def _document(one: Round) -> dict[str, Any]:
    return {
        "points": written(one.plan),
        "deaths": [{"point": str(death.point), "what": death.what} for death in one.deaths],
        "not_reached": [str(point) for point in one.not_reached],
        "lives": one.lives,
        "again": one.again,
        "problems": list(one.problems),
    }
