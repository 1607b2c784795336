"""Death at every step of a save, and many writers at once: what was committed stays, nothing is half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.setup import Setup
from archiver.verify import verify

HERE = Path(__file__).parent


def kill(config: Path, transcript: Path, every: int) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(config), str(transcript), str(every)],
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "TMPDIR": str(config.parent)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_killed(setup: Setup, lines: list[dict[str, int]], least: int) -> None:
    assert len(lines) >= least, "a save has many steps; the hook must have seen them"
    assert lines[0]["committed"] == 0, "the first kill comes before anything is committed"
    assert lines[-1]["committed"] >= 1
    assert lines[-1]["left"] == 0, "the scratch files of the dead must be gone"
    assert not [finding for finding in verify(setup, "r", deep=True) if not finding.ok]


def test_killed_at_steps_of_a_save(config: Path, setup: Setup, note: Path) -> None:
    check_killed(setup, kill(config, note, every=5), least=12)


@pytest.mark.soak
def test_killed_at_every_step_of_a_save(config: Path, setup: Setup, note: Path) -> None:
    check_killed(setup, kill(config, note, every=1), least=60)


RACE = """
import sys, time
from pathlib import Path
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.errors import StaleWriterError
from archiver.setup import open_setup
setup = open_setup(load(Path(sys.argv[1])), need="write")
source = Source(paths=(Path(sys.argv[2]),))
archive(source, setup, options=Options(given=Given(run_id="warm-" + sys.argv[3])))
print("ready", flush=True)
sys.stdin.readline()
try:
    done = archive(source, setup, options=Options(given=Given(run_id="r", note=sys.argv[3])))
    print("won", done.record.seq)
except StaleWriterError as error:
    print("lost", error.exit_code)
"""


def test_writers_race_for_a_number(config: Path, setup: Setup, note: Path) -> None:
    """Each number has one winner; losers are told, and can go on after the winner."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(config), str(note), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    outcomes = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for number, writer in enumerate(writers):
        out, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        outcomes.append((number, *out.split()))
    won = {int(what): str(number) for number, outcome, what in outcomes if outcome == "won"}
    assert won
    assert all(what == "3" for _, outcome, what in outcomes if outcome == "lost")
    chain = Catalog(setup).chain("r")
    assert {link.record.seq: link.record.note for link in chain.links} == won
    assert len(won) == sum(outcome == "won" for _, outcome, _ in outcomes), "a number was won twice"
    assert not [finding for finding in verify(setup, "r", deep=True) if not finding.ok]


def test_the_loser_of_a_number_is_told(reopen: Callable[[], Setup], note: Path) -> None:
    """Two writers read the same head; the second to commit gets `StaleWriterError`, nothing is lost."""
    from archiver.errors import StaleWriterError

    setup = reopen()
    source = Source(paths=(note,))

    class Interleave:
        """Lets another writer commit between the first one's reading of the head and its record."""

        def stage(self, name: str, total: int | None = None) -> None:
            if name == "store":
                archive(source, reopen(), options=Options(given=Given(run_id="r", note="first")))

        def advance(self, count: int) -> None:
            """Only stages matter."""

    with pytest.raises(StaleWriterError, match="checkpoint 1 of run r"):
        archive(source, setup, options=Options(given=Given(run_id="r", note="second")), progress=Interleave())
    assert [link.record.note for link in Catalog(setup).chain("r").links] == ["first"]
    again = archive(source, setup, options=Options(given=Given(run_id="r", note="second")))
    assert again.record.seq == 2
