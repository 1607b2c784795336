"""An agent whose store goes away: it opens its run, says so, goes on when it is told to, and ends well.

    python away_agent.py CONFIG OFFLINE [DIES_AFTER]

`OFFLINE` is that of `archiver.run`. After so many turns it kills itself, if that is given.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import archiver

RUN = "away"
TURNS = 4
ALWAYS = archiver.Policy("every-step", floor=0.0, floor_calls=1)


def work(run: Any, turned: Callable[[int], None] = lambda _: None, *, upto: int = TURNS) -> None:
    """A turn is a step, an effect that may be done again, spend and a checkpoint; all of them end the run."""
    messages = run.messages or [{"role": "user", "content": "Rename the table."}]
    for turn in range(len(messages) // 2, upto):
        prices = run.step(f"fetch-{turn}", lambda day: {"day": day}, turn)
        sent = run.effect("notify", key=f"notify-{turn}", replayable=True).do(lambda: "sent")
        messages += [
            {"role": "assistant", "content": f"turn {turn}: {prices}, {sent}"},
            {"role": "user", "content": "go on"},
        ]
        run.spend(tokens_in=100, usd=0.01)
        run.checkpoint(messages, phase=f"phase {turn // 2}", note=f"turn {turn}")
        turned(turn + 1)
    if upto == TURNS:
        run.finish("succeeded")


def main(config: str, offline: Any, dies_after: int = 0) -> None:
    def turned(turns: int) -> None:
        if turns == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    with archiver.run(RUN, config=Path(config), policy=ALWAYS, offline=offline) as run:
        print("open", flush=True)
        sys.stdin.readline()
        work(run, turned)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
