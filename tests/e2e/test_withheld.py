"""What redaction left a placeholder of is never used as a value: not in a replay, not in a command."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.archive import Source, archive
from archiver.errors import NeedsDecisionError, RedactedValueError, UsageError
from archiver.model import Checkpoint, Effect, Items, SubtaskResult, Transcript, TranscriptPart, Workspace
from archiver.redact import usable
from archiver.restore import plan, restore
from archiver.setup import Setup


def checkpoint(status: str, secret: str) -> Checkpoint:
    now = datetime.now(UTC)
    return Checkpoint(
        run_id="held",
        task_id="t",
        created_at=now,
        checkpoint_at=now,
        results=(SubtaskResult(key="a", output={"token": secret}), SubtaskResult(key="b", output="plain")),
        effects=(
            Effect(key="pay", tool="curl", arguments=[secret], status=status, replayable=True),  # type: ignore[arg-type]  # a word of the parameters below
            Effect(key="ask", tool="curl", arguments=["x"], status=status, replayable=True),  # type: ignore[arg-type]  # as above
        ),
        workspace=Workspace(path=f"/srv/{secret}/x"),
        transcript=Transcript(
            dialect="claude-code",
            parts=(TranscriptPart(name="s.jsonl", items=Items.of([{"type": "user", "uuid": "u"}])),),
        ),
    )


def credential() -> str:
    return "ghp_" + secrets.token_hex(18)


def test_values_with_placeholders_are_named_and_not_replayed(setup: Setup, tmp_path: Path) -> None:
    archive(Source(checkpoint=checkpoint("confirmed", credential())), setup)
    done = restore("held", setup, into=tmp_path / "out")
    assert done.report.redacted == ("results[0].output", "effects[0].arguments", "workspace.path")
    assert [effect.replayable for effect in done.checkpoint.effects] == [False, True]
    written = [json.loads(line) for line in (tmp_path / "out" / "effects.jsonl").read_text().splitlines()]
    assert [effect["replayable"] for effect in written] == [False, True]
    assert json.loads((tmp_path / "out" / "report.json").read_text())["redacted"] == list(
        done.report.redacted
    )
    assert "never use these as values" in (tmp_path / "out" / "REPORT.md").read_text()
    assert not any("REDACTED" in step for step in done.report.next_steps)


@pytest.mark.parametrize("status", ["uncertain", "in_progress"])
def test_an_open_effect_without_its_arguments_needs_a_person(
    status: str, setup: Setup, tmp_path: Path
) -> None:
    archive(Source(checkpoint=checkpoint(status, credential())), setup)
    assert plan("held", setup).record.effects.undecided == ("pay",)
    with pytest.raises(NeedsDecisionError, match=r"these effects happened: pay\n") as caught:
        restore("held", setup, into=tmp_path / "out")
    assert "--accept effects" in (caught.value.remedy or "")
    assert not (tmp_path / "out").exists()
    done = restore("held", setup, into=tmp_path / "out", accept=["effects"])
    assert not done.checkpoint.effects[0].replayable


def test_an_open_effect_without_its_arguments_can_be_decided_on(setup: Setup, tmp_path: Path) -> None:
    archive(Source(checkpoint=checkpoint("uncertain", credential())), setup)
    asked = plan("held", replace(setup, why="looked"), resolve={"pay": "done"})
    assert (asked.exit_code, [one.effect for one in asked.decisions]) == (0, ["pay"])
    with pytest.raises(UsageError, match="no undecided effect 'ask'"):
        restore("held", replace(setup, why="looked"), into=tmp_path / "out", resolve={"ask": "done"})
    done = restore("held", replace(setup, why="looked"), into=tmp_path / "out", resolve={"pay": "done"})
    assert [effect.status for effect in done.effects] == ["confirmed", "uncertain"]
    assert done.effects.outcome("ask", ["x"]).act
    with pytest.raises(RedactedValueError, match="argument of the effect pay"):
        done.effects.outcome("pay", ["the real one"])
    assert done.resume().seq == 2


def test_a_value_is_asked_for_by_its_name(setup: Setup, tmp_path: Path) -> None:
    archive(Source(checkpoint=checkpoint("confirmed", credential())), setup)
    results = restore("held", setup, into=tmp_path / "out").checkpoint.results
    assert usable(results[1].output, "the output of b") == "plain"
    with pytest.raises(RedactedValueError, match="the output of a held a credential"):
        usable(results[0].output, "the output of a")
