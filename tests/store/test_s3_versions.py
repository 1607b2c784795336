"""Versions of objects and the markers that hide them: imitated, on a real server, through decorators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import REGION, Seaweed

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.errors import (
    LimitExceededError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
    StoreUnreachableError,
)
from archiver.store import ObjectVersion, S3Options, Versioned
from archiver.store.base import ObjectStore
from archiver.store.counted import counted
from archiver.store.limited import limited
from archiver.store.local import LocalStore
from archiver.store.retrying import retrying
from archiver.store.s3 import S3Store, versions

from .contract import NAME

Wrap = Callable[[S3Store], ObjectStore]
WRAPS: dict[str, Wrap] = {
    "bare": lambda store: store,
    "counted": counted,
    "limited": lambda store: limited(store, 1 << 20),
    "retrying": lambda store: retrying(store, attempts=3, patience=10),
    "all": lambda store: counted(retrying(limited(store, 1 << 20), attempts=3, patience=10)),
}
OTHER = "records/run/00000002.age"


class Bucket:
    """A bucket with versions, and what somebody does to it who is not this program."""

    def __init__(self, raw: Any, bucket: str, prefix: str) -> None:
        self.raw, self.bucket, self.prefix = raw, bucket, prefix

    def put(self, name: str, body: bytes) -> str:
        put = self.raw.put_object(Bucket=self.bucket, Key=f"{self.prefix}/{name}", Body=body)
        return str(put["VersionId"])

    def hide(self, name: str) -> str:
        return str(self.raw.delete_object(Bucket=self.bucket, Key=f"{self.prefix}/{name}")["VersionId"])


@pytest.fixture
def moto(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "3")
    with mock_aws():
        raw = client("s3", AwsOptions(region=REGION))
        raw.create_bucket(Bucket="bucket")
        raw.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        yield Bucket(raw, "bucket", "p")


@pytest.fixture(params=WRAPS.values(), ids=WRAPS)
def store(request: pytest.FixtureRequest, moto: Bucket) -> Versioned:
    wrap: Wrap = request.param
    made = wrap(S3Store.at("s3://bucket/p", S3Options(AwsOptions(region=REGION))))
    assert isinstance(made, Versioned)
    return made


def told(found: Iterator[ObjectVersion]) -> list[tuple[str, int, bool, bool]]:
    return [(one.name, one.size, one.deleted, one.latest) for one in found]


def test_versions_come_by_name_and_the_newest_first(store: Versioned, moto: Bucket) -> None:
    ids = [moto.put(NAME, b"x" * size) for size in (1, 2, 3, 4, 5)]
    moto.put(OTHER, b"first")
    moto.hide(OTHER)
    moto.put("records/run-1/00000001.age", b"another run")
    found = list(store.versions(NAME.rpartition("/")[0] + "/"))
    own = [one for one in found if one.name == NAME]
    assert [one.version for one in own] == ids[::-1]
    assert [(one.size, one.latest) for one in own] == [
        (5, True),
        (4, False),
        (3, False),
        (2, False),
        (1, False),
    ]
    assert len({one.etag for one in own}) == 5
    assert all(one.modified.utcoffset() is not None for one in own)
    hidden = [one for one in store.versions("records/run/") if one.name == OTHER]
    assert told(iter(hidden)) == [(OTHER, 0, True, True), (OTHER, 5, False, False)]
    names = [one.name for one in store.versions()]
    assert names == sorted(names)


def test_a_version_is_read_whatever_lies_before_it(store: Versioned, moto: Bucket) -> None:
    first = moto.put(NAME, b"0123456789")
    moto.put(NAME, b"another")
    marker = moto.hide(NAME)
    assert store.read_version(NAME, first, limit=10) == b"0123456789"
    with store.open_version(NAME, first, offset=4) as file:
        assert (file.read(2), file.read()) == (b"45", b"6789")
    with store.open_version(NAME, first, offset=11) as file:
        assert file.read() == b""
    with pytest.raises(LimitExceededError, match="9 bytes"):
        store.read_version(NAME, first, limit=9)
    with pytest.raises(ObjectNotFoundError, match=OTHER):
        store.read_version(OTHER, first, limit=9)
    with pytest.raises(StoreError):
        store.read_version(NAME, marker, limit=9)


def test_a_bucket_without_versions_gives_what_is_there(store: Versioned, moto: Bucket) -> None:
    moto.raw.create_bucket(Bucket="plain")
    plain = S3Store.at("s3://plain/p", S3Options(AwsOptions(region=REGION)))
    plain.create(NAME, [b"x"], retention="live")
    plain.create(OTHER, [b"yy"], retention="live")
    plain.delete(OTHER)
    (one,) = plain.versions("")
    assert (one.name, one.size, one.deleted, one.latest) == (NAME, 1, False, True)
    assert plain.read_version(NAME, one.version, limit=9) == b"x"


def test_a_folder_keeps_no_versions(root: Any) -> None:
    folder = LocalStore(root)
    for store in (folder, counted(folder), limited(folder, 9), retrying(folder, attempts=2, patience=1)):
        assert not isinstance(store, Versioned)


def test_keys_of_strangers_are_passed_over(store: Versioned, moto: Bucket) -> None:
    for name in (NAME, ".hidden", "a//b", "ä"):
        moto.put(name, b"x")
    moto.raw.put_object(Bucket="bucket", Key="p2/x", Body=b"")
    assert [one.name for one in store.versions()] == [NAME]


def test_a_large_version_meets_the_limit_of_all_objects(moto: Bucket) -> None:
    small = limited(S3Store.at("s3://bucket/p", S3Options(AwsOptions(region=REGION))), 4)
    assert isinstance(small, Versioned)
    first = moto.put(NAME, b"12345")
    with pytest.raises(LimitExceededError), small.open_version(NAME, first) as file:
        file.read()
    with pytest.raises(LimitExceededError):
        small.read_version(NAME, first, limit=1 << 20)


def test_calls_are_counted(moto: Bucket) -> None:
    store = counted(S3Store.at("s3://bucket/p", S3Options(AwsOptions(region=REGION))))
    assert isinstance(store, Versioned)
    first = moto.put(NAME, b"12345")
    list(store.versions())
    store.read_version(NAME, first, limit=9)
    assert (store.counts["versions"].calls, store.counts["read_version"].bytes) == (1, 5)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(403, body=b"<Error><Code>AccessDenied</Code></Error>"), StoreDeniedError),
        (Answer(501, body=b"<Error><Code>NotImplemented</Code></Error>"), StoreError),
        (Answer(200, body=b"<ListBucketResult></ListBucketResult>"), StoreError),
        (Answer(200, body=b"<html></html>"), StoreError),
        (Answer(200, body=b""), StoreError),
        (
            Answer(200, body=b"<ListVersionsResult><Version><Key>p/a</Key></Version></ListVersionsResult>"),
            StoreError,
        ),
    ],
)
def test_an_answer_that_is_no_list_of_versions_is_not_taken_for_an_empty_one(
    no_aws: None, monkeypatch: pytest.MonkeyPatch, answer: Answer, kind: type[StoreError]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    with ScriptedServer(answer) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint, attempts=1)))
        with pytest.raises(kind) as caught:
            list(store.versions("records/run/"))
    assert not isinstance(caught.value, StoreUnreachableError)
    if kind is StoreDeniedError:
        assert "s3:ListBucketVersions" in str(caught.value)


def page(keys: tuple[bytes, ...], *, more: bool = False) -> Answer:
    """A page of a list with one version of each key."""
    listed = b"".join(
        b"<Version><Key>p/records/run/%s</Key><VersionId>v</VersionId><IsLatest>true</IsLatest>"
        b"<LastModified>2026-01-01T00:00:00Z</LastModified><Size>1</Size></Version>" % key
        for key in keys
    )
    end = b"<IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>" if more else b""
    return Answer(200, body=b"<ListVersionsResult>%s%s</ListVersionsResult>" % (listed, end))


def test_a_server_without_any_order_is_refused(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    with ScriptedServer(page((b"c/1", b"e/1"), more=True), page((b"a/1",))) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint, attempts=1)))
        with pytest.raises(StoreError, match="in order"):
            list(store.versions("records/run/"))
    with ScriptedServer(page((b"c/1",), more=True), page((b"c/1", b"e/1"))) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint, attempts=1)))
        names = [version.name for version in store.versions("records/run/")]
    assert names == ["records/run/c/1", "records/run/c/1", "records/run/e/1"]


def test_pages_without_an_end(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setattr(versions, "MAX_EMPTY", 3)
    pages = [
        Answer(
            200,
            body=b"<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>%d</NextKeyMarker>"
            b"</ListVersionsResult>" % number,
        )
        for number in range(9)
    ]
    with ScriptedServer(*pages) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint, attempts=1)))
        with pytest.raises(StoreError, match="name nothing"):
            list(store.versions("records/run/"))


def test_on_a_real_server(seaweed: Seaweed, s3_url: str) -> None:
    raw = seaweed.client()
    name = seaweed.make_bucket()
    try:
        raw.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    except raw.exceptions.ClientError as error:
        pytest.skip(f"this server keeps no versions: {error}")
    bucket = Bucket(raw, name, "p")
    ids = [bucket.put(NAME, b"first"), bucket.put(NAME, b"second")]
    bucket.put(OTHER, b"x")
    bucket.hide(OTHER)
    store = S3Store.at(f"s3://{name}/p", S3Options(AwsOptions(endpoint_url=seaweed.endpoint)))
    found = list(store.versions("records/run/"))
    own = [one for one in found if one.name == NAME]
    assert {one.version for one in own} == set(ids)
    assert [store.read_version(NAME, one.version, limit=9) for one in own] == [b"second", b"first"]
    assert [(one.deleted, one.latest) for one in found if one.name == OTHER] == [(True, True), (False, False)]
