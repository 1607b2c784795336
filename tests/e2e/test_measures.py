"""What an SDK hears of real restores, claims and effects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from archiver.archive import Source, archive
from archiver.errors import StaleCheckpointError
from archiver.model import Checkpoint, Effect, Spend
from archiver.restore import restore
from archiver.setup import Setup

if TYPE_CHECKING:
    from hearing import Heard

pytest_plugins = ("hearing",)

NOW = datetime.now(UTC)
RUN = "measured"


@pytest.fixture
def saved(setup: Setup) -> Setup:
    """A run that had used money and time when it was saved ten days ago, which is stale by now."""
    effect = Effect(
        key="mail-1", tool="mail", arguments={"to": "a"}, result="sent", status="confirmed", at=NOW
    )
    checkpoint = Checkpoint(
        run_id=RUN,
        task_id="t",
        created_at=NOW - timedelta(days=11),
        checkpoint_at=NOW - timedelta(days=10),
        spend=Spend(cost=1.5, seconds=90.0),
        effects=(effect,),
    )
    archive(Source(checkpoint=checkpoint), setup)
    return setup


def test_a_restore_that_is_refused_is_stale_and_one_that_is_accepted_is_measured(
    saved: Setup, heard: Heard, tmp_path: Path
) -> None:
    with pytest.raises(StaleCheckpointError):
        restore(RUN, saved, into=tmp_path / "out")
    assert heard.value("archiver.restore.stale") == 1
    assert "archiver.restore.duration" not in heard.measures()
    restored = restore(RUN, saved, into=tmp_path / "out", accept=["age"])
    assert heard.value("archiver.restore.stale") == 1
    assert heard.value("archiver.restore.duration") > 0
    assert restored.report.record.bundle is not None
    assert heard.value("archiver.restore.size") == restored.report.record.bundle.unpacked
    refused, done = (span for span in heard.spans() if span.name == "archiver.restore")
    assert dict(refused.attributes or {}) == {"error.type": "StaleCheckpointError"}
    assert not done.attributes


@pytest.mark.parametrize("at_once", [True, False])
def test_a_claim_is_a_resume_that_avoids_a_replay(
    at_once: bool, saved: Setup, heard: Heard, tmp_path: Path
) -> None:
    restored = restore(RUN, saved, into=tmp_path / "out", accept=["age"], claim=at_once)
    resumed = restored.resume()
    assert heard.value("archiver.resume.accepted") == 1
    assert heard.value("archiver.replay.avoided.time") == 90
    assert heard.value("archiver.replay.avoided.cost") == 1.5
    answer = resumed.effects.outcome("mail-1", {"to": "a"})
    assert (answer.act, answer.result) == (False, "sent")
    assert resumed.effects.outcome("mail-2", {"to": "b"}).act
    assert heard.value("archiver.effect.duplicates_prevented") == 1


def test_money_of_another_currency_is_not_counted_as_dollars(
    setup: Setup, heard: Heard, tmp_path: Path
) -> None:
    spend = Spend(cost=7.0, currency="EUR", seconds=1.0)
    checkpoint = Checkpoint(run_id=RUN, task_id="t", created_at=NOW, checkpoint_at=NOW, spend=spend)
    archive(Source(checkpoint=checkpoint), setup)
    restore(RUN, setup, into=tmp_path / "out").resume()
    assert heard.value("archiver.replay.avoided.cost") == 0
    assert heard.value("archiver.replay.avoided.time") == 1
