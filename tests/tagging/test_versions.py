"""In a bucket that keeps versions: a hold covers each of them, and a release gives all of them back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import many
import pytest
from servers.seaweed import Seaweed

from archiver import layout, noting
from archiver.catalog import Catalog
from archiver.config import load
from archiver.setup import Setup, open_setup
from archiver.store import Versioned
from archiver.tagging import settle


@pytest.fixture
def bucketed(
    seaweed: Seaweed,
    make_s3_config: Callable[[Seaweed, str], Path],
    aws_environment: Callable[[Seaweed, str], None],
) -> Setup:
    """A store in a bucket of its own, which keeps versions."""
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    seaweed.client().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return open_setup(load(make_s3_config(seaweed, f"s3://{bucket}/store")), need="write")


def classes(setup: Setup, prefix: str) -> list[str | None]:
    store = setup.store
    assert isinstance(store, Versioned)
    found = [one for one in store.versions(prefix) if not one.deleted]
    return [store.class_of_version(one.name, one.version) for one in found]


def test_a_hold_covers_every_version(bucketed: Setup) -> None:
    setup, run = bucketed, many.name_of(1)
    many.fill(setup, range(1, 2), 7)
    first, second, *_ = setup.store.list(layout.bundles_prefix(run))
    setup.store.replace(first.name, [b"x" * first.size], was=setup.store.head(first.name))
    setup.store.delete(second.name)
    now = datetime.now(UTC)
    assert [change.to for change in settle(setup, run, now=now).changes] == ["success"] * 4 + ["intermediate"]
    task = Catalog(setup).chain(run).head.record.task
    noting.put_note(setup, run, task, "hold")
    held = settle(setup, run, now=now)
    assert len(held.changes) == 8 + 7
    assert set(classes(setup, layout.bundles_prefix(run))) == {"hold"}
    assert set(classes(setup, layout.records_prefix(run))) == {"hold"}
    noting.put_note(setup, run, task, "release")
    settle(setup, run, now=now)
    assert classes(setup, layout.bundles_prefix(run)) == ["intermediate"] * 3 + ["success"] * 5
    assert set(classes(setup, layout.records_prefix(run))) == {"record"}
    assert settle(setup, run, now=now).changes == ()
