"""Three agents on the library face are killed at random points, and end as if nobody had killed them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from servers.seaweed import Seaweed

from archiver.testing import Report

AGENTS = Path(__file__).parents[1] / "loop" / "agents"
NAMES = ("conversation", "batch", "effects")
Kill = Callable[..., Report]


def survive(killed: Kill, name: str, *points: str, **options: object) -> Report:
    report = killed(f"{AGENTS / name}.py:agent", *points, **options)
    report.check()
    return report


def demand_covered(report: Report, *kinds: str) -> None:
    assert {kind for kind, deaths in report.coverage.items() if deaths} >= set(kinds)


@pytest.mark.parametrize(
    ("name", "times", "seed"), [("conversation", 5, 11), ("batch", 5, 12), ("effects", 10, 13)]
)
def test_random_kills_change_nothing(killed: Kill, name: str, times: int, seed: int) -> None:
    """20 in all; between intent and outcome, during upload, during fsync among them."""
    report = survive(killed, name, times=times, seed=seed)
    assert report.kills == times
    if name != "effects":  # which saves in the background; of the others a death costs what is in hand
        assert all(one.again <= len(one.deaths) for one in report.rounds), report
    demand_covered(report, "upload", "fsync", *(("act", "effect") if name == "effects" else ()))


def test_an_effect_before_its_outcome_with_the_disk_lost(killed: Kill) -> None:
    """After the action, with its intent only in the store; and the next one before the action."""
    report = survive(killed, "effects", "act:2+act:1", lose_disk=True)
    assert [death.what for death in report.rounds[0].deaths] == [
        "after the action order-desk",
        "before the action tag-desk",
    ]


def test_kills_on_the_way_to_a_bucket(killed: Kill, seaweed: Seaweed, bucket: str) -> None:
    """Half of a request is sent, and then nothing; the request is sent, and its answer never read."""
    report = survive(killed, "effects", "send:125+effect:3", **on_server(seaweed, bucket))
    demand_covered(report, "send", "effect")
    assert not list(seaweed.client().list_objects_v2(Bucket=bucket, Prefix="kills/").get("Contents", ()))


def on_server(seaweed: Seaweed, bucket: str) -> dict[str, object]:
    settings = {**seaweed.environment(), "ARCHIVER_STORE__ENDPOINT_URL": seaweed.endpoint}
    return {"store": f"s3://{bucket}/kills", "environment": settings}


@pytest.mark.soak
@pytest.mark.parametrize("lose_disk", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_many_random_kills_change_nothing(killed: Kill, name: str, seed: int, lose_disk: bool) -> None:
    """204 in all, half of them with the disk lost each time."""
    report = survive(killed, name, times=17, seed=seed, lose_disk=lose_disk)
    demand_covered(report, "upload", "fsync", "file", *(("act", "effect") if name == "effects" else ()))


@pytest.mark.soak
@pytest.mark.parametrize("lose_disk", [False, True])
def test_many_random_kills_with_a_bucket(
    killed: Kill, seaweed: Seaweed, bucket: str, lose_disk: bool
) -> None:
    report = survive(killed, "effects", times=30, seed=3, lose_disk=lose_disk, **on_server(seaweed, bucket))
    demand_covered(report, "upload", "fsync", "send", "act", "effect")
