"""The harness itself: an agent that is right passes, each planted bug is found, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.errors import InputNotFoundError, UsageError
from archiver.testing import Report, kill_at_random
from archiver.testing.__main__ import main

HERE = Path(__file__).parent
Kill = Callable[..., Report]


def test_an_agent_that_is_right_passes(killed: Kill, capsys: pytest.CaptureFixture[str]) -> None:
    report = killed("right", times=4, seed=5)
    report.check()
    assert report.kills == 4
    assert {kind for kind, deaths in report.coverage.items() if deaths} >= {"act", "upload", "fsync"}
    told = capsys.readouterr().out.splitlines()
    assert "seed 5" in told[0]
    assert [f"{number}. {one}" for number, one in enumerate(report.rounds, 1)] == told[
        1 : 1 + len(report.rounds)
    ]


@pytest.mark.parametrize(
    ("agent", "point", "problem"),
    [
        ("twice", "act:6", 'the action mail with {"to":"ops"} was done 2 times, uninterrupted 1'),
        ("loses", "act:3", "the action two with null was lost: done 0 times, uninterrupted 1"),
        ("differs", "upload:8", 'the outcome is "resumed", uninterrupted it is "at once"'),
        ("forgets", "upload:8", "run r is running in the store, uninterrupted it is succeeded"),
        ("breaks", "act:1", "resumed, it ended with RuntimeError: the folder is in the way"),
    ],
)
def test_a_planted_bug_is_found(killed: Kill, agent: str, point: str, problem: str) -> None:
    report = killed(agent, point)
    (only,) = report.problems
    assert only.startswith(f"[{point}] {problem}")
    with pytest.raises(AssertionError, match="the same deaths again"):
        report.check()


def test_what_is_wrong_in_store_and_spool_is_found(killed: Kill) -> None:
    *damaged, waiting = killed("spoils", "upload:8").rounds[0].problems
    assert damaged
    assert all(problem.startswith("in the store: bundles/r/0000000") for problem in damaged)
    assert waiting == "in the store: 1 records or effects still wait in the spool"


def test_random_kills_find_an_effect_that_is_done_twice(killed: Kill) -> None:
    """Nobody says where: the seed does, and says it again."""
    report = killed("twice", times=8, seed=4)
    bad = [one for one in report.document()["rounds"] if one["problems"]]
    assert "was done 2 times" in bad[0]["problems"][0]
    assert killed("twice", bad[0]["points"]).rounds[0].problems


def test_a_person_is_asked_where_nobody_knows(killed: Kill) -> None:
    """Killed between intent and outcome, after the action and before it, also when it was resumed."""
    report = killed("right", "act:6", "act:5+upload:1+act:2")
    assert report.ok, report
    after, before = report.rounds
    assert after.lives == 3, "killed, asked, decided"
    assert [death.what for death in after.deaths] == ["after the action mail"]
    assert [death.what for death in before.deaths][::2] == ["before the action mail", "after the action mail"]


def test_the_same_point_gives_the_same_death(killed: Kill) -> None:
    point = "upload:9+fsync:3"
    one, other = killed("right", point, point).rounds
    assert len(one.deaths) == len(other.deaths) == 2
    assert one.again == other.again == 1, "the step in hand"

    def told(what: str) -> str:
        return "".join(part for part in what.split("-")[0] if not part.isdigit())

    assert [told(death.what) for death in one.deaths] == [told(death.what) for death in other.deaths]
    assert "bundles/r/00000002" in one.deaths[0].what


def test_a_point_that_is_not_reached_is_no_success(killed: Kill) -> None:
    report = killed("right", "act:99")
    assert report.kills == 0
    assert [str(point) for point in report.rounds[0].not_reached] == ["act:99"]
    assert report.problems == ("only 0 of 1 kills took place: the other points were not reached",)


def test_an_agent_that_ends_differently_each_time_is_named(killed: Kill) -> None:
    report = killed("unsteady", "act:1")
    assert "ends differently each time, even if nobody kills it" in report.problems[0]


def test_with_the_disk_nothing_is_left_but_the_store(killed: Kill) -> None:
    report = killed("keeps_a_file", "act:1", lose_disk=True)
    assert report.rounds[0].problems == ()
    assert killed("keeps_a_file", "act:1").problems


def test_what_is_left_of_bad_rounds_is_kept_on_request(killed: Kill, tmp_path: Path) -> None:
    killed("breaks", "act:2", "act:99", keep=tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["act:2"]
    assert '"key":"a"' in (tmp_path / "kept" / "act:2" / "world" / "journal.jsonl").read_text()


def test_what_an_agent_started_ends_with_it(killed: Kill) -> None:
    report = killed("leaves", "act:2")
    pid = int(report.rounds[0].deaths[0].what.split()[-1])
    assert gone(pid)


def gone(pid: int) -> bool:
    """Whether the process has ended; it may wait for somebody to ask how."""
    left = Path(f"/proc/{pid}/stat")
    return not left.exists() or " Z " in left.read_text()


def test_an_agent_that_takes_nothing_and_is_awaited(killed: Kill) -> None:
    report = killed("awaited", "time:0.0", same=lambda one, other: one.keys() == other.keys())
    assert report.ok, report


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("fails", "ended with ValueError: no good\n    | Traceback"),
        ("hangs", "did not end within 3 s\n"),
        ("two", "takes a Place or nothing"),
        ("nothing_there", "cannot be loaded"),
    ],
)
def test_an_agent_that_does_not_end_well_by_itself_is_refused(killed: Kill, agent: str, said: str) -> None:
    with pytest.raises(UsageError, match="does not end well when nobody kills it") as caught:
        killed(agent, "act:1", timeout=3 if agent == "hangs" else 60)
    assert said in str(caught.value)
    if agent == "hangs":
        assert "agents.py" in str(caught.value), "it says where it hangs"


def test_what_no_other_process_can_import_is_refused() -> None:
    for agent in (lambda: None, "nothing", ":f", print):
        with pytest.raises(UsageError):
            kill_at_random(agent)
    with pytest.raises(UsageError, match="0 kills show nothing"):
        kill_at_random("agents:breaks", times=0)
    with pytest.raises(InputNotFoundError, match="there is no file"):
        kill_at_random("missing.py:agent")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{HERE / 'agents.py'}:breaks", "--points", "act:2", "--seed", "9", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["seed"], said["rounds"][0]["points"], len(said["problems"])) == (9, "act:2", 1)
    assert main([f"{HERE / 'agents.py'}:right", "--points", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("error: 'nonsense' is no point of death\nnext: ")


def test_ctrl_c_ends_everything_that_was_started(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    running = subprocess.Popen(
        [sys.executable, "-m", "archiver.testing", f"{HERE / 'agents.py'}:hangs"],
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while not (said := [path.read_text() for path in folder.glob("*/*/world/journal.jsonl")]) or not said[0]:
        assert time.monotonic() < end
        assert running.poll() is None
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(60) == 130
    assert gone(int(json.loads(said[0])["key"]))
