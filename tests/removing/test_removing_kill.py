"""Whenever a hold, release, removal, erasure or expiry is killed, what is left explains itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.setup import Setup

SCRIPT = Path(__file__).with_name("removing_killing.py")
ACTIONS = ("hold", "release", "rm", "erase", "expire")


def killed(actions: tuple[str, ...], config: Path, note: Path, every: int) -> list[int]:
    """Kills at every so many events; gives in how many states the run was found afterwards, by action."""
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), ",".join(actions), str(config), str(note), str(every)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["action"] for line in lines] == [*actions]
    assert all(line["events"] > every for line in lines)
    return [len(line["states"]) for line in lines]


def test_now_and_then(setup: Setup, config: Path, note: Path) -> None:
    assert min(killed(ACTIONS, config, note, 199)) > 1


@pytest.mark.soak
@pytest.mark.parametrize("action", ACTIONS)
def test_at_every_event(action: str, setup: Setup, config: Path, note: Path) -> None:
    assert min(killed((action,), config, note, 1)) > 2
