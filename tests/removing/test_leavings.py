"""What a writer puts under an erased run, because it still ran, is said for what it is, and goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.rekeying import at, backdate
from inside import command

from archiver import expiring, layout
from archiver.removing import erase
from archiver.setup import Setup
from archiver.tagging import settle
from archiver.verify import verify
from removing.doing import RUN, save, there

AGAIN = f"with leavings: something of it is in the store; run `archiver erase {RUN}` again"


@pytest.fixture
def left(setup: Setup, note: Path) -> list[str]:
    """Names of the record, and of two bundles, that come back after the erasure; one has no record."""
    record = save(setup, note, outcome="running")
    assert record.bundle is not None
    name = layout.record_name(RUN, 1)
    orphan = layout.bundle_name(RUN, 9, "ab" * 8)
    kept = {one: at(setup, one).read_bytes() for one in (name, record.bundle.name)}
    erase(RUN, setup)
    for one, content in kept.items():
        setup.store.create(one, [content], retention="record" if one == name else "live")
    setup.store.create(orphan, [b"sealed"], retention="live")
    return [*kept, orphan]


def test_no_command_takes_it_for_a_run(setup: Setup, config: Path, left: list[str]) -> None:
    listed = command("list", "--config", config)
    assert [(row[0], row[-1]) for row in listed.rows] == [(RUN, "erased")]
    assert AGAIN in listed.err
    (found,) = command("list", "--config", config, "--json").json["runs"]
    assert (found["erased"], found["expires_on"]) == (True, None)
    said = {one.object: one.note for one in verify(setup) if one.state == "warning"}
    assert AGAIN in said[layout.records_prefix(RUN)]
    settled = settle(setup, RUN, now=datetime.now(UTC))
    assert settled.changes == ()
    assert any(AGAIN in one for one in settled.warnings)
    setup.store.delete(left[0])
    for one in verify(setup):
        assert one.state == "warning" or not one.object.startswith("bundles/")
    erase(RUN, setup)
    assert all(name.startswith("notes/") for name in there(setup))
    assert settle(setup, RUN, now=datetime.now(UTC)).warnings == ()


def test_it_is_given_up_after_two_days_whatever_its_records_say(setup: Setup, left: list[str]) -> None:
    now = datetime.now(UTC)
    backdate(setup, now - timedelta(days=9), "bundles/")
    found = expiring.plan(setup, now=now)
    assert {one.name for one in found.expired if one.name.startswith("bundles/")} == set(left[2:])
    settle(setup, RUN, now=now)
    assert {setup.store.class_of(name) for name in left[1:]} == {"intermediate"}
