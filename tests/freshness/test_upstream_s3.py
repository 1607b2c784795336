"""Objects in buckets of a real server, whose version really changed, and answers that no real one gives."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import REGION, Seaweed

from archiver.aws import presigned
from archiver.aws.options import AwsOptions
from archiver.freshness.upstream import UpstreamProbe

from .web import Raw, Web, context, hang

PROBE = UpstreamProbe()


def host(endpoint: str) -> str:
    return endpoint.removeprefix("http://")


def aws(endpoint: str | None) -> AwsOptions:
    return AwsOptions(region=REGION, endpoint_url=endpoint)


def captured(address: str, endpoint: str, *, listed: str | None = None, **facts: Any) -> Any:
    world = context(listed or host(endpoint), watch=(address,), **({"aws": aws(endpoint)} | facts))
    return json.loads(json.dumps(PROBE.capture(world)))


def judged(then: Any, endpoint: str, *, listed: str | None = None, **facts: Any) -> Any:
    return PROBE.judge(then, context(listed or host(endpoint), **({"aws": aws(endpoint)} | facts)))


@pytest.fixture
def key(s3_url: str) -> str:
    """A place in the shared bucket for this test alone; the environment has the administrator's keys."""
    return f"{s3_url}/a key with ümlaut?.json"


@pytest.fixture
def put(seaweed: Seaweed, key: str) -> Callable[[bytes], None]:
    bucket, _, name = key.removeprefix("s3://").partition("/")
    return lambda body: seaweed.client().put_object(Bucket=bucket, Key=name, Body=body)


def test_an_object_that_changed_is_stale(seaweed: Seaweed, key: str, put: Callable[[bytes], None]) -> None:
    put(b"one")
    then = captured(key, seaweed.endpoint)
    assert then["resources"][0]["token"].keys() >= {"etag"}
    assert judged(then, seaweed.endpoint).state == "FRESH"
    put(b"two")
    verdict = judged(then, seaweed.endpoint)
    assert (verdict.state, key in verdict.evidence) == ("STALE", True), verdict.evidence
    bucket, _, name = key.removeprefix("s3://").partition("/")
    seaweed.client().delete_object(Bucket=bucket, Key=name)
    verdict = judged(then, seaweed.endpoint)
    assert (verdict.state, "gone" in verdict.evidence) == ("STALE", True)


def test_each_write_of_a_versioned_object_is_another_version(
    seaweed: Seaweed, aws_environment: Callable[[Seaweed, str], None]
) -> None:
    aws_environment(seaweed, "admin")
    bucket = seaweed.make_bucket()
    client = seaweed.client()
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket=bucket, Key="k", Body=b"one")
    then = captured(f"s3://{bucket}/k", seaweed.endpoint)
    assert then["resources"][0]["token"].keys() == {"etag", "version"}
    assert judged(then, seaweed.endpoint).state == "FRESH"
    client.put_object(Bucket=bucket, Key="k", Body=b"one")
    assert "version then" in judged(then, seaweed.endpoint).evidence
    client.delete_object(Bucket=bucket, Key="k")
    assert judged(then, seaweed.endpoint).state == "STALE"


def test_whose_keys_open_nothing_gets_no_verdict(
    seaweed: Seaweed,
    key: str,
    put: Callable[[bytes], None],
    aws_environment: Callable[[Seaweed, str], None],
) -> None:
    put(b"one")
    then = captured(key, seaweed.endpoint)
    aws_environment(seaweed, "stranger")
    verdict = judged(then, seaweed.endpoint)
    assert (verdict.state, "denied" in verdict.evidence) == ("UNKNOWN", True)


