"""An imitation that believes every checksum is told so; and the parts of AWS that only it has here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.doctor import Check, examine
from archiver.setup import fencing

from .conftest import Settle

Checked = Callable[..., dict[str, Check]]
REGION = "eu-central-1"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(fencing, "RACERS", 1)  # the imitation lets several creators of one moment win
    with mock_aws():
        made = client("s3", AwsOptions(region=REGION))
        made.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
        yield made


def test_wrong_checksums_are_believed(s3: Any, settle: Settle) -> None:
    settings = settle("s3://bucket/x", region=REGION)
    found = [check for check in examine(settings) if check.name == "checksums"]
    assert [check.verdict for check in found] == ["failure", "warning"]
    assert found[0].text == "a put with a wrong SHA-256 is accepted: the server does not check it"
    assert found[1].text == "a put with a wrong Content-MD5 is accepted: the server does not check it"
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["x/store.json"]


def test_who_and_where(s3: Any, settle: Settle, checked: Checked) -> None:
    settings = settle("s3://bucket/x", region=REGION)
    found = checked(settings)
    assert found["credentials"].text.startswith("arn:aws:")
    assert found["credentials"].text.endswith(", from env")
    assert found["bucket"].text == f"is there, in {REGION}"
    elsewhere = checked(settle("s3://bucket/x", region="us-west-2", bare=True))["bucket"]
    assert elsewhere.verdict == "warning"
    assert f'store.region = "{REGION}"' in (elsewhere.remedy or "")


def test_how_the_bucket_is_set_up(s3: Any, settle: Settle, checked: Checked) -> None:
    settings = settle("s3://bucket/x", region=REGION)
    assert checked(settings)["public access"].verdict == "warning"
    block = {
        "BlockPublicAcls": True,
        "IgnorePublicAcls": True,
        "BlockPublicPolicy": True,
        "RestrictPublicBuckets": False,
    }
    s3.put_public_access_block(Bucket="bucket", PublicAccessBlockConfiguration=block)
    found = checked(settings)["public access"]
    assert "RestrictPublicBuckets is off" in found.text
    block["RestrictPublicBuckets"] = True
    s3.put_public_access_block(Bucket="bucket", PublicAccessBlockConfiguration=block)
    key = f"arn:aws:kms:{REGION}:111122223333:key/1"
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    s3.put_bucket_encryption(Bucket="bucket", ServerSideEncryptionConfiguration={"Rules": [rule]})
    found = checked(settings)
    assert found["public access"].text == "blocked"
    assert f"aws:kms with {key}" in found["encryption"].text
