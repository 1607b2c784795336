"""One store for many threads, processes and identities; what lies with objects, and what the dead left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from servers.proxy import FaultProxy
from servers.seaweed import Seaweed

from archiver.aws.options import AwsOptions
from archiver.errors import DamagedError, ObjectNotFoundError, StoreDeniedError
from archiver.store import S3Options, s3
from archiver.store.options import Checksums
from archiver.store.s3 import ABANDONED, CLASS_TAG, S3Store
from archiver.store.s3.address import parse

from .contract import NAME
from .contract_remote import BIG, PART, blocks

BUNDLE = "bundles/run/00000001-0123456789abcdef.tar.zst.age"


def at(url: str, endpoint: str, *, checksums: Checksums = "full") -> S3Store:
    return S3Store.at(url, S3Options(AwsOptions(endpoint_url=endpoint), checksums, part_size=PART))


@pytest.fixture
def store(seaweed: Seaweed, s3_url: str) -> S3Store:
    return at(s3_url, seaweed.endpoint)


def head(seaweed: Seaweed, url: str, name: str) -> Any:
    address = parse(url)
    return seaweed.client().head_object(Bucket=address.bucket, Key=address.key(name), ChecksumMode="ENABLED")


def test_threads_share_a_store(store: S3Store) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            name = f"records/run/{number:08d}.age"
            store.create(name, [b"%d" % number] * 1000, retention="live")
            assert store.read(name, limit=99_999) == b"%d" % number * 1000
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(list(store.list("records/"))) == 24


def test_a_forked_process_has_connections_of_its_own(s3_url: str, seaweed: Seaweed) -> None:
    with FaultProxy(seaweed.port) as proxy:
        store = at(s3_url, proxy.endpoint)
        store.create("records/run/00000001.age", [b"parent"], retention="live")
        with store.open("records/run/00000001.age") as reader:  # one connection is in use, and one waits
            assert store.read("records/run/00000001.age", limit=9) == b"parent"
            children = [_fork(store, number) for number in range(2, 5)]
            assert reader.read() == b"parent"
            for number in range(5, 15):
                store.create(f"records/run/{number:08d}.age", [b"parent"], retention="live")
            assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
        assert all(request.status and request.status < 500 for request in proxy.requests)
        assert len(list(store.list("records/"))) == 14


def _fork(store: S3Store, number: int) -> int:
    if child := os.fork():
        return child
    code = 1
    try:
        for _ in range(5):
            assert store.read("records/run/00000001.age", limit=9) == b"parent"
        store.create(f"records/run/{number:08d}.age", [b"child"], retention="live")
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize(
    ("checksums", "small", "large"),
    [
        ("full", "ChecksumSHA256", "ChecksumCRC64NVME"),
        ("basic", "ChecksumCRC32", "ChecksumCRC32"),
        ("off", None, None),
    ],
)
def test_the_server_keeps_the_checksums_that_are_configured(
    seaweed: Seaweed, s3_url: str, checksums: Checksums, small: str | None, large: str | None
) -> None:
    store = at(s3_url, seaweed.endpoint, checksums=checksums)
    store.create(NAME, [b"small"], retention="live")
    store.create(BUNDLE, blocks(), retention="live")
    for name, word in ((NAME, small), (BUNDLE, large)):
        kept = {
            key for key in head(seaweed, s3_url, name) if key.startswith("Checksum") and key != "ChecksumType"
        }
        assert kept == ({word} if word else set())
        with store.open(name) as file:
            assert file.read() == (b"small" if name == NAME else BIG)


@pytest.mark.parametrize("size", ["small", "large"])
def test_bytes_that_change_on_the_way_up_are_refused(
    store: S3Store, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """The checksum is that of the bytes before they go; here it is one of others."""
    monkeypatch.setattr("archiver.store.s3.parts.sha256", lambda _: "A" * 43 + "=")
    monkeypatch.setattr("archiver.store.s3.parts.crc64", lambda _: "A" * 11 + "=")
    with pytest.raises(DamagedError, match="did not arrive") as caught:
        store.create(NAME, [b"small"] if size == "small" else blocks(), retention="live")
    assert "store.checksums" in (caught.value.remedy or "")
    assert list(store.list()) == []
    assert list(store.abandoned_uploads(timedelta(seconds=-60))) == []


def test_other_tags_stay(store: S3Store, seaweed: Seaweed, s3_url: str) -> None:
    address = parse(s3_url)
    where = {"Bucket": address.bucket, "Key": address.key(NAME)}
    store.create(NAME, [b"old"], retention="live")
    seaweed.client().put_object_tagging(
        **where,
        Tagging={"TagSet": [{"Key": CLASS_TAG, "Value": "live"}, {"Key": "cost", "Value": "a b+c=d"}]},
    )
    store.retag(NAME, "hold")
    store.replace(NAME, [b"new"], was=store.head(NAME))
    tags = seaweed.client().get_object_tagging(**where)["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {CLASS_TAG: "hold", "cost": "a b+c=d"}
    seaweed.client().put_object_tagging(
        **where, Tagging={"TagSet": [{"Key": CLASS_TAG, "Value": "of later"}]}
    )
    assert store.head(NAME).retention is None


def test_a_writer_that_can_only_create(
    store: S3Store, seaweed: Seaweed, s3_url: str, aws_environment: Callable[..., None]
) -> None:
    aws_environment(seaweed, "creator")
    store.create(NAME, [b"x"], retention="hold")
    store.create(BUNDLE, blocks(), retention="hold")
    for call in (lambda: store.head(NAME), lambda: list(store.list()), lambda: store.delete(NAME)):
        with pytest.raises(StoreDeniedError):
            call()
    aws_environment(seaweed, "admin")
    again = at(s3_url, seaweed.endpoint)
    assert (again.head(NAME).retention, again.head(BUNDLE).retention) == ("hold", "hold")


def begin_upload(seaweed: Seaweed, url: str, name: str) -> str:
    address = parse(url)
    client = seaweed.client()
    where = {"Bucket": address.bucket, "Key": address.key(name)}
    upload = client.create_multipart_upload(**where)["UploadId"]
    client.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"half")
    return str(upload)


def test_what_killed_writers_left_is_tidied_at_the_next_write(
    store: S3Store, seaweed: Seaweed, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_upload(seaweed, s3_url, BUNDLE)
    begin_upload(seaweed, s3_url, "strangers/backup")
    begin_upload(seaweed, s3_url.replace("/store", "/other"), BUNDLE)
    assert {upload.name for upload in store.abandoned_uploads(timedelta(seconds=-60))} == {
        BUNDLE,
        "strangers/backup",
    }
    assert list(store.abandoned_uploads()) == [], "they are young"
    store.create("records/run/00000001.age", [b"x"], retention="live")
    assert len(list(store.abandoned_uploads(timedelta(seconds=-60)))) == 2

    monkeypatch.setattr(s3, "ABANDONED", timedelta(seconds=-60))
    store.create("records/run/00000002.age", [b"x"], retention="live")
    assert len(list(store.abandoned_uploads(timedelta(seconds=-60)))) == 2, "once a process is enough"
    again = at(s3_url, seaweed.endpoint)
    again.create("records/run/00000003.age", [b"x"], retention="live")
    assert [upload.name for upload in again.abandoned_uploads(timedelta(seconds=-60))] == ["strangers/backup"]
    (left,) = at(s3_url.replace("/store", "/other"), seaweed.endpoint).abandoned_uploads(
        timedelta(seconds=-60)
    )
    assert left.name == BUNDLE
    assert again.abort_upload(next(again.abandoned_uploads(timedelta(seconds=-60))))
    assert list(again.abandoned_uploads(timedelta(seconds=-60))) == []
    assert timedelta(hours=24) == ABANDONED


def test_what_is_deleted_is_gone_for_every_process(store: S3Store, s3_url: str, seaweed: Seaweed) -> None:
    store.create(NAME, [b"x"], retention="live")
    at(s3_url, seaweed.endpoint).delete(NAME)
    with pytest.raises(ObjectNotFoundError):
        store.open(NAME)
