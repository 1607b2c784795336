"""Many writers of one run on S3: each number has one winner, whatever the network does; losers are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.catalog import Catalog
from archiver.errors import StaleWriterError
from archiver.verify import verify
from e2e.s3 import check_whole, notes, opened, save, uploads

HERE = Path(__file__).parent
WRITERS = 8


def rounds_of(config: Path, transcript: Path, rounds: int, endpoint: str) -> Iterator[list[dict[str, Any]]]:
    """Run the race in processes; gives the outcomes of each round, and then starts the next."""
    with subprocess.Popen(
        [sys.executable, HERE / "s3_racing.py", config, transcript, str(rounds), str(WRITERS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ARCHIVER_STORE__ENDPOINT_URL": endpoint},
    ) as racing:
        assert racing.stdin is not None
        assert racing.stdout is not None
        assert racing.stderr is not None
        for line in racing.stdout:
            yield json.loads(line)
            racing.stdin.write("next\n")
            racing.stdin.flush()
        assert racing.wait(60) == 0, racing.stderr.read()


def race(config: Path, transcript: Path, rounds: int, proxy: FaultProxy) -> None:
    """In the last round each writer's first answer is lost: the winner must know its own record again."""
    setup = opened(config)
    winners: list[str] = []
    for number, outcomes in enumerate(rounds_of(config, transcript, rounds, proxy.endpoint), start=1):
        won = [outcome for outcome in outcomes if "seq" in outcome]
        lost = [outcome for outcome in outcomes if "seq" not in outcome]
        assert len(won) == 1, outcomes
        assert won[0]["seq"] == number
        assert {outcome["error"] for outcome in lost} == {StaleWriterError.__name__}, outcomes
        winners.append(won[0]["note"])
        head = Catalog(setup).chain("r").head.record
        assert head.bundle is not None
        assert (head.note, head.bundle.name) == (won[0]["note"], won[0]["bundle"])
        assert not [finding for finding in verify(setup, "r") if not finding.ok]
        if number == rounds - 1:
            proxy.script(Fault("drop", method="PUT", path="/records/r/", times=WRITERS))
    dropped = [request.status for request in proxy.requests if request.fault]
    assert sorted(map(str, dropped)) == ["200"] + ["412"] * (WRITERS - 1)
    assert len(winners) == rounds
    assert notes(setup) == winners
    check_whole(setup, winners)


@pytest.mark.parametrize("rounds", [6, pytest.param(50, marks=pytest.mark.soak)])
def test_eight_writers_race_for_a_number(rounds: int, s3_config: Path, note: Path, seaweed: Seaweed) -> None:
    with FaultProxy(seaweed.port) as proxy:
        race(s3_config, note, rounds, proxy)


def test_threads_of_one_writer(s3_config: Path, note: Path, seaweed: Seaweed, s3_url: str) -> None:
    """Saves of different runs do not disturb each other; of one run, all but one of a number are told."""
    setup = opened(s3_config)
    told: list[str] = []

    def work(me: int) -> None:
        for number in range(3):
            save(setup, note, f"{me}-{number}", run=f"own-{me}")
        try:
            save(setup, note, str(me), run="shared")
            told.append(str(me))
        except StaleWriterError:
            pass

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for me in range(4):
        assert notes(setup, f"own-{me}") == [f"{me}-{number}" for number in range(3)]
    assert told
    assert sorted(map(str, notes(setup, "shared"))) == sorted(told)
    assert not uploads(seaweed.client(), s3_url)


FORKED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from e2e.s3 import notes, opened, save
setup = opened(Path(sys.argv[1]))
note = Path(sys.argv[2])
save(setup, note, "parent")
children = []
for me in range(2):
    if child := os.fork():
        children.append(child)
        continue
    code = 70
    try:
        assert notes(setup) == ["parent"]
        for number in range(3):
            save(setup, note, f"child {number}", run=f"child-{me}")
        code = 0
    finally:
        os._exit(code)
for number in range(3):
    save(setup, note, f"meanwhile {number}", run="own")
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 2
for me in range(2):
    assert notes(setup, f"child-{me}") == [f"child {number}" for number in range(3)]
save(setup, note, "parent again")
print(notes(setup))
"""


def test_forked_after_the_client_was_used(s3_config: Path, note: Path) -> None:
    """Parent and children go on with the same opened store and never read each other's answers."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED, s3_config, note, HERE.parent],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['parent', 'parent again']\n"
