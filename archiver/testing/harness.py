"""Kill an agent, resume it, and compare how it ends with how it ends when nobody kills it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archiver.errors import UsageError
from archiver.testing.ending import Same
from archiver.testing.lives import Lives, agent_of
from archiver.testing.points import Choice, Point, read
from archiver.testing.report import Report, Round
from archiver.testing.stage import Stage, Terms

_PREFIX: Final = "checkpoint-archiver-testing-"


def _silent(_: str) -> None:
    """Nobody listens."""


def kill_at_random(
    agent: Callable[..., Any] | str,
    times: int = 20,
    seed: int = 1,
    *,
    points: Sequence[str] = (),
    lose_disk: bool = False,
    store: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    same: Same | None = None,
    tell: Callable[[str], object] = _silent,
    keep: Path | None = None,
) -> Report:
    """Run `agent` uninterrupted, then again and again with SIGKILLs, and compare how the runs end.

    `agent` is a function of a module, or `module:function`, or `path.py:function`; it takes a `Place` or
    nothing, returns a JSON value, and is called again after each death. Kills go on until `times` of them
    have taken place, at points that `seed` picks; or there are those of `points`, a round each, as a report
    writes them (`fsync:12+upload:3`). With `lose_disk` nothing but the store, keys and configuration is left
    after a death. `store` is an address `s3://bucket/prefix`, each run below it, in place of a folder;
    `environment` holds variables for the agent; `timeout` is for one life, in seconds; `same` compares
    outcomes; `tell` hears of each round at once; `keep` is a folder that gets what is left of bad rounds.

    Raises `UsageError` for an agent that cannot be run, or does not end well when nobody kills it.
    """
    plan = [read(text) for text in points]
    if not plan and times < 1:
        raise UsageError(f"{times} kills show nothing", remedy="ask for one at least, or for points")
    terms = Terms(agent_of(agent), lose_disk, store, environment or {}, timeout, same, keep)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, Lives() as lives:
        return play(Stage(terms, lives, Path(folder)), plan, times, seed, tell)


def play(
    stage: Stage,
    plan: Sequence[tuple[Point, ...]],
    times: int,
    seed: int,
    tell: Callable[[str], object] = _silent,
) -> Report:
    """All rounds: those of `plan`, or else as many as `times` deaths take."""
    agent, lose_disk = stage.terms.agent.name, stage.terms.lose_disk
    usual = stage.uninterrupted()
    tell(f"{agent}, seed {seed}: uninterrupted {usual.seconds:.2f} s, {_counted(usual.counts)}")
    rounds: list[Round] = []
    for deaths in plan or _chosen(Choice(seed, usual.counts, usual.seconds), times, rounds):
        rounds.append(stage.round(len(rounds) + 1, deaths, usual))
        tell(f"{len(rounds)}. {rounds[-1]}")
    steady = not any(one.problems for one in rounds) or stage.steady(usual)
    return Report(agent, seed, len(plan) or times, lose_disk, usual.counts, tuple(rounds), steady)


def _chosen(choice: Choice, times: int, rounds: Sequence[Round]) -> Iterator[tuple[Point, ...]]:
    """The deaths of each round until enough of them took place in `rounds`, which grows meanwhile."""
    for _ in range(2 * times + 10):  # points that are not reached must not keep it going for ever
        died = [death.point.kind for one in rounds for death in one.deaths]
        if len(died) >= times:
            return
        yield choice.next(died, times - len(died))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no events"
