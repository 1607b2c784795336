"""The store is away for a whole run: the agent ends well and in time, nothing is lost, and all arrives."""

from __future__ import annotations

import logging
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

import archiver
from archiver.catalog import Catalog
from archiver.cli import program
from archiver.config import load
from archiver.errors import StoreUnreachableError
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.spool import open_spool
from archiver.verify import verify
from e2e.away_agent import ALWAYS, RUN, TURNS, work

AGENT = Path(__file__).parent / "away_agent.py"
PATIENCE = 5
IN_TIME = 90
"""Seconds: far more than waiting once takes, and less than waiting for each effect and each checkpoint."""
QUICK, MORE = ("cut", "expired", "hanging"), ("503", "full", "slow")
FAULTS = {
    "cut": Fault("reset before", times=None),
    "503": Fault("refuse", times=None),
    "full": Fault("refuse", times=None, status=507, code="InsufficientStorage"),
    "expired": Fault("refuse", times=None, status=400, code="ExpiredToken"),
    "hanging": Fault("hang", times=None),
    "slow": Fault("pass", times=None, slow=150),
}


class Line:
    """The way to the store, which can be cut; `config` leads through it."""

    def __init__(self, config: Path, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config, self.proxy = config, proxy
        for name, value in {
            "STORE__ENDPOINT_URL": proxy.endpoint,
            "STORE__ATTEMPTS": "2",
            "RUN__PATIENCE": f"{PATIENCE}s",
        }.items():
            monkeypatch.setenv(f"ARCHIVER_{name}", value)

    def setup(self) -> Setup:
        return open_setup(load(self.config), need="write")

    def cut(self, how: str) -> None:
        self.proxy.script(FAULTS[how])

    def back(self) -> None:
        self.proxy.script()

    @contextmanager
    def agent(self, offline: str = "refuse", *dies_after: str) -> Iterator[subprocess.Popen[str]]:
        words = [sys.executable, str(AGENT), str(self.config), offline, *dies_after]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as agent:
            try:
                yield agent
            finally:
                agent.kill()


@pytest.fixture
def line(s3_config: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    with FaultProxy(seaweed.port) as proxy:
        yield Line(s3_config, proxy, monkeypatch)


def opened(agent: subprocess.Popen[str]) -> None:
    assert agent.stdout is not None
    assert agent.stdout.readline() == "open\n", agent.communicate()[1]


def ended(agent: subprocess.Popen[str], code: int = 0) -> str:
    """What it logged, once it may go on and has ended."""
    _, said = agent.communicate("go on\n", timeout=IN_TIME)
    assert agent.returncode == code, said
    return said


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    """What a run leaves that nothing happens to; filled by the first that asks."""
    return {}


def state(setup: Setup, folder: Path, run: str = RUN) -> dict[str, Any]:
    """What a restore gives, without what each run and each process has of its own."""
    found = restore(run, setup, into=folder / secrets.token_hex(4)).state
    document = found.document()
    for name in ("run_id", "task_id", "created_at", "checkpoint_at", "environment", "transcript", "user_id"):
        document.pop(name, None)
    document["spend"].pop("seconds")
    for one in (*document["results"], *document["effects"]):
        one.pop("at", None)
        one.pop("completed_at", None)
    document["messages"] = [item for part in found.transcript.parts for item in part.items]
    return document


@pytest.fixture
def expected(setup: Setup, undisturbed: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    if not undisturbed:
        with archiver.run("undisturbed", setup=setup, policy=ALWAYS) as run:
            work(run)
        undisturbed |= state(setup, tmp_path, "undisturbed")
        assert len(undisturbed["effects"]) == len(undisturbed["results"]) == TURNS
    return undisturbed


def check(setup: Setup, expected: dict[str, Any], folder: Path) -> None:
    """All of it is there, whole, and as if nothing had happened."""
    assert not [one for one in verify(setup, RUN, deep=True) if not one.ok]
    assert state(setup, folder) == expected
    depth = open_spool(setup).depth()
    assert (depth.entries, depth.forks) == (0, 0)


@pytest.mark.parametrize("how", [*QUICK, *(pytest.param(how, marks=pytest.mark.soak) for how in MORE)])
def test_an_agent_ends_without_the_store(
    line: Line, how: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    with line.agent() as agent:
        opened(agent)
        line.cut(how)
        said = ended(agent)
    assert "Traceback" not in said
    assert "has not answered within" not in said, "an effect has waited for it again"
    assert " is lost" not in said
    line.back()
    setup = line.setup()
    assert open_spool(setup).depth().entries, "the store was not away"
    assert program.run("archiver", ["sync", "--config", str(line.config)]) == 0
    check(setup, expected, tmp_path)


def test_an_agent_starts_without_the_store_and_the_next_run_delivers(
    line: Line, expected: dict[str, Any], tmp_path: Path
) -> None:
    line.cut("hanging")
    with pytest.raises(StoreUnreachableError, match=f"not known: .* within {PATIENCE} seconds"):
        archiver.run(RUN, config=line.config).open()
    with line.agent("start") as agent:
        opened(agent)
        ended(agent)
    line.back()
    with archiver.run(RUN, config=line.config) as run:
        assert run.finished
    check(line.setup(), expected, tmp_path)


@pytest.mark.parametrize("again", [pytest.param("away", marks=pytest.mark.soak), "back"])
def test_an_agent_is_killed_without_the_store(
    line: Line, again: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    """It is resumed with a claim, dies, and goes on from the spool, or from the store."""
    with archiver.run(RUN, config=line.config, policy=ALWAYS) as run:
        work(run, upto=1)
    with line.agent("refuse", "3") as agent:
        opened(agent)
        line.cut("cut")
        ended(agent, -signal.SIGKILL)
    if again == "back":
        line.back()
    with archiver.run(RUN, config=line.config, policy=ALWAYS) as run:
        work(run)
    line.back()
    assert program.run("archiver", ["sync", "--config", str(line.config)]) == 0
    check(line.setup(), expected, tmp_path)
    kinds = [link.record.kind for link in Catalog(line.setup()).chain(RUN).links]
    assert kinds.count("claim") == (1 if again == "away" else 2)


# --- a full disk --------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, with room for a store."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    if subprocess.run(["umount", place], capture_output=True).returncode:
        subprocess.run(["umount", "-l", place], check=True)
        pytest.fail("something on the disk is still open")


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(4096)):
            pass


@pytest.fixture
def on_disk(config: Path, tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in a folder of that disk."""
    monkeypatch.setenv("ARCHIVER_RUN__PATIENCE", "2s")
    shutil.move(tmp_path / "store", disk / "store")
    (tmp_path / "store").symlink_to(disk / "store")
    return disk


def test_the_disk_of_the_store_is_full(
    config: Path, on_disk: Path, reopen: Callable[[], Setup], expected: dict[str, Any], tmp_path: Path
) -> None:
    with archiver.run(RUN, config=config, policy=ALWAYS) as run:
        fill(on_disk)
        work(run)
    assert open_spool(reopen()).depth().entries
    (on_disk / "filler").unlink()
    assert program.run("archiver", ["sync", "--config", str(config)]) == 0
    check(reopen(), expected, tmp_path)


def test_the_disk_of_the_spool_is_full(
    config: Path,
    disk: Path,
    reopen: Callable[[], Setup],
    expected: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARCHIVER_RUN__SPOOL", str(disk / "spool"))
    fill(disk)
    with archiver.run(RUN, config=config, policy=ALWAYS) as run:
        work(run)
    check(reopen(), expected, tmp_path)


def test_with_both_full_what_is_lost_is_said(
    config: Path, on_disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ARCHIVER_RUN__SPOOL", str(on_disk / "spool"))
    tickets = []
    with archiver.run(RUN, config=config, policy=ALWAYS) as run:
        tickets.append(run.checkpoint([{"role": "user", "content": "first"}]))
        fill(on_disk)
        tickets += [run.checkpoint(milestone=f"mile {number}") for number in range(3)]
        tickets.append(run.finish("succeeded"))
    assert [ticket.status for ticket in tickets] == ["stored", *["failed"] * 4]
    assert all(isinstance(ticket.error, archiver.ArchiverError) for ticket in tickets[1:])
    lost = [one for one in caplog.records if one.levelno == logging.ERROR and " is lost" in one.message]
    assert len(lost) == 4
