"""Each kind of death is a real one, at exactly its event: what is left tells."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Said = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "dying.py", tmp_path_factory.mktemp("dying")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: Said = json.loads(done.stdout)
    return found


DIED = {
    "write whole": ("before 10 bytes are written", [0]),
    "write half": ("half of 10 bytes written", [5]),
    "file": ("before os.rename", []),
    "fsync before": ("before fsync of", [10]),
    "fsync after": ("after fsync of", [10]),
    "upload before": ("before records/r/00000001.age is created", []),
    "upload half": ("in the middle of the upload of records/r/00000001.age", [5]),
    "effect half": ("in the middle of the upload of effects/r/", [5]),
    "send half": ("half of 10 bytes sent", []),
    "send whole": ("10 bytes sent, before any answer", []),
    "fork": ("before 10 bytes are written", [10]),
}


@pytest.mark.parametrize("case", DIED)
def test_it_dies_there_and_half_way(said: Said, case: str) -> None:
    what, sizes = DIED[case]
    one = said[case]
    assert one["status"] == -signal.SIGKILL
    assert json.loads(one["tale"])["died"].startswith(what)
    assert one["sizes"] == sizes


def test_what_is_left_besides(said: Said) -> None:
    assert "old" in said["file"]["names"], "the rename has not happened"
    assert "new" not in said["file"]["names"]
    assert 10 in said["upload after"]["sizes"]
    assert (said["send half"]["arrived"], said["send whole"]["arrived"]) == (5, 10)


@pytest.mark.parametrize("case", ["not reached", "effect is no upload"])
def test_what_is_not_reached_kills_nobody(said: Said, case: str) -> None:
    assert said[case]["status"] == 0
    assert said[case]["tale"] == ""
