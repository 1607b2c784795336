"""`archiver list` says until when each run is there, and asks for the notes of those that have any."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import many
import pytest
from inside import command
from test_retention import START, committed

from archiver import noting, retention
from archiver.catalog import Catalog
from archiver.model import utc_text
from archiver.retention import NOTHING, Committed, Standing, class_of
from archiver.setup import Setup
from archiver.tagging.outlook import _outlook
from tagging.test_sweeping import Counting

DAY = timedelta(days=1)


@pytest.fixture
def runs(setup: Setup) -> list[str]:
    many.fill(setup, range(4), 2)
    return [many.name_of(number) for number in range(4)]


def expiring(config: Path) -> dict[str, str]:
    return {row[0]: row[-1] for row in command("list", "--config", config).rows}


def test_each_run_with_its_end(setup: Setup, config: Path, runs: list[str]) -> None:
    heads = {head.run: head.record for head in Catalog(setup).heads() if head.record}
    failed, second, third, _ = runs
    ends = {run: heads[run].recorded_at + (180 if run == failed else 30) * DAY for run in runs}
    assert expiring(config) == {run: end.date().isoformat() for run, end in ends.items()}
    noting.put_note(setup, second, heads[second].task, "hold")
    noting.put_note(setup, third, heads[third].task, "remove", last=2)
    noting.put_note(setup, failed, heads[failed].task, "merged", last=2)
    shown = expiring(config)
    assert (shown[second], shown[third]) == ("held", "removed")
    assert shown[failed] == (ends[failed] - 150 * DAY).date().isoformat()
    found = {one["run"]: one for one in command("list", "--json", "--config", config).json["runs"]}
    assert [(found[run]["retention"], found[run]["held"], found[run]["removed"]) for run in runs[:2]] == [
        ("success", False, False),
        ("hold", True, False),
    ]
    assert found[second]["expires_on"] is found[third]["expires_on"] is None
    assert found[failed]["expires_on"] == utc_text(ends[failed] - 150 * DAY)
    assert "EXPIRES" in command("list", "--config", config, terminal=True, columns=160).out
    noting.put_note(setup, second, heads[second].task, "release")
    assert expiring(config)[second] == ends[second].date().isoformat()
    by_schema = command("list", "--schema", "2", "--config", config)
    assert {row[-1] for row in by_schema.rows} == {"-"}


def test_a_list_costs_one_more_request_and_one_for_each_run_with_notes(
    setup: Setup, config: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counting: list[Counting] = []

    def opened(*given: object, **named: object) -> Setup:
        from dataclasses import replace

        counting.append(Counting(setup.store))
        return replace(setup, store=counting[-1])

    monkeypatch.setattr("archiver.cli.list_runs.open_for", opened)
    assert command("list").code == 0
    assert counting[-1].asked == {"list": 2, "read": 4}
    noting.put_note(setup, runs[1], "task-1", "hold")
    assert command("list").code == 0
    assert counting[-1].asked == {"list": 3, "read": 5}


def test_longer_days_of_the_settings_count(config: Path, runs: list[str]) -> None:
    before = expiring(config)
    text = config.read_text(encoding="utf-8") + '\n[retention]\nsuccess = "40d"\n'
    config.write_text(text, encoding="utf-8")
    after = expiring(config)
    late = [datetime.fromisoformat(after[run]) - datetime.fromisoformat(before[run]) for run in runs]
    assert late == [timedelta(), 10 * DAY, 10 * DAY, 10 * DAY]


def test_what_is_told_of_one_record(setup: Setup) -> None:
    live = committed(3, START, bases=(1, 2)).record
    found = _outlook(live, live, NOTHING, setup)
    assert (found.retention, found.expires_on) == ("live", START + 179 * DAY)  # a base may be a day older
    claim = committed(4, START + 9 * DAY, kind="claim").record
    assert _outlook(committed(3, START).record, claim, NOTHING, setup).expires_on == START + 180 * DAY
    held = _outlook(live, live, Standing(held=datetime.now(UTC)), setup)
    assert (held.held, held.expires_on) == (True, None)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_is_what_is_promised_and_done(setup: Setup, seed: int) -> None:
    """Of any run, by its newest records alone as by all of them: never later, at most a day before."""
    chance = random.Random(seed)
    run: list[Committed] = []
    epoch: list[Committed] = []
    at = START
    for seq in range(1, chance.randrange(2, 12)):
        at += timedelta(hours=chance.choice((1, 5, 30)))
        outcome = chance.choice(("running", "running", "failed", "cancelled", "succeeded", "crashed"))
        epoch = [one for one in epoch if at - epoch[0].at < DAY]
        bases = tuple(
            sorted(one.record.seq for one in chance.sample(epoch, min(len(epoch), chance.randrange(3))))
        )
        claim = seq > 1 and chance.random() < 0.2
        kind = {"kind": "claim"} if claim else {"bases": bases, "retention": class_of(outcome)}
        run.append(committed(seq, at, outcome=outcome, **kind))
        epoch += () if claim else run[-1:]
    with_bundle = [one for one in run if one.record.bundle is not None]
    noted = chance.choice((NOTHING, NOTHING, Standing(merged=at), Standing(held=at)))
    keep = setup.settings.run.ring
    having = retention.classes(run, keep=keep, standing=noted)
    last = with_bundle[-1].record
    told = _outlook(last, run[-1].record, noted, setup)
    assert told.retention == having[last.seq]
    promised = retention.promised(run, having, setup.settings.retention.days)[last.seq]
    if promised is None or told.expires_on is None:
        assert promised is told.expires_on is None
    else:
        assert timedelta() <= promised - told.expires_on <= DAY
