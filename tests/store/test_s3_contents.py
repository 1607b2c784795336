"""Objects taken out of a list are those that boto3 finds in it; what is no list is left to boto3."""

from __future__ import annotations

from typing import Any

import pytest
from servers.seaweed import Seaweed

from archiver.errors import StoreError
from archiver.store.s3 import contents

KEYS = ["a", "b/c d", "b/e&f", "b/<g>", "b/h+i%20j", "é/k", "é/\U0001f600", 'l"m', "n'o"]
FIELDS = ("Key", "Size", "LastModified", "ETag")


def test_the_objects_that_boto3_finds(seaweed: Seaweed) -> None:
    bucket = seaweed.make_bucket()
    plain, quick = seaweed.client(), seaweed.client()
    quick.meta.events.register(contents.EVENT, contents.take_out)
    for size, key in enumerate(KEYS):
        plain.put_object(Bucket=bucket, Key=key, Body=bytes(size))
    options: tuple[dict[str, Any], ...] = (
        {},
        {"Delimiter": "/"},
        {"Prefix": "b/"},
        {"Prefix": "none"},
        {"MaxKeys": 2},
    )
    for asked in options:
        expected = plain.list_objects_v2(Bucket=bucket, **asked)
        found = quick.list_objects_v2(Bucket=bucket, **asked)
        objects = contents.objects_of(found)
        assert len(objects) == len(expected.get("Contents", ()))
        for one, other in zip(objects, expected.get("Contents", ()), strict=True):
            assert one == {name: other[name] for name in FIELDS}
        rest = {name: found.get(name) for name in expected if name not in ("Contents", "ResponseMetadata")}
        assert rest == {name: expected[name] for name in rest}
    pages = quick.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
    assert sorted(item["Key"] for page in pages for item in contents.objects_of(page)) == sorted(KEYS)


ITEM = (
    "<Contents><Key>k</Key><LastModified>{}</LastModified><ETag>&quot;e&quot;</ETag><Size>{}</Size>"
    "</Contents>"
)
TIME = "2026-11-29T20:34:18.000Z"
SPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@pytest.mark.parametrize("space", ["", SPACE])
def test_with_and_without_a_name_space(space: str) -> None:
    body = f"<ListBucketResult{space}><Name>b</Name>{ITEM.format(TIME, 5)}</ListBucketResult>".encode()
    answer: dict[str, Any] = {"body": body, "status_code": 200}
    found: dict[str, Any] = {}
    contents.take_out(answer, found)
    (item,) = contents.objects_of(found)
    assert (item["Key"], item["Size"], item["ETag"]) == ("k", 5, '"e"')
    assert b"Name>b<" in answer["body"]
    assert b"Contents" not in answer["body"]


@pytest.mark.parametrize(
    "body",
    [
        b"busy",
        b"<Error><Code>SlowDown</Code></Error>",
        f"<ListBucketResult>{ITEM.format('yesterday', 5)}</ListBucketResult>".encode(),
        f"<ListBucketResult>{ITEM.format(TIME, 'big')}</ListBucketResult>".encode(),
        b"<ListBucketResult><Contents/></ListBucketResult>",
        b"<ListBucketResult><Name>b</Name></ListBucketResult>",
    ],
)
def test_what_names_no_objects_is_left_as_it_is(body: bytes) -> None:
    answer, found = {"body": body, "status_code": 200}, dict[str, Any]()
    contents.take_out(answer, found)
    assert (answer, found) == ({"body": body, "status_code": 200}, {})


OTHERS = [b"", b" \n", b"<html><body>Log in</body></html>", b"<ListBuckets/>"]


@pytest.mark.parametrize("body", OTHERS)
def test_what_is_no_list_is_not_taken_for_an_empty_one(body: bytes) -> None:
    with pytest.raises(StoreError, match="a list of objects cannot be understood"):
        contents.take_out({"body": body, "status_code": 200}, {})
    contents.take_out({"body": body, "status_code": 503}, {})
