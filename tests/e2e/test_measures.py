"""What an SDK hears of real restores, claims and effects."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from archiver import records
from archiver.archive import Source, archive, prepare
from archiver.errors import LimitExceededError, NeedsDecisionError, StaleCheckpointError
from archiver.model import Checkpoint, Effect, Spend
from archiver.position import Position
from archiver.redact import new_key
from archiver.restore import restore
from archiver.setup import Setup
from archiver.spool import open_spool

if TYPE_CHECKING:
    from hearing import Heard

pytest_plugins = ("hearing",)

NOW = datetime.now(UTC)
RUN = "measured"


def checkpoint(**more: Any) -> Checkpoint:
    return Checkpoint(**{"run_id": RUN, "task_id": "t", "created_at": NOW, "checkpoint_at": NOW, **more})


@pytest.fixture
def saved(setup: Setup) -> Setup:
    """A run that had used money and time when it was saved ten days ago, which is stale by now."""
    effect = Effect(
        key="mail-1", tool="mail", arguments={"to": "a"}, result="sent", status="confirmed", at=NOW
    )
    made = checkpoint(
        created_at=NOW - timedelta(days=11),
        checkpoint_at=NOW - timedelta(days=10),
        spend=Spend(cost=1.5, seconds=90.0),
        effects=(effect,),
    )
    archive(Source(checkpoint=made), setup)
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
    archive(Source(checkpoint=checkpoint(spend=spend)), setup)
    restore(RUN, setup, into=tmp_path / "out").resume()
    assert heard.value("archiver.replay.avoided.cost") == 0
    assert heard.value("archiver.replay.avoided.time") == 1


def test_a_save_is_measured_with_its_stages_and_its_findings(setup: Setup, heard: Heard) -> None:
    leaked = "ghp_" + secrets.token_hex(18)
    record = archive(Source(checkpoint=checkpoint(note=f"with {leaked}")), setup).record
    assert heard.value("archiver.save.duration", archiver__save__to="store") > 0
    assert heard.value("archiver.checkpoint.size") == record.sizes.compacted > 0
    assert heard.value("archiver.bundle.size") == record.sizes.stored > 0
    assert heard.value("archiver.transcript.size") == record.sizes.raw
    assert record.findings
    for rule, count in record.findings.items():
        assert heard.value("archiver.redaction.findings", archiver__rule=rule) == count
    spans = {span.name: span for span in heard.spans()}
    (save,) = (span for span in heard.spans() if span.name == "archiver.save")
    for stage in ("redact", "compact", "seal", "store"):
        parent = spans[f"archiver.save.{stage}"].parent
        assert parent is not None
        assert save.context is not None
        assert parent.span_id == save.context.span_id
    told = "".join(span.to_json() for span in heard.spans())
    assert RUN not in told
    assert leaked not in told


def test_a_save_that_fails_is_counted_by_the_class_of_its_error(setup: Setup, heard: Heard) -> None:
    settings = setup.settings
    limits = settings.limits.model_copy(update={"run": 1})
    small = replace(setup, settings=settings.model_copy(update={"limits": limits}))
    with pytest.raises(LimitExceededError):
        archive(Source(checkpoint=checkpoint()), small)
    assert heard.value("archiver.save.failures", error__type="LimitExceededError") == 1
    assert "archiver.save.duration" not in heard.measures()


def test_what_waits_in_the_spool_is_seen_until_it_is_delivered(setup: Setup, heard: Heard) -> None:
    waiting = open_spool(setup).of(RUN, "t")
    with prepare(
        Source(checkpoint=checkpoint()), setup, lambda _: Position(RUN, 1, None, None, new_key())
    ) as made:
        record = made.record(made.new_name(), NOW)
        sealed = records.encode(record, setup.require_signing_key(), setup.recipients)
        waiting.add(record, sealed, made.sealed.path, plain=True)
    assert heard.value("archiver.spool.entries") == 1
    assert heard.value("archiver.spool.size") > record.sizes.stored
    waiting.deliver()
    assert heard.value("archiver.spool.entries") == 0
    assert heard.value("archiver.delivery.duration") > 0
    waiting.deliver()
    (point,) = heard.measures()["archiver.delivery.duration"].data.data_points
    assert point.count == 1
    assert "archiver.deliver" in {span.name for span in heard.spans()}
    waiting.finish()
    assert heard.value("archiver.spool.size") == 0


def test_a_restore_that_waits_for_a_person_is_not_stale(setup: Setup, heard: Heard, tmp_path: Path) -> None:
    unknown = Effect(key="mail-1", tool="mail", status="uncertain")
    archive(Source(checkpoint=checkpoint(effects=(unknown,))), setup)
    with pytest.raises(NeedsDecisionError):
        restore(RUN, setup, into=tmp_path / "out")
    assert "archiver.restore.stale" not in heard.measures()