def test_another_server_may_be_told(seaweed: Seaweed, key: str, put: Callable[[bytes], None]) -> None:
    put(b"one")
    told = f"{key}?region={REGION}&endpoint={seaweed.endpoint}"
    then = captured(told, seaweed.endpoint, aws=aws("http://127.0.0.1:1"))
    assert judged(then, seaweed.endpoint, aws=aws("http://127.0.0.1:1")).state == "FRESH"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, no_aws: None) -> tuple[str, str, str]:
    """An id, a key and a token of a session, made for this test, which no server knows."""
    made = ("AKIA" + secrets.token_hex(8).upper(), secrets.token_hex(20), secrets.token_hex(300))
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    for name, value in zip(names, made, strict=True):
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (Answer(200, headers={"ETag": '"a"'}), "FRESH", "ETag a as then"),
        (Answer(200, headers={"ETag": '"b"'}), "STALE", "ETag then a, now b"),
        (Answer(200), "UNKNOWN", "neither a version nor an ETag"),
        (Answer(200, headers={"x-amz-version-id": "v"}), "UNKNOWN", "no ETag any more"),
        (Answer(404), "STALE", "gone"),
        (Answer(404, headers={"x-amz-delete-marker": "true"}), "STALE", "deleted"),
        (Answer(403), "UNKNOWN", "denied"),
        (Answer(301, headers={"x-amz-bucket-region": "eu-west-1"}), "UNKNOWN", "another region"),
        (Answer(307, headers={"Location": "http://127.0.0.1:1/"}), "UNKNOWN", "not followed"),
        (Answer(503), "UNKNOWN", "server failed"),
        (Answer(400), "UNKNOWN", "status 400"),
    ],
)
def test_answers(answer: Answer, state: str, words: str, keys: tuple[str, str, str]) -> None:
    then = {"resources": [{"at": "s3://bucket/key", "token": {"etag": "a"}}]}
    with ScriptedServer(answer) as server:
        verdict = judged(then, server.endpoint)
        assert len(server.requests) == 1
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    said = f"{verdict}"
    assert not any(value in said for value in keys)
    assert "X-Amz" not in said


def test_the_credentials_are_used_and_never_told(keys: tuple[str, str, str]) -> None:
    """What goes out is signed: the secret itself goes nowhere."""
    with ScriptedServer(Answer(200, headers={"ETag": '"a"'})) as server:
        then = captured("s3://bucket/key", server.endpoint)
        [asked] = server.requests
    assert keys[0] in asked.path
    assert keys[1] not in f"{asked}{then}"
    assert keys[0] not in json.dumps(then)


def test_a_host_that_is_not_listed_gets_no_connection(keys: tuple[str, str, str]) -> None:
    with Web() as web:
        then = captured("s3://bucket/key", web.url(""), listed="example.com")
        assert web.connections == 0
        assert web.host in then["resources"][0]["not_seen"]
    verdict = judged({"resources": [{"at": "s3://bucket/key", "token": {"etag": "a"}}]}, "", aws=aws(None))
    assert "not contacted" in verdict.evidence
    assert "amazonaws.com" in (verdict.remedy or "")


def test_a_plan_without_network_does_not_even_load_boto3() -> None:
    code = (
        "import sys\nfrom datetime import UTC, datetime\n"
        "from archiver.freshness import Context\nfrom archiver.freshness.upstream import UpstreamProbe\n"
        "now = datetime.now(UTC)\n"
        "row = {'at': 's3://bucket/key', 'token': {'etag': 'a'}}\n"
        "print(UpstreamProbe().judge({'resources': [row]}, Context(now=now, checkpoint_at=now)).evidence)\n"
        "print('boto3' in sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "s3://bucket/key: not contacted: the network is not used\nFalse\n"


def test_credentials_are_not_even_looked_for_unless_the_host_is_listed(
    no_aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for them can ask another host, such as the one that gives a machine its role."""
    with Web() as role:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.url("/role"))
        then = captured("s3://bucket/key", "http://127.0.0.1:9", listed="example.com")
        assert "not contacted" in then["resources"][0]["not_seen"]
        assert role.connections == 0


def test_no_credentials_are_no_verdict(no_aws: None) -> None:
    then = captured("s3://bucket/key", "http://127.0.0.1:9")
    assert "NoCredentialsError" in then["resources"][0]["not_seen"]


def test_a_server_that_hangs_is_given_up_in_time(keys: tuple[str, str, str]) -> None:
    presigned.head_object("bucket", "key", aws("http://127.0.0.1:9"))  # boto3 is loaded
    with Raw(hang) as server:
        then = {"resources": [{"at": "s3://bucket/key", "token": {"etag": "a"}}]}
        verdict = judged(then, f"http://{server.host}", timeout=3.0)
        assert verdict.state == "UNKNOWN"
        assert server.connections == 1
        assert server.closed.wait(15), "the connection is still open"
