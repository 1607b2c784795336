"""Sweeps into SeaweedFS: everything there and back, nothing twice, killed between requests, hosts at once."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from servers.proxy import FaultProxy
from servers.seaweed import Seaweed

from archiver.config import load
from archiver.errors import UnconfirmedError
from archiver.restore import restore
from archiver.setup import open_setup
from archiver.verify import verify
from e2e.s3 import opened, uploads
from e2e.sweeping import numbers, objects, run_of, session, swept
from e2e.test_real_transcripts import SHARED
from e2e.test_s3_kills import killing
from e2e.test_sweep import check_hosts

HERE = Path(__file__).parent
SESSIONS = "claude_code"
ROLLOUTS = "codex"


def laid_out(home: Path, wanted: Callable[[Path], bool]) -> tuple[Path, Path, int]:
    """The handed files where harnesses keep theirs, and how many runs they are."""
    projects, codex, count = home / "projects", home / "codex", 0
    for path in sorted((SHARED / SESSIONS).rglob("*.jsonl")):
        if "subagents" in path.parts or path.name.startswith("agent-") or not wanted(path):
            continue
        place = projects / f"-p{count}"
        place.mkdir(parents=True)
        shutil.copyfile(path, place / path.name)
        if (agents := path.with_suffix("")).is_dir():
            shutil.copytree(agents, place / agents.name)
        count += 1
    place = codex / "sessions/2026/01/02"
    place.mkdir(parents=True)
    for path in sorted((SHARED / ROLLOUTS).rglob("*.jsonl")):
        if wanted(path):
            shutil.copyfile(path, place / f"rollout-2026-01-02T03-04-05-{path.name}")
            count += 1
    for path in home.rglob("*"):
        os.utime(path, (1_767_323_045, 1_767_323_045))
    return projects, codex, count


def there_and_back(config: Path, server: Seaweed, home: Path, wanted: Callable[[Path], bool]) -> None:
    projects, codex, count = laid_out(home, wanted)
    places = (("claude-code", projects), ("codex", codex))
    with FaultProxy(server.port) as proxy:
        setup = opened(config, endpoint_url=proxy.endpoint)
        first = swept(setup, *places)
        assert first.total.archived == first.total.found == count, first
        before = objects(setup)
        for lost in (False, True):
            if lost:
                shutil.rmtree(home.parent / "home/.local/state/checkpoint-archiver/sweep")
            proxy.script()
            second = swept(setup, *places)
            assert second.total.unchanged == count, second
            assert {one.method for one in proxy.requests} <= {"GET", "HEAD"}
        assert objects(setup) == before
    setup = opened(config)
    for run in numbers(setup):
        back = restore(run, setup, into=home / "back" / run, accept=("age", "git_commit"))
        assert (back.folder / "transcript").is_dir()
        assert back.checkpoint.run_id == run


handed = pytest.mark.skipif(
    not SHARED.is_dir(), reason="no collection of real transcripts: set ARCHIVER_SHARED to its folder"
)


@handed
def test_some_handed_files_there_and_back(s3_config: Path, seaweed: Seaweed, tmp_path: Path) -> None:
    def small(path: Path) -> bool:
        return path.stat().st_size < 9_000 or "chainA" in path.name

    there_and_back(s3_config, seaweed, tmp_path / "handed", small)


@handed
@pytest.mark.soak
def test_all_handed_files_there_and_back(s3_config: Path, seaweed: Seaweed, tmp_path: Path) -> None:
    there_and_back(s3_config, seaweed, tmp_path / "handed", lambda _: True)


# --- deaths ---


def kill_sweeps(config: Path, runs: Path, url: str, server: Seaweed, step: int) -> int:
    """Killed at one request after the other, until one sweep gets through; gives the number of kills."""
    setup, kills, number = opened(config), 0, 0
    with FaultProxy(server.port) as proxy:
        sweeper = subprocess.Popen(
            [sys.executable, HERE / "sweeping.py", "serve", config, runs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "ARCHIVER_STORE__ENDPOINT_URL": proxy.endpoint,
                "PYTHONPATH": str(HERE.parent),
            },
        )
        assert sweeper.stdin is not None
        assert sweeper.stdout is not None
        assert sweeper.stdout.readline() == "ready\n"
        for moment, skip in (
            (moment, skip) for skip in itertools.count(0, step) for moment in ("reset before", "drop")
        ):
            if len(numbers(setup)) == number + 1:
                number += 1
                session(runs, number)
            proxy.script(killing(moment, skip))
            sweeper.stdin.write("\n")
            sweeper.stdin.flush()
            told = int(sweeper.stdout.readline())
            assert told in (0, -signal.SIGKILL)
            kills += told != 0
            found = numbers(setup)
            assert all(one == [1] for one in found.values()), (moment, skip, found)
            if not any(request.fault for request in proxy.requests):
                break
        sweeper.communicate(timeout=60)
    assert len(numbers(setup)) == number + 1
    for run in numbers(setup):
        assert not [one for one in verify(setup, run, deep=True) if not one.ok]
    assert not uploads(server.client(), url)
    return kills


@pytest.mark.soak
def test_killed_between_requests(s3_config: Path, tmp_path: Path, s3_url: str, seaweed: Seaweed) -> None:
    assert kill_sweeps(s3_config, tmp_path / "runs", s3_url, seaweed, step=17) >= 2


@pytest.mark.soak
def test_killed_at_every_request(s3_config: Path, tmp_path: Path, s3_url: str, seaweed: Seaweed) -> None:
    assert kill_sweeps(s3_config, tmp_path / "runs", s3_url, seaweed, step=1) >= 14


@pytest.mark.soak
def test_hosts_at_once(s3_config: Path, tmp_path: Path) -> None:
    check_hosts(s3_config, tmp_path / "runs", hosts=3, count=1)


@pytest.mark.soak
def test_ten_hosts_at_once(s3_config: Path, tmp_path: Path) -> None:
    check_hosts(s3_config, tmp_path / "runs", hosts=10, count=25)


# --- a role that only creates ---


def test_a_role_that_only_creates(
    s3_config: Path, tmp_path: Path, seaweed: Seaweed, aws_environment: Callable[[Seaweed, str], None]
) -> None:
    """It may neither list nor read: what it remembers is all; without that one try, and no second."""
    whole, runs = opened(s3_config), tmp_path / "runs"
    path = session(runs, turns=1)
    aws_environment(seaweed, "creator")
    settings = load(s3_config)
    creator = replace(open_setup(settings, need="write", offline=True), identities=())
    assert swept(creator, ("claude-code", runs)).total.archived == 1
    assert swept(creator, ("claude-code", runs)).total.unchanged == 1
    session(runs, turns=2)
    done = swept(creator, ("claude-code", runs))
    assert (done.total.archived, done.report.exit_code) == (1, 0), done
    assert numbers(whole) == {run_of(path): [1, 2]}
    forgetful = replace(creator, witness=None)
    tries = []
    for _ in range(3):
        lost = swept(forgetful, ("claude-code", runs), state=tmp_path / "new")
        assert [type(error) for _, error in lost.report.errors] == [UnconfirmedError], lost
        tries.append(len(objects(whole)))
    assert tries[0] == tries[1] == tries[2]
    assert numbers(whole) == {run_of(path): [1, 2]}
