"""Objects on their way down: broken connections, other versions, wrong bytes, limits."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy, Request
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import Seaweed

from archiver.aws.door import crc64nvme
from archiver.aws.options import AwsOptions
from archiver.errors import (
    DamagedError,
    LimitExceededError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)
from archiver.store import S3Options
from archiver.store.options import Checksums
from archiver.store.s3 import S3Store, download
from archiver.store.s3.address import parse

from .contract import NAME
from .contract_remote import BIG, PART, blocks


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


def at(
    url: str, endpoint: str, *, attempts: int = 4, checksums: Checksums = "full", timeout: float = 10
) -> S3Store:
    aws = AwsOptions(endpoint_url=endpoint, attempts=attempts, timeout=timeout)
    return S3Store.at(url, S3Options(aws, checksums, part_size=PART))


@pytest.fixture
def big(s3_url: str, seaweed: Seaweed) -> str:
    """A store with one object of several parts."""
    at(s3_url, seaweed.endpoint).create(NAME, blocks(), retention="live")
    return s3_url


def ranges(proxy: FaultProxy) -> list[str | None]:
    return [request.headers.get("range") for request in proxy.requests if request.method == "GET"]


def test_a_reader_goes_on_where_the_connection_broke(big: str, proxy: FaultProxy) -> None:
    proxy.script(
        Fault("reset response", at={1}, after=1_000_000),
        Fault("reset response", at={2}, after=3_000_000),
        Fault("hang response", at={3}, after=100),
    )
    store = at(big, proxy.endpoint, timeout=1)
    with store.open(NAME) as file:
        assert file.read() == BIG
    begins = [int((word or "bytes=0-")[6:-1]) for word in ranges(proxy)]
    assert begins == sorted(begins)
    assert 0 < begins[2] <= 4_000_000, "it does not begin again, and leaves nothing out"
    etags = {request.headers.get("if-match") for request in proxy.requests[1:]}
    assert etags == {store.head(NAME).etag}


def test_a_reader_gives_up_where_nothing_comes_any_more(big: str, proxy: FaultProxy) -> None:
    proxy.script(Fault("reset response", times=None, after=0))
    with (
        at(big, proxy.endpoint, attempts=2).open(NAME) as file,
        pytest.raises(StoreUnreachableError, match=NAME),
    ):
        file.read()


def test_another_version_is_not_mixed_in(big: str, proxy: FaultProxy, seaweed: Seaweed) -> None:
    address = parse(big)

    def overwrite(_: Request) -> None:
        seaweed.client().put_object(Bucket=address.bucket, Key=address.key(NAME), Body=BIG[::-1])

    proxy.script(Fault("reset response", after=1_000_000, do=overwrite))
    with (
        at(big, proxy.endpoint).open(NAME) as file,
        pytest.raises(StoreError, match="changed while it was read"),
    ):
        file.read()


def test_an_object_that_is_gone_in_the_middle(big: str, proxy: FaultProxy, seaweed: Seaweed) -> None:
    address = parse(big)

    def delete(_: Request) -> None:
        seaweed.client().delete_object(Bucket=address.bucket, Key=address.key(NAME))

    proxy.script(Fault("reset response", after=1_000_000, do=delete))
    with (
        at(big, proxy.endpoint).open(NAME) as file,
        pytest.raises(StoreError, match="changed while it was read"),
    ):
        file.read()


def test_a_download_through_broken_connections(
    big: str, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RANGE", 1 << 20)
    proxy.script(Fault("reset response", at={1, 4, 6}, times=3, after=300_000), Fault("refuse", at={3}))
    at(big, proxy.endpoint).download(NAME, tmp_path / "file", limit=len(BIG))
    assert (tmp_path / "file").read_bytes() == BIG
    asked = [word for word in ranges(proxy) if word]
    assert {
        f"bytes={start}-{min(start + (1 << 20), len(BIG)) - 1}" for start in range(1 << 20, len(BIG), 1 << 20)
    } < set(asked)


@pytest.mark.parametrize("kind", ["reset before", "reset response"])
def test_a_download_of_what_changes_leaves_no_file(
    kind: Any, big: str, proxy: FaultProxy, seaweed: Seaweed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RANGE", 1 << 20)
    address = parse(big)

    def overwrite(_: Request) -> None:
        seaweed.client().put_object(Bucket=address.bucket, Key=address.key(NAME), Body=BIG[::-1])

    proxy.script(Fault(kind, at={2}, after=1000, do=overwrite))
    with pytest.raises(StoreError, match="changed while it was read"):
        at(big, proxy.endpoint).download(NAME, tmp_path / "file", limit=len(BIG))
    assert list(tmp_path.glob("file*")) == []


def test_a_download_onto_a_full_disk(big: str, seaweed: Seaweed, small_disk: Path) -> None:
    with pytest.raises(StoreFullError, match="cannot be written") as caught:
        at(big, seaweed.endpoint).download(NAME, small_disk / "file", limit=len(BIG))
    assert "TMPDIR" in (caught.value.remedy or "")
    assert list(small_disk.iterdir()) == []


def test_of_an_object_that_is_too_large_little_is_fetched(
    big: str, proxy: FaultProxy, tmp_path: Path
) -> None:
    proxy.script()
    store = at(big, proxy.endpoint)
    with pytest.raises(LimitExceededError):
        store.read(NAME, limit=1000)
    with pytest.raises(LimitExceededError):
        store.download(NAME, tmp_path / "file", limit=len(BIG) - 1)
    assert len(proxy.requests) == 2


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


GOOD = {
    "sha256": b64(hashlib.sha256(b"body").digest()),
    "crc64nvme": b64(crc64nvme(b"body").to_bytes(8, "big")),
    "crc32": b64(zlib.crc32(b"body").to_bytes(4, "big")),
}


@pytest.fixture
def scripted(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    with ScriptedServer(Answer(500)) as made:
        yield made


def body(data: bytes, status: int = 200, **headers: str) -> Answer:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, body=data, headers={"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"} | given)


@pytest.mark.parametrize("kind", GOOD)
def test_bytes_that_are_not_those_of_the_checksum(scripted: ScriptedServer, kind: str) -> None:
    store = at("s3://bucket/p", scripted.endpoint)
    headers = {f"x_amz_checksum_{kind}": GOOD[kind]}
    scripted.script(body(b"body", **headers), body(b"bodz", **headers))
    assert store.read(NAME, limit=9) == b"body"
    assert scripted.requests[0].headers["x-amz-checksum-mode"] == "ENABLED"
    with pytest.raises(DamagedError, match="checksum") as caught:
        store.read(NAME, limit=9)
    assert caught.value.remedy
    with store.open(NAME) as file, pytest.raises(DamagedError, match=NAME):
        file.read()
    with store.open(NAME) as file:
        assert file.read(2) == b"bo"  # who does not read to the end cannot know


def test_a_checksum_of_parts_is_not_compared(scripted: ScriptedServer) -> None:
    store = at("s3://bucket/p", scripted.endpoint)
    for headers in (
        {"x_amz_checksum_crc32": f"{GOOD['sha256']}-3"},
        {"x_amz_checksum_crc32": GOOD["sha256"], "x_amz_checksum_type": "COMPOSITE"},
    ):
        scripted.script(body(b"body", **headers))
        assert store.read(NAME, limit=9) == b"body"


def test_no_checksum_is_asked_of_servers_that_know_none(scripted: ScriptedServer) -> None:
    scripted.script(body(b"body"))
    assert at("s3://bucket/p", scripted.endpoint, checksums="off").read(NAME, limit=9) == b"body"
    assert "x-amz-checksum-mode" not in scripted.requests[0].headers


def test_a_server_without_ranges_is_told_from_one_with(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.script(body(b"0123456789"))
    store = at("s3://bucket/p", scripted.endpoint)
    with pytest.raises(StoreError, match="part of object"):
        store.open(NAME, offset=3)
    with pytest.raises(StoreError, match="part of object"):
        store.download(NAME, tmp_path / "file", limit=99)


def test_a_server_that_does_not_say_how_much_there_is(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.script(body(b"0123", 206, Content_Range="bytes 0-3/*"))
    with pytest.raises(StoreError, match="how large"):
        at("s3://bucket/p", scripted.endpoint).download(NAME, tmp_path / "file", limit=99)


def test_a_server_that_gives_less_than_it_says(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.script(body(b"0123", 206, Content_Range="bytes 0-3/9"))
    with pytest.raises(StoreError, match="less of the object"):
        at("s3://bucket/p", scripted.endpoint).download(NAME, tmp_path / "file", limit=99)
    assert list(tmp_path.iterdir()) == []
