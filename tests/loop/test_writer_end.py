"""How a process ends that has not closed its writer: by itself, by an error, by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.config import load
from archiver.setup import Setup, open_setup
from archiver.spool import open_spool
from loop.writing import notes, snapshot, writer

CHILD = Path(__file__).parent / "writer_child.py"


def run(config: Path, how: str, number: int = 3) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHILD), str(config), how, str(number)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ},
    )


@pytest.mark.parametrize(("how", "code"), [("ends", 0), ("raises", 1)])
def test_what_is_queued_is_stored_when_the_program_ends(
    config: Path, setup: Setup, how: str, code: int
) -> None:
    done = run(config, how)
    assert done.returncode == code, done.stderr
    assert ("the agent is wrong" in done.stderr) is (how == "raises")
    assert notes(setup) == ["note 0", "note 1", "note 2"]
    assert not open_spool(setup).of("r", "r").entries()


@pytest.mark.parametrize(("how", "code"), [("hangs", 0), ("killed", -signal.SIGKILL)])
def test_what_is_sealed_is_delivered_by_the_next_process(
    config: Path, reopen: Callable[[], Setup], how: str, code: int
) -> None:
    done = run(config, how)
    assert done.returncode == code, done.stderr
    assert ("in the spool waits: 3 checkpoints; " in done.stderr) is (how == "hangs")
    setup = reopen()
    assert not list(setup.store.list("records/"))
    spool = open_spool(setup).of("r", "r")
    assert [entry.seq for entry in spool.entries()] == [1, 2, 3]
    next_one = writer(setup, spool=spool)
    assert next_one.flush()
    next_one.end(5)
    assert notes(setup) == ["note 0", "note 1", "note 2"]


def test_a_server_that_hangs_refuses_and_loses_answers(
    s3_config: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is sealed meanwhile, and arrives once."""
    with FaultProxy(seaweed.port) as proxy:
        for name, value in (("ENDPOINT_URL", proxy.endpoint), ("TIMEOUT", "1s"), ("ATTEMPTS", "1")):
            monkeypatch.setenv(f"ARCHIVER_STORE__{name}", value)
        setup = open_setup(load(s3_config), need="write")
        proxy.script(
            Fault("hang", method="PUT"),
            Fault("refuse", method="PUT", times=2),
            Fault("drop", method="PUT", path="/records/"),
        )
        one = writer(setup)
        for number in range(3):
            one.submit(snapshot(f"note {number}", plain=False))
        assert one.drain()
        assert one.flush()
        one.fence()
        assert one.close()
        assert any(request.fault == "drop" for request in proxy.requests)
    assert notes(setup_at(s3_config, seaweed, monkeypatch)) == ["note 0", "note 1", "note 2"]


def setup_at(config: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
    return open_setup(load(config), need="write")
