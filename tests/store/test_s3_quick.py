"""Small objects read without boto3's model: the same bytes and errors, and boto3 where it matters."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator

import pytest
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import Seaweed
from servers.sent import counted

from archiver.aws.options import AwsOptions
from archiver.errors import DamagedError, LimitExceededError, ObjectNotFoundError, StoreUnreachableError
from archiver.store import S3Options
from archiver.store.options import Checksums
from archiver.store.s3 import S3Store, quick

SIZES = (0, 1, 1000, 1 << 20)


def at(url: str, endpoint: str, *, checksums: Checksums = "full") -> S3Store:
    aws = AwsOptions(region="us-east-1", endpoint_url=endpoint, attempts=2, timeout=5)
    return S3Store.at(url, S3Options(aws, checksums))


@pytest.fixture
def store(s3_url: str, seaweed: Seaweed) -> S3Store:
    made = at(s3_url, seaweed.endpoint)
    for size in SIZES:
        made.create(f"records/r/{size}", [bytes(size)], retention="live")
    return made


@pytest.fixture
def in_boto3s_way(store: S3Store) -> list[str]:
    """The GETs that go through boto3's model, from now on; the first has been made."""
    store.read("records/r/1", limit=1)
    seen: list[str] = []
    client, _ = store._s3._of_this_process(store._s3.request("get_object", None))
    client.meta.events.register("before-call.s3.GetObject", lambda **_: seen.append("GET"))
    return seen


def test_the_same_bytes_in_one_request(store: S3Store, in_boto3s_way: list[str]) -> None:
    for size in SIZES:
        with counted() as sent:
            assert store.read(f"records/r/{size}", limit=size) == bytes(size)
        assert len(sent) == 1
    assert in_boto3s_way == []


def test_connections_are_used_again(store: S3Store, in_boto3s_way: list[str]) -> None:
    _, reads = store._s3._of_this_process(store._s3.request("get_object", None))
    session = reads._client._endpoint.http_session
    (pool,) = [session._manager.pools[key] for key in session._manager.pools.keys()]  # noqa: SIM118 - no dictionary
    before = pool.num_connections
    for _ in range(20):
        store.read("records/r/1000", limit=1000)
    assert pool.num_connections == before


def test_errors_are_those_of_boto3s_way(store: S3Store, in_boto3s_way: list[str]) -> None:
    with pytest.raises(ObjectNotFoundError, match="records/r/none"):
        store.read("records/r/none", limit=10)
    with pytest.raises(LimitExceededError, match="records/r/1000"):
        store.read("records/r/1000", limit=999)
    assert len(in_boto3s_way) == 2


def test_a_child_reads_over_connections_of_its_own(store: S3Store, in_boto3s_way: list[str]) -> None:
    child = os.fork()
    if child == 0:
        good = [store.read("records/r/1000", limit=1000) == bytes(1000) for _ in range(3)]
        os._exit(0 if all(good) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.read("records/r/1000", limit=1000) == bytes(1000)


def test_keys_that_have_to_be_quoted(seaweed: Seaweed, s3_url: str) -> None:
    bucket = s3_url.removeprefix("s3://").partition("/")[0]
    store = at(f"s3://{bucket}/{secrets.token_hex(4)}/a+b=c(d)'@,!*/e", seaweed.endpoint)
    store.create("records/~2Fr/x", [b"x"], retention="live")
    with counted() as sent:
        assert [store.read("records/~2Fr/x", limit=1) for _ in range(3)] == [b"x"] * 3
    assert len(sent) == 3


GOOD = Answer(200, headers={"Last-Modified": "Sun, 29 Nov 2026 20:34:18 GMT", "ETag": '"e"'}, body=b"good")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    for name, value in (("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "S")):
        monkeypatch.setenv(name, value)
    with ScriptedServer(GOOD) as server:
        yield server


def with_sum(body: bytes, checksum: str) -> Answer:
    return Answer(200, headers={**GOOD.headers, "x-amz-checksum-crc32": checksum}, body=body)


def test_what_goes_wrong_is_left_to_boto3_for_a_while(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at("s3://bucket/p", server.endpoint)
    assert store.read("a", limit=9) == b"good"
    server.script(Answer(500, "InternalError"), GOOD)
    assert store.read("b", limit=9) == b"good"
    assert [asked.path for asked in server.requests] == ["/bucket/p/b"] * 2
    agents = {asked.headers["user-agent"] for asked in server.requests}
    assert len(agents) == 1
    now = time.monotonic
    server.script(Answer(500, "InternalError"))
    with pytest.raises(StoreUnreachableError):
        store.read("c", limit=9)
    assert len(server.requests) == 2, "boto3's two attempts, and no other before them"
    monkeypatch.setattr(quick.time, "monotonic", lambda: now() + quick.REST)
    server.script(Answer(403, "SignatureDoesNotMatch"), GOOD)
    assert store.read("d", limit=9) == b"good"
    assert len(server.requests) == 2


def test_a_body_that_is_not_that_of_its_checksum(server: ScriptedServer) -> None:
    store = at("s3://bucket/p", server.endpoint)
    sound = with_sum(b"good", "bIROkg==")
    server.script(sound)
    store.read("a", limit=9)
    wrong = with_sum(b"evil", "bIROkg==")
    server.script(wrong, sound)
    assert store.read("b", limit=9) == b"good"
    server.script(wrong)
    with pytest.raises(DamagedError, match="checksum"):
        store.read("c", limit=9)


def test_another_boto3_than_this_was_made_for(store: S3Store, in_boto3s_way: list[str]) -> None:
    _, reads = store._s3._of_this_process(store._s3.request("get_object", None))

    class Other:
        meta = reads._client.meta

    reads._client = Other()
    assert [store.read("records/r/1000", limit=1000) for _ in range(2)] == [bytes(1000)] * 2
    assert len(in_boto3s_way) == 2
