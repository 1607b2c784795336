"""A real server keeps rules as they are put, sizes beside tags too, and gives each version its own tags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from servers.seaweed import Seaweed

from archiver.config import load
from archiver.errors import UnsafeLifecycleError
from archiver.lifecycle.bucket import read
from archiver.lifecycle.checking import check
from archiver.noting import put_note
from archiver.setup import fencing, open_setup
from archiver.store.s3 import CLASS_TAG

from .conftest import Command

Become = Callable[[Seaweed, str], None]
SIZED = {
    "ID": "large",
    "Status": "Enabled",
    "Filter": {
        "And": {
            "Prefix": "logs/",
            "Tags": [{"Key": "env", "Value": "dev"}],
            "ObjectSizeGreaterThan": 1 << 20,
        }
    },
    "Expiration": {"Days": 3},
}


@pytest.fixture
def store(
    seaweed: Seaweed,
    aws_environment: Become,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> tuple[Command, str, Any]:
    """A store with one failed run, in a bucket with versions."""
    aws_environment(seaweed, "admin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(fencing, "RACERS", 2)
    monkeypatch.setattr(fencing, "ROUNDS", 1)
    bucket = seaweed.make_bucket()
    client = seaweed.client()
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    made = command("init", f"s3://{bucket}/team", "--endpoint-url", seaweed.endpoint, "--region", "us-east-1")
    assert made.code == 0, made.err
    (tmp_path / "notes.txt").write_text("hello\n")
    saved = command("archive", tmp_path / "notes.txt", "--run-id", "r", "--outcome", "failed")
    assert saved.code == 0, saved.err
    return command, bucket, client


def test_rules_of_others_stay_and_the_own_ones_come(store: tuple[Command, str, Any]) -> None:
    command, bucket, client = store
    client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [SIZED]})
    (before,) = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    done = command("lifecycle", "apply", "--yes", "--json")
    assert done.code == 0, done.err
    rules = {rule["ID"]: rule for rule in client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}
    assert rules["large"] == before
    assert len(rules) == 8
    assert command("lifecycle", "show", "--json").json["drift"] == []
    checked = command("lifecycle", "check", "--json")
    assert checked.code == 0, checked.json
    assert checked.json["unclassed"]["objects"] == 0
    assert command("lifecycle", "apply", "--yes", "--json").json["changed"] is False
    doctor = {one["check"]: one for one in command("doctor", "--json").json["checks"]}
    assert doctor["lifecycle"]["verdict"] == "ok", doctor["lifecycle"]


def test_a_hold_that_is_signed_counts_before_anything_is_tagged(store: tuple[Command, str, Any]) -> None:
    command, bucket, client = store
    assert command("lifecycle", "apply", "--yes").code == 0
    now = datetime.now(UTC)
    setup = open_setup(load(), "write")
    assert check(read(load()), setup, now=now).error() is None
    put_note(setup, "r", "r", "hold", reason="an incident")
    found = check(read(load()), setup, now=now)
    error = found.error()
    assert isinstance(error, UnsafeLifecycleError)
    assert {one.rule.id for one in found.unsafe} == {"archiver-failure", "archiver-record"}
    assert found.early == 2  # its bundle and its record: the note is on hold by its tag
    assert all(one.first[0].promised is None for one in found.unsafe)

    # Tagged, every version of it, nothing takes it; a version that was forgotten is found.
    store_ = setup.store
    for info in list(store_.list("")):
        if info.name.startswith(("bundles/r/", "records/r/")):
            store_.retag(info.name, "hold")
    assert check(read(load()), setup, now=now + timedelta(days=3650)).error() is None
    key = next(info.name for info in store_.list("bundles/r/"))
    tagging = f"{CLASS_TAG}=failure"
    client.put_object(Bucket=bucket, Key=f"team/{key}", Body=b"x", Tagging=tagging)
    found = check(read(load()), setup, now=now)
    (unsafe,) = found.unsafe
    assert unsafe.rule.id == "archiver-failure"
    assert unsafe.first[0].name == key


def test_who_may_not_see_the_rules(
    store: tuple[Command, str, Any], seaweed: Seaweed, aws_environment: Become
) -> None:
    command, _, _ = store
    aws_environment(seaweed, "reader")
    for words in (("show",), ("check",), ("apply", "--yes")):
        refused = command("lifecycle", *words)
        assert refused.code == 8
        assert "s3:GetLifecycleConfiguration" in refused.err
