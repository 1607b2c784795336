"""Death at any moment of a run that is saved with its folder: what is restored is of one step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archiver.setup import Setup
from archiver.verify import verify

HERE = Path(__file__).parent


def kill(config: Path, folder: Path, kills: int, seed: int, kind: str) -> list[dict[str, Any]]:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(HERE / "workspace_killing.py"), config, folder, str(kills), str(seed), kind],
        capture_output=True,
        text=True,
        timeout=3600,
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parent),
            "TMPDIR": str(folder),
            "ARCHIVER_WORKSPACE__CAPTURE": "true",
        },
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def whole(setup: Setup, lines: list[dict[str, Any]]) -> None:
    assert lines[-1]["steps"][1] > 1, "the run must have come somewhere"
    assert not [found for found in verify(setup, "r", deep=True) if not found.ok]


@pytest.mark.parametrize("kind", ["folder", pytest.param("git", marks=pytest.mark.soak)])
def test_killed_at_some_moments(config: Path, setup: Setup, tmp_path: Path, kind: str) -> None:
    whole(setup, kill(config, tmp_path / "killed", 5, 1, kind))


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["folder", "git"])
def test_killed_at_many_moments(config: Path, setup: Setup, tmp_path: Path, kind: str) -> None:
    lines = kill(config, tmp_path / "killed", 120, 2, kind)
    whole(setup, lines)
    assert any(line["steps"][0] < line["steps"][1] for line in lines), "something waited in the spool"
    assert any(line["begun"] > line["steps"][1] for line in lines), "something died in the middle of a step"
