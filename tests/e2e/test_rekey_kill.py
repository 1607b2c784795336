"""Death at every step of a rekey: what is left verifies and restores, and running it again finishes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from servers.seaweed import Seaweed

HERE = Path(__file__).parent


def kill(config: Path, note: Path, every: int) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "rekey_killing.py"), str(config), str(note), str(every)],
        capture_output=True,
        text=True,
        timeout=3000,
        env={**os.environ, "TMPDIR": str(config.parent)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0] == {"event": 1, "rewritten": 0, "notes": 0}
    assert (lines[-1]["rewritten"], lines[-1]["notes"]) == (4, 1)
    assert {line["notes"] for line in lines if line["rewritten"]} == {1}, "a header before its note"
    assert {0, 4} < set(last["states"]), "some died among the headers"
    return lines


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One header after the other, so that few kills see the middle as well."""
    monkeypatch.setenv("ARCHIVER_STORE__PARALLEL", "1")
    monkeypatch.setenv("FOLDER_WORKERS", "1")


@pytest.mark.usefixtures("one_by_one")
def test_killed_at_steps_of_a_rekey(config: Path, note: Path) -> None:
    assert len(kill(config, note, every=25)) > 4


@pytest.mark.soak
def test_killed_at_every_step_of_a_rekey(config: Path, note: Path) -> None:
    assert len(kill(config, note, every=1)) > 100


def test_killed_between_requests_of_a_rekey(
    s3_config: Path, seaweed: Seaweed, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "ARCHIVER_STORE__PARALLEL", "1"
    )  # one header after the other: few kills see the middle
    assert len(kill(s3_config, note, every=8)) > 3


@pytest.mark.soak
def test_killed_before_every_piece_of_a_request(s3_config: Path, seaweed: Seaweed, note: Path) -> None:
    assert len(kill(s3_config, note, every=1)) > 30
