"""The gate at the command line: exit codes, what is asked, what is recorded, and how the run then goes on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inside import command

from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.model import Checkpoint, Effect, Items, Transcript, TranscriptPart
from archiver.setup import Setup

RUN = "pays"
NOW = datetime.now(UTC)
BECAUSE = ("--because", "the bank's list has it")


def cli(config: Path, *arguments: object, code: int = 0) -> str:
    done = command(*arguments, "--config", config)
    assert done.code == code, done.out + done.err
    assert not [c for c in done.out + done.err if not c.isprintable() and c not in "\n\t"]
    return done.out + done.err


def effect(key: str, status: str = "uncertain", **more: Any) -> Effect:
    return Effect.model_validate({"key": key, "tool": "pay", "status": status, "at": NOW, **more})


@pytest.fixture
def saved(setup: Setup) -> Setup:
    transcript = Transcript(
        dialect="anthropic-messages",
        parts=(TranscriptPart(name="m.jsonl", items=Items.of([{"role": "user", "content": "pay"}])),),
    )
    checkpoint = Checkpoint(
        run_id=RUN,
        task_id="t",
        created_at=NOW,
        checkpoint_at=NOW,
        effects=(effect("pay=1"), effect("pay=1=done", "in_progress"), effect("mail", replayable=True)),
        transcript=transcript,
    )
    archive(Source(checkpoint=checkpoint), setup)
    return setup


def test_the_way_of_a_run_whose_payment_is_not_known(saved: Setup, config: Path, tmp_path: Path) -> None:
    planned = cli(config, "restore", RUN, "--plan", code=7)
    assert "blocked: nobody knows whether these effects happened: pay=1, pay=1=done" in planned
    assert "undecided\tpay=1=done: --resolve pay=1=done=done or =not-done" in planned
    assert "--resolve KEY=done" in planned
    refused = cli(config, "restore", RUN, "--into", tmp_path / "out", code=7)
    assert "--accept effects" in refused
    assert not (tmp_path / "out").exists()

    half = cli(config, "restore", RUN, "--resolve", "pay=1=done", *BECAUSE, "--plan", code=7)
    assert "happened: pay=1=done" in half
    both = ("--resolve", "pay=1=done", "--resolve", "pay=1=done=not-done")
    assert json.loads(cli(config, "restore", RUN, *both, *BECAUSE, "--plan", "--json"))["exit_code"] == 0

    said = cli(config, "restore", RUN, *both, *BECAUSE, "--claim", "--into", tmp_path / "out")
    assert "decided\tpay=1: done, said " in said
    assert "the bank's list has it" in said
    assert "taken over\twith record 2" in said
    claim = Catalog(saved).read(RUN, 2).record
    assert [(one.effect, one.outcome) for one in claim.decisions] == [
        ("pay=1", "done"),
        ("pay=1=done", "not-done"),
    ]

    assert cli(config, "list").split("\t")[:2] == [RUN, "2"]
    assert "\tclaim\t" in cli(config, "show", RUN)
    assert "record 2" not in cli(config, "verify", "--deep", RUN)
    path = tmp_path / "m.jsonl"
    path.write_text('{"role": "user", "content": "pay"}\n')
    assert cli(config, "archive", path, "--run-id", RUN).split("\t")[:2] == [RUN, "3"]
    again = json.loads(cli(config, "restore", RUN, "--at", 1, "--plan", "--json", code=7))
    assert [one["effect"] for one in again["decisions"]] == ["pay=1"]  # what was not done may be done by now
    assert [one["seq"] for one in again["taken_over"]] == [2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resolve", "pay=1=done"], "needs its reason"),
        (["--resolve", "pay=1=done", "--because", " "], "needs its reason"),
        (["--resolve", "pay=1", *BECAUSE], "is not KEY=done or KEY=not-done"),
        (["--resolve", "=done", *BECAUSE], "no undecided effect"),
        (["--resolve", "done", *BECAUSE], "is not KEY=done or KEY=not-done"),
        (["--resolve", "pay=1=Done", *BECAUSE], "is not KEY=done or KEY=not-done"),
        (["--resolve", "", *BECAUSE], "is not KEY=done or KEY=not-done"),
        (["--resolve", "a=done", "--resolve", "a=not-done", *BECAUSE], "is done and that it is not"),
        (["--resolve", "nobody\x1b[2J=done", *BECAUSE], "to be decided on: pay=1, pay=1=done"),
        (["--resolve", "mail=done", *BECAUSE], "no undecided effect 'mail'"),
        (["--plan", "--claim"], "does not go with --claim"),
        (["--plan", "--force"], "does not go with --force"),
    ],
)
def test_a_call_that_decides_nothing_is_refused(
    saved: Setup, config: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    into = [] if "--plan" in options else ["--into", str(tmp_path / "out")]
    assert said in cli(config, "restore", RUN, *options, *into, code=2)
    assert not (tmp_path / "out").exists()
    assert Catalog(saved).numbers(RUN) == [1]


def test_what_was_handed_over_to_look_at_cannot_be_claimed(
    saved: Setup, config: Path, tmp_path: Path
) -> None:
    looked = cli(config, "restore", RUN, "--accept", "effects", "--into", tmp_path / "out")
    assert "Do not go on yet" in (tmp_path / "out" / "REPORT.md").read_text()
    assert "undecided" in looked
    cli(config, "restore", RUN, "--accept", "effects", "--claim", "--into", tmp_path / "b", code=7)
    assert Catalog(saved).numbers(RUN) == [1]
    assert not (tmp_path / "b").exists()
