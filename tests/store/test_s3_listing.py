"""Lists in the order of names, whatever order the server has; and only what belongs to the store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import REGION, Seaweed

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.errors import LimitExceededError, StoreError
from archiver.store import S3Options
from archiver.store.s3 import S3Store, listing
from archiver.store.s3.address import parse
from archiver.store.s3.listing import in_order

KEYS = st.lists(st.text("ab-./", min_size=1, max_size=8), unique=True, max_size=30)


@given(KEYS)
def test_both_orders_become_one(keys: list[str]) -> None:
    by_key = sorted(f"p/{key}" for key in keys)
    by_folder = sorted(by_key, key=lambda key: key.split("/"))
    for given_keys in (by_key, by_folder):
        assert [key for key, _ in in_order(((key, None) for key in given_keys), 2)] == by_key


def test_little_waits() -> None:
    """Two runs, each with its records, of which the second belongs before the first."""
    keys = [f"records/{run}/{number:03d}" for run in ("r", "r-1", "s", "t") for number in range(100)]
    taken = 0

    def source() -> Iterator[tuple[str, None]]:
        nonlocal taken
        for key in keys:
            taken += 1
            yield key, None

    found = in_order(source(), len("records/"))
    assert next(found)[0] == "records/r-1/000"
    assert taken == 201, "the first two runs and a look at the third"
    assert [key for key, _ in islice(found, 199)] == [*keys[101:200], *keys[:100]]
    assert taken == 201


@pytest.fixture
def paged(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    """A store in a bucket of an imitation, with more than fits on a page."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "7")
    with mock_aws():
        raw = client("s3", AwsOptions(region=REGION))
        raw.create_bucket(Bucket="bucket")
        for number in range(70):
            raw.put_object(Bucket="bucket", Key=f"p/a/{number % 7}.x/{number:05d}", Body=b"")
        for key in ("p/0", "p", "q", "p/b/1", "p/a/", "p/a//x", "p/.hidden", "p/a/ä", "p/z z", "p0/x"):
            raw.put_object(Bucket="bucket", Key=key, Body=b"")
        yield S3Store.at("s3://bucket/p", S3Options(AwsOptions(region=REGION)))


def test_pages_follow_each_other_and_strangers_are_passed_over(paged: S3Store) -> None:
    names = [info.name for info in paged.list()]
    assert names == sorted(names)
    assert len(names) == 72
    assert [name for name in names if not name.startswith("a/")] == ["0", "b/1"]
    assert [info.name for info in paged.list("a/3.x/0000")] == ["a/3.x/00003"]
    assert len(list(paged.list("a/"))) == 70


def test_a_store_without_a_prefix_has_the_whole_bucket(paged: S3Store) -> None:
    whole = S3Store.at("s3://bucket", S3Options(AwsOptions(region=REGION)))
    assert [info.name for info in whole.list() if not info.name.startswith("p/a/")] == [
        *("p", "p/0", "p/b/1", "p0/x", "q")
    ]


def test_runs_of_which_one_names_the_start_of_another(seaweed: Seaweed, s3_url: str) -> None:
    """SeaweedFS keeps keys as files and lists folder by folder; also over the edges of its pages."""
    store = S3Store.at(s3_url, S3Options(AwsOptions(endpoint_url=seaweed.endpoint)))
    names = [f"records/{run}/{number:08d}.age" for run in ("r", "r-1", "r.x", "r0", "s") for number in (1, 2)]
    address, raw = parse(s3_url), seaweed.client()
    for name in reversed(names):
        raw.put_object(Bucket=address.bucket, Key=address.key(name), Body=b"")
    assert [info.name for info in store.list("records/")] == sorted(names)
    assert [info.name for info in store.list()] == sorted(names)
    assert next(iter(store.list())).name == sorted(names)[0]


def test_a_server_without_any_order_is_refused(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    listed = "".join(
        f"<Contents><Key>p/{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
        for key in ("a/2", "c/1", "a/1")
    )
    answer = Answer(200, body=f"<ListBucketResult>{listed}</ListBucketResult>".encode())
    with ScriptedServer(answer) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint)))
        with pytest.raises(StoreError, match="in order"):
            list(store.list("a"))


def test_pages_without_an_end(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setattr(listing, "MAX_EMPTY", 3)
    pages = [
        Answer(
            200,
            body=b"<ListBucketResult><IsTruncated>true</IsTruncated>"
            b"<NextContinuationToken>%d</NextContinuationToken></ListBucketResult>" % number,
        )
        for number in range(9)
    ]
    with ScriptedServer(*pages) as server:
        store = S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint)))
        for prefix in ("a", ""):
            server.script(*pages)
            with pytest.raises(StoreError, match="4 pages of a list in a row"):
                list(store.list(prefix))
            assert len(server.requests) == 4


def test_a_folder_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_WAITING", 100)
    keys = ((f"records/run/{number:09d}", None) for number in range(1_000))
    with pytest.raises(LimitExceededError, match="100 objects of one folder"):
        list(in_order(keys, len("records/")))
    assert next(keys)[0] == "records/run/000000101"
