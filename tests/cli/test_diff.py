"""What changed between two checkpoints, as people and scripts are told."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from archiver.archive import Source, archive
from archiver.config import load
from archiver.model import (
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    Items,
    Plan,
    Spend,
    Step,
    Transcript,
    TranscriptPart,
)
from archiver.setup import open_setup

from .conftest import Command, Outcome
from .test_commands import HOSTILE, check_harmless

RUN = "r"
SCHEMA = Path(__file__).parents[2] / "schemas" / "v2" / "diff.schema.json"


def checkpoint(*said: str, **fields: Any) -> Checkpoint:
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(said)
    ]
    part = TranscriptPart(name="messages.jsonl", items=Items.of(messages))
    now = datetime.now(UTC)
    return Checkpoint(
        run_id=RUN,
        task_id="t",
        created_at=fields.pop("created_at", now),
        checkpoint_at=now,
        transcript=Transcript(dialect="anthropic-messages", parts=(part,)),
        **fields,
    )


@pytest.fixture
def saved(command: Command, home: Path) -> Path:
    """A run of three checkpoints."""
    assert command("init", home / "store").code == 0
    begun = datetime.now(UTC)
    save(
        checkpoint(
            "go on",
            "Done.",
            created_at=begun,
            phase="begin",
            plan=Plan(remaining=(Step(id="1", title="Write it"), Step(id="2", title="Test it"))),
            effects=(Effect(key="mail-1", tool="mail", status="proposed", replayable=True),),
            spend=Spend(tokens_in=100, cost=0.5),
            environment=Environment(model="model-a"),
        )
    )
    save(checkpoint("something else", created_at=begun, phase="lost"))
    save(
        checkpoint(
            "go on",
            "Done.",
            "more",
            "Done too.",
            created_at=begun,
            phase="end",
            note=HOSTILE,
            plan=Plan(
                completed=(Step(id="1", title="Write it"),), remaining=(Step(id="2", title="Test it"),)
            ),
            effects=(Effect(key="mail-1", tool="mail", status="confirmed", result=HOSTILE),),
            evidence=(Evidence(command="make test", exit_status=0, summary="2 passed"),),
            spend=Spend(tokens_in=250, cost=0.75),
            environment=Environment(model="model-b"),
        )
    )
    return home


def save(made: Checkpoint) -> None:
    archive(Source(checkpoint=made), open_setup(load(), need="write"))


def rows(outcome: Outcome) -> list[list[str]]:
    assert outcome.code == 0, outcome.err
    return [row for row in outcome.rows if row[0] not in ("bytes", "environment")]


def test_lines_for_a_script(command: Command, saved: Path) -> None:
    found = rows(command("diff", RUN, 1, 3))
    assert ["state", "~", "phase", "begin", "end"] in found
    assert ["plan", "~", "Write it", "-", "completed"] in found
    assert ["effect", "~", "mail mail-1 (result, replayable)", "proposed", "confirmed"] in found
    assert ["evidence", "+", "make test", "-", "exit 0; 2 passed"] in found
    assert ["spend", "~", "tokens_in", "-", "+150"] in found
    assert ["spend", "~", "cost", "-", "+0.2500 USD"] in found
    assert ["transcript", "~", "messages.jsonl", "2", "4: 2 more messages (1 assistant, 1 user)"] in found
    everything = command("diff", RUN, 1, 3).rows
    assert ["environment", "~", "model", "model-a", "model-b"] in everything
    assert {len(row) for row in everything} == {5}


def test_which_two_are_compared(command: Command, saved: Path) -> None:
    for words, expected in (((), (2, 3)), ((1,), (1, 3)), ((3, 1), (3, 1)), ((2, 2), (2, 2))):
        found = command("diff", RUN, *words, "--json").json
        assert (found["before"]["seq"], found["after"]["seq"]) == expected
        jsonschema.validate(
            {key: value for key, value in found.items() if key != "changed"}, json.loads(SCHEMA.read_text())
        )
        assert found["changed"] == (expected[0] != expected[1])
    parted = command("diff", RUN, 1, 2).rows
    assert [
        "transcript",
        "~",
        "messages.jsonl",
        "2",
        "1: parts after 0, then 1 more message (1 user)",
    ] in parted


def test_exit_codes(command: Command, saved: Path) -> None:
    assert command("diff", RUN, "--exit-code").code == 1
    assert command("diff", RUN, 2, 2, "--exit-code").code == 0
    missing = command("diff", RUN, 1, 9)
    assert missing.code == 9
    assert "has no checkpoint 9" in missing.err
    assert "1, 2, 3" in missing.err
    assert command("diff", "nobody").code == 9
    assert command("diff", RUN, 0).code == 2
    assert command("diff", RUN, "x").code == 2


def test_one_checkpoint_is_not_two(command: Command, home: Path) -> None:
    assert command("init", home / "store").code == 0
    save(checkpoint("go on"))
    outcome = command("diff", RUN)
    assert outcome.code == 2
    assert "has 1 of the 2 checkpoints that are needed" in outcome.err
    assert command("diff", RUN, 1).out == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_steers_the_terminal(command: Command, saved: Path, terminal: bool) -> None:
    for words in (["diff", RUN, 1, 3], ["diff", RUN, 1, 3, "--json"], ["diff", HOSTILE]):
        check_harmless(command(*words, terminal=terminal))
    if terminal:
        shown = command("diff", RUN, 1, 3, terminal=True).out
        assert "checkpoint 1 of " in shown
        assert "Write it" in shown
        same = command("diff", RUN, 2, 2, terminal=True).out
        assert "Nothing of the state changed." in same


def test_a_credential_is_never_shown(command: Command, saved: Path) -> None:
    token = "ghp_" + secrets.token_hex(18)
    save(checkpoint("go on", f"it is {token}", note=f"with {token}"))
    for words in ((), ("--json",)):
        outcome = command("diff", RUN, *words)
        assert outcome.code == 0
        assert token not in outcome.out + outcome.err
        assert "[REDACTED:" in outcome.out
    assert [row for row in command("diff", RUN).rows if row[0] == "found"]


def test_both_bundles_that_were_opened_are_written_down(command: Command, saved: Path) -> None:
    assert command("diff", RUN, 1, 3).code == 0
    lines = (saved / ".local" / "state" / "checkpoint-archiver" / "audit.jsonl").read_text().splitlines()
    last = [json.loads(line) for line in lines[-2:]]
    assert [(one["action"], one["seq"], one["within"]) for one in last] == [
        ("open", 1, "diff"), ("open", 3, "diff")
    ]  # fmt: skip


def test_a_bundle_that_is_damaged_is_named(command: Command, saved: Path) -> None:
    (bundle,) = (saved / "store" / "bundles" / RUN).glob("00000001-*.age")
    data = bytearray(bundle.read_bytes())
    data[-1] ^= 1
    bundle.unlink()
    bundle.write_bytes(bytes(data))
    outcome = command("diff", RUN, 1, 3)
    assert (outcome.code, outcome.out) == (4, "")
    assert command("diff", RUN, 2, 3).code == 0
