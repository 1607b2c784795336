"""SIGKILL of the client at each request of a save, and of the server: nothing acknowledged is lost or half.

"reset before" kills the client when the server has not heard of the request, "reset request" when half of a
body has been sent, "drop" when the request is done and the answer has not come.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy, Request
from servers.seaweed import Seaweed

from archiver.errors import StoreError
from e2e.s3 import check_whole, notes, opened, restored, save, uploads

HERE = Path(__file__).parent


class Saver:
    """A process that saves in forks."""

    def __init__(self, config: Path, transcript: Path, endpoint: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / "s3_saving.py", config, transcript],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ARCHIVER_STORE__ENDPOINT_URL": endpoint},
        )

    def __enter__(self) -> Saver:
        assert self._line() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=120)

    def save(self, note: str) -> int:
        """How the fork ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(note + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        return self._process.stdout.readline().strip() or pytest.fail(self._process.stderr.read())


def kill_sender(request: Request) -> None:
    """SIGKILL the process that the request names."""
    found = re.search(r"app/process-(\d+)", request.headers["user-agent"])
    assert found is not None
    with suppress(ProcessLookupError):
        os.kill(int(found[1]), signal.SIGKILL)


def sweep(config: Path, transcript: Path, url: str, server: Seaweed, every: dict[str, int]) -> dict[str, int]:
    """At each moment kill a save at its first request, one at its second (or `every` so many), and so on,
    until one gets through; gives the number of kills.
    """
    setup = opened(config)
    acknowledged: list[str] = []
    kills = dict.fromkeys(every, 0)
    with FaultProxy(server.port) as proxy, Saver(config, transcript, proxy.endpoint) as saver:
        for moment, step in every.items():
            for skip in itertools.count(0, step):
                note = f"{moment} {skip}"
                proxy.script(killing(moment, skip))
                told = saver.save(note)
                assert told in (0, -signal.SIGKILL)
                kills[moment] += told != 0
                acknowledged += [] if told else [note]
                records = check_whole(setup, acknowledged)
                assert not records or restored(setup) == records[-1].note
                if not any(request.fault for request in proxy.requests):
                    assert told == 0
                    break
    save(setup, transcript, "the next save")
    check_whole(setup, [*acknowledged, "the next save"])
    assert not uploads(server.client(), url)
    print(f"client killed: {kills}")
    return kills


def killing(moment: Any, skip: int) -> Fault:
    half = {"method": "PUT", "after": 200} if moment == "reset request" else {}
    return Fault(moment, skip=skip, do=kill_sender, **half)


def test_client_killed_at_some_requests(s3_config: Path, note: Path, s3_url: str, seaweed: Seaweed) -> None:
    kills = sweep(s3_config, note, s3_url, seaweed, {"reset before": 4, "reset request": 1, "drop": 3})
    assert min(kills.values()) >= 2, kills


@pytest.mark.soak
def test_client_killed_at_every_request(s3_config: Path, note: Path, s3_url: str, seaweed: Seaweed) -> None:
    kills = sweep(s3_config, note, s3_url, seaweed, {"reset before": 1, "drop": 1})
    assert min(kills.values()) >= 7, kills


class Savers:
    """Threads that save runs of their own until told to stop, and note which saves returned."""

    def __init__(self, config: Path, transcript: Path, count: int) -> None:
        self.acknowledged: dict[str, list[str]] = {f"run-{me}": [] for me in range(count)}
        self.failures: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(config, transcript, run)) for run in self.acknowledged
        ]

    def __enter__(self) -> Savers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()

    def count(self) -> int:
        """Saves that have returned."""
        return sum(map(len, self.acknowledged.values()))

    def _work(self, config: Path, transcript: Path, run: str) -> None:
        setup = opened(config, attempts=3)
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                save(setup, transcript, f"save {number}", run)
                self.acknowledged[run].append(f"save {number}")
            except StoreError:
                time.sleep(0.05)  # It is down; what this save left is not acknowledged.
            except BaseException as error:
                self.failures.append(error)
                raise


def kill_server(server: Seaweed, config: Path, url: str, note: Path, kills: int) -> None:
    """Kill it `kills` times while three writers save; each time it comes back on the same data."""
    with Savers(config, note, 3) as savers:
        for kill in range(kills):
            enough = savers.count() + 5
            wait_for(lambda enough=enough: savers.count() >= enough or savers.failures)
            time.sleep(0.037 * (kill % 7))
            server.kill()
            server.restart()
            for run, acknowledged in savers.acknowledged.items():
                until_now = list(acknowledged)  # They go on meanwhile.
                found = notes(opened(config), run) if until_now else []
                assert [note for note in found if note in until_now] == until_now
    assert not savers.failures
    print(f"server killed {kills} times, {savers.count()} saves acknowledged")
    for run, acknowledged in savers.acknowledged.items():
        records = check_whole(opened(config), acknowledged, run)
        assert restored(opened(config), run) == records[-1].note
    assert not uploads(server.client(), url)


def wait_for(condition: Callable[[], bool], within: float = 60) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.01)


@pytest.fixture
def killable(
    own_seaweed: Callable[[], Seaweed], make_s3_config: Callable[[Seaweed, str], Path]
) -> tuple[Seaweed, Path, str]:
    """A server of its own, and a store there."""
    server = own_seaweed()
    url = f"s3://{server.make_bucket()}/store"
    return server, make_s3_config(server, url), url


def test_server_killed_in_the_midst_of_saves(killable: tuple[Seaweed, Path, str], note: Path) -> None:
    kill_server(*killable, note, kills=1)


@pytest.mark.soak
def test_server_killed_many_times(killable: tuple[Seaweed, Path, str], note: Path) -> None:
    kill_server(*killable, note, kills=20)
