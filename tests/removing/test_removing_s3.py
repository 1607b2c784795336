"""Hold, rm and erase in buckets that keep versions, and in one that locks them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from servers.seaweed import Seaweed

from archiver import expiring, holding, inventory
from archiver.config import load
from archiver.errors import BundleRemovedError, RunErasedError, UsageError
from archiver.removing import erase, remove
from archiver.restore import plan, restore
from archiver.setup import Setup, open_setup
from archiver.store import Versioned
from archiver.verify import verify
from removing.doing import ALL, RUN, everything, save, tags, there

Make = Callable[[Seaweed, str], Path]


def opened(seaweed: Seaweed, make_s3_config: Make, bucket: str) -> Setup:
    config = make_s3_config(seaweed, f"s3://{bucket}/{secrets.token_hex(4)}")
    return open_setup(load(config), need="write")


@pytest.fixture
def kept(seaweed: Seaweed, make_s3_config: Make, aws_environment: Callable[[Seaweed, str], None]) -> Setup:
    """A store in a bucket that keeps versions."""
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    seaweed.client().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return opened(seaweed, make_s3_config, bucket)


@pytest.fixture
def locked(seaweed: Seaweed, make_s3_config: Make, aws_environment: Callable[[Seaweed, str], None]) -> Setup:
    """The same in a bucket that can lock them."""
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket(ObjectLockEnabledForBucket=True)
    return opened(seaweed, make_s3_config, bucket)


def versions(setup: Setup, run: str = RUN) -> list[inventory.Item]:
    return list(inventory.of_run(setup.store, run, ALL))  # type: ignore[arg-type]


def test_every_version_is_held_hidden_ones_too_and_all_of_them_are_erased(
    kept: Setup, note: Path, tmp_path: Path
) -> None:
    everything(kept, note)
    hidden = there(kept, RUN, "effect")
    for name in hidden:
        kept.store.delete(name)
    done = holding.hold(RUN, kept, reason="a court")
    assert done.versions > done.objects, "a rekey has left older versions"
    assert set(tags(kept).values()) == {"hold"}
    assert len(tags(kept)) == done.versions
    again = holding.hold(RUN, kept, reason="a court")
    # The audit object of the second call.
    assert again.changed == 1
    holding.release(RUN, kept)
    assert set(tags(kept).values()) == {"success", "record"}

    done_rm = remove(RUN, kept, reason="x")
    assert done_rm.objects == 2
    assert done_rm.hidden == 5
    assert done_rm.until is not None
    assert timedelta(days=29) < done_rm.until - datetime.now(UTC) < timedelta(days=31)
    with pytest.raises(BundleRemovedError) as caught:
        restore(RUN, kept, into=tmp_path / "out")
    assert "who removes that marker" in str(caught.value.remedy)

    erased = erase(RUN, kept, reason="they asked")
    assert erased.versions > erased.objects
    (left,) = versions(kept)
    assert left.kind == "note"
    raw = [one for one in _versions(kept) if "/r/" in one.name or "-r-" in one.name]
    assert [one.name for one in raw] == [left.name]
    with pytest.raises(RunErasedError):
        plan(RUN, kept)
    with pytest.raises(RunErasedError):
        save(kept, note)
    assert [one for one in verify(kept) if not one.ok] == []
    with pytest.raises(UsageError):
        expiring.expire(kept)


def _versions(setup: Setup) -> list[Any]:
    assert isinstance(setup.store, Versioned)
    return list(setup.store.versions())


def test_what_is_locked_is_hidden_and_named_until_when(
    locked: Setup, seaweed: Seaweed, note: Path, tmp_path: Path
) -> None:
    record = save(locked, note)
    assert record.bundle is not None
    bucket, _, prefix = locked.store.url.removeprefix("s3://").partition("/")
    until = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
    (version,) = [one for one in versions(locked) if one.name == record.bundle.name]
    (signed,) = [one for one in versions(locked) if one.kind == "record"]
    for one in (version, signed):
        seaweed.client().put_object_retention(
            Bucket=bucket,
            Key=f"{prefix}/{one.name}",
            VersionId=one.version,
            Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until},
        )
    first = erase(RUN, locked)
    for done in (first, erase(RUN, locked)):
        stays = {one.name: one.said for one in done.unreached if one.kind == "version"}
        assert set(stays) == {f"{one.name} (version {one.version})" for one in (version, signed)}
        assert all(f"locked (compliance) until {until.date().isoformat()}" in said for said in stays.values())
        left = versions(locked)
        assert {(one.name, one.version) for one in left if not one.deleted and one.kind != "note"} == {
            (version.name, version.version),
            (signed.name, signed.version),
        }
        assert [info.name for info in locked.store.list("bundles/")] == []
        assert [info.name for info in locked.store.list("records/")] == []
        assert sum(one.deleted for one in left) == 2, "a marker over each, and no more with each call"
    for act in (lambda: plan(RUN, locked), lambda: list(verify(locked, RUN)), lambda: save(locked, note)):
        with pytest.raises(RunErasedError):
            act()
    assert [one for one in verify(locked) if not one.ok] == []
