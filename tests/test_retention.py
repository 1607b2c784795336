"""From when on a bundle may be gone: by its class, by what came after it, by the later of two clocks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from archiver.model.record import BundleRef, Record
from archiver.retention import DAYS, Committed, Ending, endings

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def committed(seq: int, at: datetime = START, written: datetime | None = None, **named: Any) -> Committed:
    bases = named.pop("bases", ())
    bundle = BundleRef(
        name=f"bundles/r/{seq:08d}-0000000000000000.tar.zst.age",
        payload_sha256="0" * 64,
        payload_length=1,
        manifest_sha256="0" * 64,
        members=1,
        unpacked=1,
        bases=bases,
    )
    known: dict[str, Any] = {
        "store": "0" * 32,
        "run": "r",
        "task": "t",
        "seq": seq,
        "schema_version": 2,
        "min_reader": 2,
        "created_at": START,
        "checkpoint_at": at,
        "recorded_at": at,
        "outcome": "running",
        "retention": "live",
        "writer": "ed25519:x",
        "recipients": (),
        "bundle": bundle,
    }
    known.update(named)
    if known.get("kind", "checkpoint") != "checkpoint":
        known["bundle"] = None
    return Committed(Record(**known), written or at)


def earliest_end(one: Committed, later: Sequence[Committed]) -> Ending | None:
    return endings((one, *later)).get(one.record.seq)


def days(end: Ending | None) -> float | None:
    return None if end is None else (end.at - START) / DAY


@pytest.mark.parametrize(
    ("retention", "outcome", "expected"),
    [
        ("live", "running", 180),
        ("live", "succeeded", 30),
        ("live", "cancelled", 30),
        ("live", "failed", 180),
        ("success", "succeeded", 30),
        ("success", "failed", 30),
        ("failure", "failed", 180),
        ("failure", "succeeded", 180),
        ("intermediate", "running", 8),
        ("record", "running", 400),
        ("hold", "succeeded", None),
    ],
)
def test_the_class_says_how_long(retention: str, outcome: str, expected: int | None) -> None:
    one = committed(1, retention=retention, outcome=outcome)
    assert days(earliest_end(one, ())) == expected


def test_the_days_of_the_classes() -> None:
    assert dict(DAYS) == {
        "intermediate": 8,
        "success": 30,
        "failure": 180,
        "live": 180,
        "record": 400,
        "hold": None,
    }


def test_a_later_checkpoint_makes_it_intermediate_from_then_on() -> None:
    for later, expected in ((1, 8), (8, 8), (20, 20), (170, 170), (179, 179), (300, 180)):
        end = earliest_end(committed(1), [committed(2, START + later * DAY)])
        assert days(end) == expected
        assert end is not None
        assert end.retention == ("live" if later == 300 else "intermediate")


def test_only_a_checkpoint_supersedes() -> None:
    one = committed(1)
    for kind in ("claim", "skipped"):
        assert days(earliest_end(one, [committed(2, START + DAY, kind=kind)])) == 180
    assert days(earliest_end(one, [committed(2, kind="claim"), committed(3, START + 9 * DAY)])) == 9


def test_a_final_class_and_a_hold_are_not_shortened() -> None:
    later = [committed(2, START + DAY)]
    assert days(earliest_end(committed(1, retention="failure", outcome="failed"), later)) == 180
    assert days(earliest_end(committed(1, retention="success", outcome="succeeded"), later)) == 30
    assert earliest_end(committed(1, retention="hold"), later) is None


def test_the_later_of_the_two_clocks_counts() -> None:
    behind = committed(1, START, written=START + 50 * DAY)
    ahead = committed(1, START + 50 * DAY, written=START)
    for one in (behind, ahead):
        assert days(earliest_end(one, ())) == 230
        assert days(earliest_end(committed(1), [committed(2, one.record.recorded_at, one.written)])) == 50


@pytest.mark.parametrize("which", ["recorded_at", "written"])
def test_a_time_at_the_end_of_all_times_never_ends(which: str) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    one = committed(1, last) if which == "recorded_at" else committed(1, START, written=last)
    assert earliest_end(one, ()) is None
    assert days(earliest_end(committed(1), [committed(2, last)])) == 180


def test_what_needs_a_bundle_may_be_gone_when_that_one_may() -> None:
    run = [
        committed(1),
        committed(2, START + DAY, bases=(1,)),
        committed(3, START + 2 * DAY, bases=(1, 2)),
        committed(4, START + 3 * DAY),
    ]
    found = endings(run)
    assert [days(found[seq]) for seq in (1, 2, 3, 4)] == [8, 8, 8, 183]
    held = endings([committed(1), committed(2, START + DAY, retention="hold", bases=(1,))])
    assert held == {1: Ending(START + 180 * DAY, "live"), 2: Ending(START + 180 * DAY, "live")}


def test_records_without_bundles_have_no_ending() -> None:
    assert endings([committed(1, kind="claim")]) == {}
    assert earliest_end(committed(1, kind="claim"), [committed(2)]) is None
    assert endings([]) == {}


def test_an_outcome_shortens_from_then_on_what_no_later_checkpoint_supersedes() -> None:
    for later, expected in ((10, 30), (100, 100), (170, 170)):
        at = START + later * DAY
        final = committed(2, at, outcome="succeeded", retention="success", bases=(1,))
        assert days(endings([committed(1), final])[1]) == expected
        resumed = committed(3, at + DAY, bases=(2,))
        assert days(endings([committed(1), final, resumed])[1]) == expected
