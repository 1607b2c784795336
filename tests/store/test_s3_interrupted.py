"""Ctrl-C while the network hangs: the program ends at once, and what it can still clean up it does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from e2e.s3 import keys, uploads
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from store.test_s3_uploads import NAME, at, blocks

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from store.test_s3_uploads import NAME, at, blocks
store = at(sys.argv[2], sys.argv[3], timeout=600, attempts=5)
if sys.argv[4] == "up":
    store.create(NAME, list(blocks()) * 3, retention="live")
else:
    store.download(NAME, Path(sys.argv[5]), limit=1 << 30)
"""


@pytest.mark.parametrize(
    ("way", "fault"),
    [
        ("up", Fault("hang", path="partNumber", times=None)),
        ("down", Fault("hang response", path=NAME, after=1000, times=None)),
        pytest.param(
            "down",
            Fault("hang response", path=NAME, after=1000, times=None, skip=1),
            marks=pytest.mark.soak,
        ),
    ],
    ids=["up", "down", "down in the middle"],
)
def test_an_interruption_waits_for_no_network(
    way: str, fault: Fault, s3_url: str, seaweed: Seaweed, tmp_path: Path
) -> None:
    into = tmp_path / "file"
    if way == "down":
        at(s3_url, seaweed.endpoint).create(NAME, list(blocks()) * 3, retention="live")
    with FaultProxy(seaweed.port) as proxy:
        proxy.script(fault)
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, Path(__file__).parents[1], s3_url, proxy.endpoint, way, into],
            stderr=subprocess.PIPE,
            text=True,
        )
        while not any(request.fault for request in proxy.requests):
            assert program.poll() is None
            time.sleep(0.01)
        time.sleep(0.3)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=120)  # the network is waited for longer
    assert program.returncode in (1, 130, -signal.SIGINT), said
    assert said.rstrip().endswith("KeyboardInterrupt"), said
    assert not into.exists()
    if way == "up":
        assert not keys(seaweed.client(), s3_url)
    assert not uploads(seaweed.client(), s3_url)
