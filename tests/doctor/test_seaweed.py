"""A real server: what it enforces, whose rights are what, and what a visit leaves behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from servers.seaweed import Seaweed

from archiver.doctor import Check, examine, exit_code
from archiver.setup import open_setup
from archiver.store.s3 import CLASS_TAG

from .conftest import Settle, worst

Checked = Callable[..., dict[str, Check]]
Become = Callable[[Seaweed, str], None]
pytestmark = pytest.mark.usefixtures("small_race")


@pytest.fixture
def settle(settle_unproved: Settle) -> Settle:
    return settle_unproved


def all_versions(seaweed: Seaweed, bucket: str) -> list[str]:
    """Every version and marker of every key."""
    answer = seaweed.client().list_object_versions(Bucket=bucket)
    return [entry["Key"] for kind in ("Versions", "DeleteMarkers") for entry in answer.get(kind, [])]


def texts(found: list[Check], name: str) -> dict[str, str]:
    """What is said of one thing, by verdict."""
    return {check.verdict: check.text for check in found if check.name == name}


def test_what_it_enforces_and_that_nothing_is_left(
    seaweed: Seaweed, s3_url: str, bucket: str, settle: Settle, checked: Checked, whole_race: None
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint, region="us-east-1")
    prefix = s3_url.removeprefix(f"s3://{bucket}/")
    before = sorted(
        entry["Key"] for entry in seaweed.client().list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    )
    assert before == [f"{prefix}/store.json"]
    looked = list(examine(settings))
    found = worst(looked)
    after = sorted(
        entry["Key"] for entry in seaweed.client().list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    )
    assert after == before
    assert exit_code(found.values()) == 0
    for name in (
        *("store", "clock", "bucket", "store id", "fencing", "multipart", "checksums", "round trip"),
        *("class tags", "classes", "strangers", "permissions", "unfinished uploads", "identities", "writers"),
    ):
        assert found[name].verdict == "ok", found[name]
    assert found["fencing"].text.startswith("enforced")
    assert "SeaweedFS" in found["store"].text
    for name in ("credentials", "public access"):
        assert found[name].verdict == "unknown", found[name]
    assert found["versioning"].text.startswith("off")
    assert found["recipients"].verdict == "warning"
    assert texts(looked, "too many rights")["warning"].count("s3:") == 4
    sweeper = settings.model_copy(
        update={"retention": settings.retention.model_copy(update={"sweeper": True})}
    )
    assert "s3:PutObjectTagging" not in texts(list(examine(sweeper)), "too many rights")["warning"]


def test_a_writer_that_may_not_delete(
    seaweed: Seaweed, s3_url: str, settle: Settle, checked: Checked, aws_environment: Become
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    aws_environment(seaweed, "writer")
    looked = list(examine(settings))
    found = worst(looked)
    assert exit_code(found.values()) == 0
    assert found["fencing"].text.startswith("enforced")
    assert found["permissions"].text.startswith("all that a writer needs")
    assert found["lifecycle"].text == "these credentials may not look (s3:GetLifecycleConfiguration)"
    assert "s3:DeleteObject" in texts(looked, "too many rights")["ok"]
    assert texts(looked, "too many rights")["warning"].count("(s3:") == 1
    assert "(s3:PutObjectTagging on what is there)" in texts(looked, "too many rights")["warning"]
    left = [info.name for info in open_setup(settings, "read").store.list("effects/archiver-doctor/")]
    assert left
    assert "lie in the store and nobody reads them" in found["probes"].text
    objects = {name: open_setup(settings, "read").store.head(name).retention for name in left}
    assert set(objects.values()) == {"live"}
    assert found["classes"].text == "each has one: one object"  # probes are nobody's


@pytest.mark.parametrize(
    ("who", "lacks"),
    [
        ("reader", "s3:PutObject"),
        ("creator", "s3:ListBucket, s3:GetObject"),
        ("stranger", "s3:ListBucket, s3:GetObject, s3:PutObject"),
    ],
)
def test_missing_rights_are_named(
    who: str,
    lacks: str,
    seaweed: Seaweed,
    s3_url: str,
    settle: Settle,
    checked: Checked,
    aws_environment: Become,
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    aws_environment(seaweed, who)
    found = checked(settings)
    assert found["permissions"].text == f"a writer needs {lacks}, and these credentials lack it"
    assert exit_code(found.values()) == 8
    assert found["fencing"].verdict == ("ok" if who == "creator" else "unknown")
    assert found["round trip"].verdict == "unknown"
    assert found["class tags"].verdict == "unknown"


def test_credentials_that_the_server_does_not_know(
    seaweed: Seaweed, s3_url: str, settle: Settle, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    found = checked(settings)
    assert (found["store"].verdict, found["store"].exit_code) == ("failure", 8)
    assert "the secret key is wrong" in found["store"].text
    assert found["everything else"].verdict == "unknown"


def test_a_bucket_that_is_not_there(
    seaweed: Seaweed, settle: Settle, checked: Checked, aws_environment: Become
) -> None:
    aws_environment(seaweed, "admin")
    found = checked(settle("s3://no-such-bucket/x", endpoint_url=seaweed.endpoint, bare=True))
    assert "does not exist" in found["store"].text
    assert exit_code(found.values()) == 8


def test_versions_and_markers_of_probes_are_removed_too(
    seaweed: Seaweed, settle: Settle, checked: Checked, aws_environment: Become
) -> None:
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    enabled = {"Status": "Enabled"}
    seaweed.client().put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    settings = settle(f"s3://{bucket}/x", endpoint_url=seaweed.endpoint)
    assert all_versions(seaweed, bucket) == ["x/store.json"]
    found = checked(settings)
    assert found["versioning"].verdict == "ok"
    assert "s3:DeleteObjectVersion" in found["too many rights"].text
    assert found["reading versions"].text.startswith("they can be listed and read")
    assert all_versions(seaweed, bucket) == ["x/store.json"]

    aws_environment(
        seaweed, "writer"
    )  # who may not see whether there are versions, and has them in an answer
    looked = list(examine(settings))
    assert "s3:DeleteObjectVersion" in texts(looked, "too many rights")["ok"]
    assert "s3:ListBucketVersions is not allowed" in texts(looked, "reading versions")["warning"]


def test_a_locked_bucket(seaweed: Seaweed, settle: Settle, checked: Checked, aws_environment: Become) -> None:
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket(ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    locked = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    seaweed.client().put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=locked)
    settings = settle(f"s3://{bucket}/x", endpoint_url=seaweed.endpoint)
    found = checked(settings)
    assert "governance mode for 1 day:" in found["object lock"].text
    assert "remove what Object Lock holds (s3:BypassGovernanceRetention)" in found["too many rights"].text
    assert "probes" not in found  # they are locked, and hidden
    assert [info.name for info in open_setup(settings, "read").store.list()] == ["store.json"]


def rules(seaweed: Seaweed, bucket: str, *found: dict[str, Any]) -> None:
    seaweed.client().put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": list(found)}
    )


def test_rules_as_a_server_gives_them(
    seaweed: Seaweed, settle: Settle, checked: Checked, aws_environment: Become
) -> None:
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    settings = settle(f"s3://{bucket}/x", endpoint_url=seaweed.endpoint)
    days = {"live": 180, "intermediate": 30, "success": 90, "failure": 180, "record": 400}
    abort = {
        "ID": "abort",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    }
    expiring = [
        {
            "ID": word,
            "Status": "Enabled",
            "Filter": {"And": {"Prefix": "x/", "Tags": [{"Key": CLASS_TAG, "Value": word}]}},
            "Expiration": {"Days": count},
        }
        for word, count in days.items()
    ]
    rules(seaweed, bucket, abort, *expiring)
    assert checked(settings)["lifecycle"].verdict == "ok"
    everything = {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": "x/"}, "Expiration": {"Days": 5}}
    rules(seaweed, bucket, abort, *expiring, everything)
    assert checked(settings)["lifecycle"].verdict == "failure"
    rules(seaweed, bucket, *expiring[1:])
    before = seaweed.client().get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    found = [check.text for check in examine(settings) if check.name == "lifecycle"]
    assert len(found) == 2
    assert "live never expire" in found[0]
    # Asking whether the rules may be changed has not changed them.
    assert seaweed.client().get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == before


def test_the_policy_of_a_bucket_survives_being_asked_about(
    seaweed: Seaweed, settle: Settle, aws_environment: Become
) -> None:
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteBucket",
        "Resource": f"arn:aws:s3:::{bucket}",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    seaweed.client().put_bucket_policy(Bucket=bucket, Policy=policy)
    settings = settle(f"s3://{bucket}/x", endpoint_url=seaweed.endpoint)
    assert "s3:PutBucketPolicy" in texts(list(examine(settings)), "too many rights")["warning"]
    kept = json.loads(seaweed.client().get_bucket_policy(Bucket=bucket)["Policy"])
    assert kept["Statement"][0]["Action"] == "s3:DeleteBucket"


def test_uploads_of_the_dead_are_listed_and_aborted_only_when_asked(
    seaweed: Seaweed, s3_url: str, bucket: str, settle: Settle, checked: Checked
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    prefix = s3_url.removeprefix(f"s3://{bucket}/")
    key = f"{prefix}/bundles/run/00000001-0123456789abcdef.tar.zst.age"
    client = seaweed.client()
    client.create_multipart_upload(Bucket=bucket, Key=key)

    def uploads() -> list[str]:
        found = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
        return [entry["Key"] for entry in found]

    def later() -> datetime:
        return datetime.now(UTC) + timedelta(days=2)

    found = checked(settings, now=later)["unfinished uploads"]
    assert found.verdict == "warning"
    assert "1 older than a day" in found.text
    assert "--repair" in (found.remedy or "")
    assert uploads() == [key]
    assert checked(settings, repair=True)["unfinished uploads"].verdict == "ok"
    assert uploads() == [key]  # it may still have a living writer
    found = checked(settings, repair=True, now=later)["unfinished uploads"]
    assert found.text == "1 older than a day were aborted"
    assert uploads() == []


def test_objects_without_a_class_are_found(
    seaweed: Seaweed, s3_url: str, bucket: str, settle: Settle, checked: Checked
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    prefix = s3_url.removeprefix(f"s3://{bucket}/")
    client = seaweed.client()
    client.put_object(Bucket=bucket, Key=f"{prefix}/records/run/00000001.age", Body=b"x")
    client.put_object(
        Bucket=bucket, Key=f"{prefix}/records/run/00000002.age", Body=b"x", Tagging=f"{CLASS_TAG}=record"
    )
    found = checked(settings)["classes"]
    assert found.verdict == "warning"
    assert found.text.startswith("1 of 3 objects without one")
    assert "records/run/00000001.age" in found.text


def test_of_many_objects_a_sample_is_asked_and_called_so(
    seaweed: Seaweed, s3_url: str, settle: Settle, checked: Checked
) -> None:
    settings = settle(s3_url, endpoint_url=seaweed.endpoint)
    store = open_setup(settings, "read").store
    for number in range(120):
        run = hashlib.sha256(str(number).encode()).hexdigest()
        store.create(f"index/{number:013d}-{run}-00000001", [b""], retention="record")
    assert checked(settings)["classes"].text == "each has one: a sample of 100 of 121 objects"


def test_another_store_in_its_place(seaweed: Seaweed, s3_url: str, settle: Settle, checked: Checked) -> None:
    settle(s3_url, endpoint_url=seaweed.endpoint)
    other = settle(s3_url, bare=True, endpoint_url=seaweed.endpoint, id="ab" * 16)
    found = checked(other)["store id"]
    assert (found.verdict, found.exit_code) == ("failure", 4)
    nothing = settle(f"{s3_url}/other", bare=True, endpoint_url=seaweed.endpoint)
    assert "archiver init" in (checked(nothing)["store id"].remedy or "")
