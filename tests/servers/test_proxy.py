"""The proxy does what a fault says, and nothing where none is said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

BODY = bytes(range(256)) * 1200


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


@pytest.fixture
def once(seaweed: Seaweed, proxy: FaultProxy) -> Any:
    """A client that tries each request once."""
    client = seaweed.client(
        endpoint=proxy.endpoint, retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=1
    )
    yield client
    client.close()


@pytest.fixture
def key(s3_url: str) -> str:
    return s3_url.split("/", 3)[3]


def test_without_faults_it_is_not_seen(once: Any, bucket: str, key: str, proxy: FaultProxy) -> None:
    once.put_object(Bucket=bucket, Key=key, Body=BODY)
    assert once.get_object(Bucket=bucket, Key=key)["Body"].read() == BODY
    assert once.head_object(Bucket=bucket, Key=key)["ContentLength"] == len(BODY)
    once.delete_object(Bucket=bucket, Key=key)
    methods = [(request.number, request.method, request.status) for request in proxy.requests]
    assert methods == [(1, "PUT", 200), (2, "GET", 200), (3, "HEAD", 200), (4, "DELETE", 204)]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("refuse"),
        Fault("reset before"),
        Fault("reset request", after=1000),
        Fault("hang"),
    ],
    ids=lambda fault: fault.kind,
)
def test_what_the_server_never_did(
    fault: Fault, once: Any, bucket: str, key: str, proxy: FaultProxy, seaweed: Seaweed
) -> None:
    seen: list[str] = []
    fault.do = lambda request: seen.append(request.method)
    proxy.script(fault)
    with pytest.raises((ClientError, BotoCoreError)):
        once.put_object(Bucket=bucket, Key=key, Body=BODY)
    assert seen == ["PUT"]
    assert proxy.requests[0].fault == fault.kind
    with pytest.raises(ClientError):
        seaweed.client().head_object(Bucket=bucket, Key=key)
    once.put_object(Bucket=bucket, Key=key, Body=BODY)


def test_a_dropped_answer(once: Any, bucket: str, key: str, proxy: FaultProxy) -> None:
    proxy.script(Fault("drop", method="PUT"))
    with pytest.raises(BotoCoreError):
        once.put_object(Bucket=bucket, Key=key, Body=BODY)
    assert proxy.requests[0].status == 200
    assert once.head_object(Bucket=bucket, Key=key)["ContentLength"] == len(BODY)


@pytest.mark.parametrize("kind", ["reset response", "hang response"])
def test_a_broken_answer(kind: Any, once: Any, bucket: str, key: str, proxy: FaultProxy) -> None:
    once.put_object(Bucket=bucket, Key=key, Body=BODY)
    proxy.script(Fault(kind, after=5000))
    body = once.get_object(Bucket=bucket, Key=key)["Body"]
    with pytest.raises((BotoCoreError, OSError)):
        body.read()
    body.close()
    assert once.get_object(Bucket=bucket, Key=key)["Body"].read() == BODY


def test_a_duplicate(once: Any, bucket: str, key: str, proxy: FaultProxy) -> None:
    proxy.script(Fault("duplicate"))
    with pytest.raises(ClientError, match="PreconditionFailed"):
        once.put_object(Bucket=bucket, Key=key, Body=BODY, IfNoneMatch="*")
    assert once.get_object(Bucket=bucket, Key=key)["Body"].read() == BODY


def test_a_slow_link(once: Any, bucket: str, key: str, proxy: FaultProxy) -> None:
    proxy.script(Fault("pass", times=None, slow=len(BODY) * 2, wait=0.1))
    start = time.monotonic()
    once.put_object(Bucket=bucket, Key=key, Body=BODY)
    assert once.get_object(Bucket=bucket, Key=key)["Body"].read() == BODY
    assert time.monotonic() - start > 1.1
