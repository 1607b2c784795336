"""Addresses of stores in buckets, and the keys of their objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ConfigError, InvalidNameError
from archiver.store import S3Options
from archiver.store.s3 import S3Store
from archiver.store.s3.address import MAX_KEY, MAX_PREFIX, parse

GOOD = {
    "s3://bucket": ("bucket", "", "s3://bucket"),
    "s3://bucket/": ("bucket", "", "s3://bucket"),
    "S3://bucket/a": ("bucket", "a/", "s3://bucket/a"),
    "s3://my.bucket-7/a/b/": ("my.bucket-7", "a/b/", "s3://my.bucket-7/a/b"),
    "s3://abc/a b".replace(" ", "_"): ("abc", "a_b/", "s3://abc/a_b"),
    "s3://abc/.hidden/v1.2/(x)!*'+=@,": (
        "abc",
        ".hidden/v1.2/(x)!*'+=@,/",
        "s3://abc/.hidden/v1.2/(x)!*'+=@,",
    ),
    f"s3://{'b' * 63}/p": ("b" * 63, "p/", f"s3://{'b' * 63}/p"),
    "s3://point-abcdef-s3alias/p": ("point-abcdef-s3alias", "p/", "s3://point-abcdef-s3alias/p"),
}
BAD = [
    *("", "bucket", "s3:/bucket", "s3:bucket", "s3://", "s3:///prefix", "https://bucket/p", "file:///bucket"),
    *("s3://ab", f"s3://{'b' * 64}", "s3://Bucket", "s3://buck_et", "s3://-bucket", "s3://bucket-", "s3://.bucket"),
    *("s3://bu..cket", "s3://bu.-cket", "s3://192.168.5.4", "s3://xn--bucket", "s3://bucket--x-s3/p", "s3://bücket"),
    *("s3://bucket//", "s3://bucket//p", "s3://bucket/p//q", "s3://bucket/p//", "s3://bucket/..", "s3://bucket/../p"),
    *("s3://bucket/p/../q", "s3://bucket/./p", "s3://bucket/p/...", "s3://bucket/p\n", "s3://bucket/\0", "s3://bucket\n"),
    *("s3://bucket/p?q", "s3://bucket/p#q", "s3://bucket?x=y", "s3://bucket/a b", "s3://bucket/%2e%2e", "s3://bucket/ä"),
    *("s3://bucket/a\\b", "s3://bucket /p", f"s3://bucket/{'p' * (MAX_PREFIX + 1)}", "s3://bucket/\u202ep"),
]  # fmt: skip


@pytest.mark.parametrize("address", GOOD)
def test_an_address_has_one_meaning(address: str) -> None:
    bucket, prefix, url = GOOD[address]
    found = parse(address)
    assert (found.bucket, found.prefix, found.url) == (bucket, prefix, url)
    assert parse(found.url) == found
    assert S3Store.at(address, S3Options()).url == url


@pytest.mark.parametrize("address", BAD)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of an S3 store") as caught:
        parse(address)
    assert caught.value.remedy
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "address", ["s3://user:hunter2@bucket/p", "s3://hunter2@bucket", "s3://bucket:hunter2/p"]
)
def test_credentials_in_an_address_are_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError, match="a user, a password or a port") as caught:
        parse(address)
    assert "hunter2" not in f"{caught.value} {caught.value.remedy}"


@given(st.text(max_size=40))
def test_any_text_is_an_address_of_one_form_or_none(text: str) -> None:
    for address in (text, f"s3://{text}", f"s3://bucket/{text}"):
        try:
            found = parse(address)
        except ConfigError:
            continue
        assert parse(found.url) == found
        assert address.lower().startswith("s3://")
        assert address[5:].removesuffix("/") == found.url[5:]
        assert not {"", ".", ".."} & set(found.url[5:].split("/"))


def test_names_are_keys_below_the_prefix() -> None:
    store = parse("s3://bucket/a/b")
    assert store.key("records/r/1.age") == "a/b/records/r/1.age"
    assert store.name("a/b/records/r/1.age") == "records/r/1.age"
    for key in ("a/b/", "a/bc", "a/b", "c", "a/b//x", "a/b/.hidden", "a/b/x/", "a/b/ä", "a/b/../c"):
        assert store.name(key) is None
    assert parse("s3://bucket").name("a/b") == "a/b"
    with pytest.raises(InvalidNameError):
        store.key("../c")
    with pytest.raises(InvalidNameError):
        store.key_start("../")


def test_a_key_is_not_too_long() -> None:
    store = parse(f"s3://bucket/{'p' * MAX_PREFIX}")
    name = "/".join(["n" * 200] * 3)
    with pytest.raises(InvalidNameError, match=f"{MAX_KEY} bytes") as caught:
        store.key(name)
    assert caught.value.remedy
    assert len(store.key("n" * 200)) < MAX_KEY
