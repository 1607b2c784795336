"""Points of death: the n-th event of a kind, or a moment; as words, and which ones to try."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from archiver.errors import UsageError

KINDS: Final = {
    "act": "an action in the world: before it and after it",
    "effect": "an object of intent or outcome goes to the store: before, in the middle, after",
    "upload": "any other object goes to the store: before, in the middle, after",
    "fsync": "a file or folder is brought to the disk: before and after",
    "file": "a file is opened for writing, renamed, linked, removed, locked, or a folder made: before",
    "write": "bytes are written to a file descriptor: before, and half of them",
    "send": "bytes are sent to a socket: before, half of them, all of them but no answer",
    "time": "any moment: killed from outside after so many seconds",
}
"""What is counted in an agent, and where it dies."""
MUST: Final = ("act", "upload", "fsync", "effect")
"""Kinds of which each agent that has them dies at least once, in this order."""
_AGAIN: Final = 0.35
"""How often a run that was resumed is killed as well."""
_MOST: Final = 4
"""Deaths in one round."""
_POINT: Final = re.compile(r"([a-z]+):([0-9]{1,9}|[0-9]{1,6}\.[0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Point:
    """One point of death: the `number`-th event of `kind` (from 1), or seconds for `time`."""

    kind: str
    number: float

    def __str__(self) -> str:
        return f"{self.kind}:{self.number:.4f}" if self.kind == "time" else f"{self.kind}:{self.number:.0f}"


def read(text: str) -> tuple[Point, ...]:
    """The deaths of one round as written: `fsync:12`, or `fsync:12+upload:3` to die again when resumed.

    Raises `UsageError` for anything else.
    """
    return tuple(_read(part.strip()) for part in text.split("+"))


def _read(text: str) -> Point:
    match = _POINT.fullmatch(text)
    if match is None or match[1] not in KINDS or (match[1] != "time" and not match[2].isdecimal()):
        raise UsageError(
            f"{text[:80]!r} is no point of death",
            remedy=f"write KIND:NUMBER, such as fsync:12; kinds are {', '.join(KINDS)}",
        )
    point = Point(match[1], float(match[2]))
    if point.number == 0 and point.kind != "time":
        raise UsageError(f"{text[:80]!r} is no point of death: events count from 1")
    return point


def written(points: Collection[Point]) -> str:
    """What `read` reads."""
    return "+".join(map(str, points))


class Choice:
    """Picks the deaths of one round after another; the same seed and counts give the same ones."""

    def __init__(self, seed: int, counts: Mapping[str, int], seconds: float) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._counts = {kind: counts[kind] for kind in KINDS if counts.get(kind)}
        self._seconds = seconds
        self._order = self._kinds()

    def next(self, reached: Collection[str], most: int = _MOST) -> tuple[Point, ...]:
        """The next round, of at most `most` deaths: first of kinds that must be and were not `reached` yet,
        then of each kind in turn.
        """
        missing = [kind for kind in MUST if kind in self._counts and kind not in reached]
        points = [self._point(missing[0] if missing else next(self._order))]
        while len(points) < min(most, _MOST) and self._random.random() < _AGAIN:
            points.append(self._point(self._random.choice([*self._counts, "time"])))
        return tuple(points)

    def _kinds(self) -> Iterator[str]:
        # What lies around an action is what matters most, so it comes twice as often.
        kinds = [*self._counts, *(kind for kind in ("act",) if kind in self._counts), "time"]
        while True:
            yield from self._random.sample(kinds, len(kinds))

    def _point(self, kind: str) -> Point:
        if kind == "time":
            return Point(kind, round(self._random.uniform(0, self._seconds), 4))
        return Point(kind, self._random.randint(1, self._counts[kind]))
