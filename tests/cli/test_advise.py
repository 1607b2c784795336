"""`archiver advise`: given numbers, worked examples, a stored run."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver.archive import Source, archive
from archiver.config import load
from archiver.model import Checkpoint, Spend
from archiver.setup import open_setup

from .conftest import Command, Outcome


def facts(done: Outcome) -> dict[str, str]:
    assert done.code == 0, done.err
    return {row[0]: row[1] for row in done.rows if len(row) == 2}


def test_given_numbers_are_weighed(command: Command, home: Path) -> None:
    done = command(
        "advise", "--probability", "10%", "--replay", 8, "--create", 0.12, "--restore", 0.5, "--per-hour", 4
    )
    said = facts(done)
    assert said["expected loss"] == "$0.80 = p × replay = 10 % × $8"
    assert said["create + store"] == "$0.12"
    assert said["p × restore"] == "$0.05 = 10 % × $0.50"
    assert said["verdict"] == "10 % × $8 = $0.80 against $0.12 + $0.05 (10 % × $0.50): pays"
    assert said["pays"] == "from 1.6 % on"
    assert "assumed" not in said


def test_hours_of_work_are_weighed_with_measured_costs(command: Command, home: Path) -> None:
    long = facts(command("advise", "--hours", 4, "--per-hour", 9.25))
    assert long["at stake"] == "$37: 4 h at $9.25 an hour"
    assert long["expected loss"] == "$1.85 = p × replay = 5 % × $37"
    assert long["verdict"].endswith(": pays")
    short = facts(command("advise", "--hours", "2m", "--per-hour", 9.25))
    assert short["verdict"].endswith(": does not pay")
    larger = facts(command("advise", "--hours", 4, "--per-hour", 9.25, "--size", "100MB"))
    assert larger["create + store"] > long["create + store"]


def test_the_examples_state_the_formula_and_each_number(command: Command, home: Path) -> None:
    done = command("advise", "--examples")
    assert done.code == 0
    assert "p × replay > create + store + p × restore" in done.out.splitlines()[0]
    first, migration, lint = done.out.split("\n\n")[1:]
    assert "10 % × $8 = $0.80 against $0.12 + $0.05 (10 % × $0.50): pays\n" in first
    assert "$37: 4 h at $9.25 an hour" in migration
    assert "5 % × $37 = $1.85 against $0.12 + $0.025 (5 % × $0.50): pays\n" in migration
    assert "every 85 min of work" in migration
    assert "$0.308: 2 min at $9.25 an hour" in lint
    assert "does not pay" in lint
    documents = command("advise", "--examples", "--json").json["examples"]
    assert [one["pays"] for one in documents] == [True, True, False]


def test_json_has_every_number(command: Command, home: Path) -> None:
    done = command(
        "advise", "-p", "0.1", "--hours", 2, "--replay", 8, "--create", 1, "--restore", 2, "--json"
    )
    document = done.json
    assert document.pop("interruptions_per_hour") == pytest.approx(0.0527, abs=1e-4)
    # $1 is a quarter of an hour at $4 an hour; an interruption every 19 h: sqrt(2 × 0.25 × 19) = 3.1 h
    assert document.pop("interval_seconds") / 3600 == pytest.approx(3.08, abs=0.01)
    assert document == {
        "probability": 0.1,
        "at_stake_usd": 8,
        "expected_loss_usd": 0.8,
        "create_and_store_usd": 1,
        "restore_usd": 2,
        "cost_usd": 1.2,
        "pays": False,
        "break_even_probability": pytest.approx(1 / 6),
        "hours": 2,
        "per_hour_usd": 4,
        "assumed": [],
        "run": None,
    }
    never = command("advise", "--hours", 1, "--interruptions", 0, "--json").json
    assert (never["interval_seconds"], never["probability"]) == (None, 0)
    assert facts(command("advise", "--hours", 1, "--interruptions", 0))["how often"] == "never"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing says what an interruption would take away"),
        (("--hours", "soon"), "--hours 'soon' is no length of time"),
        (("--hours", "1", "--probability", "often"), "--probability 'often' is no share"),
        (("--hours", "1", "--probability", "100%"), "--probability cannot be 100 %"),
        (("--hours", "1", "--size", "huge"), "'huge' is not a size"),
        (("--hours", "1", "--per-hour", "$8"), "'$8' is no number; write 8 or 0.5"),
        (("--hours", "1", "--create", "-1"), "--create cannot be -1"),
        (("--replay", "1", "--hours", "1", "--per-hour", "1"), "say the same twice"),
        (("--examples", "--hours", "1"), "--examples has numbers of its own"),
        (("--examples", "run"), "--examples has numbers of its own"),
        (("run", "--hours", "1"), "do not go with a run"),
        (("run", "--replay", "1"), "do not go with a run"),
        (("run", "--size", "1MB"), "do not go with a run"),
    ],
)
def test_what_cannot_be_weighed_is_a_usage_error(
    command: Command, home: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = command("advise", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "next: " in done.err


@pytest.fixture
def saved(command: Command, home: Path) -> Any:
    """Save a checkpoint of a run that began at a time."""
    assert command("init").code == 0
    setup = open_setup(load(), need="write")

    def save(began: datetime, at: datetime, **other: Any) -> None:
        checkpoint = Checkpoint(run_id="r", task_id="t", created_at=began, checkpoint_at=at, **other)
        archive(Source(checkpoint=checkpoint), setup)

    return save


def test_a_stored_run_says_what_is_at_stake(command: Command, saved: Any) -> None:
    now = datetime.now(UTC)
    began = now - timedelta(hours=4)
    spend = Spend(seconds=3600, cost=5)
    saved(began, now - timedelta(hours=3), spend=spend)
    saved(began, now - timedelta(hours=2), spend=spend.model_copy(update={"seconds": 7200, "cost": 20}))
    said = facts(command("advise", "r"))
    assert said["saved"] == "2 checkpoints in 2 h of work, $10 an hour"
    assert said["between two"] == "60 min of work on average, 60 min at most"
    assert said["since the newest"] == "2 h, if it works on"
    assert re.fullmatch(r"\$20(\.\d\d)?: 2 h at \$10 an hour", said["at stake"])
    document = command("advise", "r", "--per-hour", 50, "--json").json
    assert document["at_stake_usd"] == pytest.approx(100, abs=1)
    of_a_megabyte = command("advise", "--hours", 1, "--per-hour", 50, "--json").json
    assert document["create_and_store_usd"] < of_a_megabyte["create_and_store_usd"]
    assert document["run"]["checkpoints"] == 2
    assert document["run"]["since_newest_seconds"] == pytest.approx(7200, abs=60)
    saved(
        began,
        now - timedelta(hours=1),
        outcome="succeeded",
        spend=spend.model_copy(update={"seconds": 14_400, "cost": 40}),
    )
    ended = facts(command("advise", "r"))
    assert ended["since the newest"] == "the run has ended"
    assert ended["at stake"] == "$20: 2 h at $10 an hour"
    assert command("advise", "other").code == 9


def test_a_run_that_died_early_has_no_price_and_no_work_since(command: Command, saved: Any) -> None:
    now = datetime.now(UTC)
    began = now - timedelta(minutes=30)
    saved(began, began + timedelta(seconds=9), spend=Spend(seconds=0.5, cost=2))
    said = facts(command("advise", "r"))
    assert said["saved"].endswith("work; what an hour costs cannot be told from it: --per-hour says it")
    assert said["since the newest"].startswith("30 min without a word")
    assert said["at stake"].endswith(": 0.5 s at $9.25 an hour")
    document = command("advise", "r", "--per-hour", "36", "--json").json
    assert (document["at_stake_usd"], document["run"]["since_newest_seconds"]) == (0.005, None)
    assert document["run"]["silent_seconds"] == pytest.approx(1800, abs=60)
