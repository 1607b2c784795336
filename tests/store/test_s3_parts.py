"""Bodies cut into parts, with their checksums, and the memory that this takes."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.seaweed import Seaweed

from archiver.aws.door import crc64nvme
from archiver.aws.options import AwsOptions
from archiver.errors import LimitExceededError
from archiver.store import S3Options
from archiver.store.s3 import S3Store, parts
from archiver.store.s3.client import S3

from .contract import NAME
from .contract_remote import BIG, PART, blocks


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 30))
def test_a_body_is_cut_into_full_parts_and_a_rest(body: list[bytes], size: int) -> None:
    found = [part.getvalue() for part in parts.cut(body, size)]
    whole = b"".join(body)
    assert found == [whole[start : start + size] for start in range(0, len(whole), size)]


def test_checksums_as_they_are_published() -> None:
    """The check values of the catalogue of CRCs, for the digits 1 to 9, and of FIPS 180-4, for abc."""
    digits = b"123456789"
    assert crc64nvme(digits) == crc64nvme(digits[4:], crc64nvme(digits[:4])) == 0xAE8B14860A799888
    assert parts.crc64(crc64nvme(digits)) == parts.base64_of(bytes.fromhex("ae8b14860a799888"))
    assert parts.crc32(digits) == parts.base64_of(bytes.fromhex("cbf43926"))
    assert parts.sha256(b"abc") == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="


@pytest.fixture
def store(seaweed: Seaweed, s3_url: str) -> S3Store:
    return S3Store.at(s3_url, S3Options(AwsOptions(endpoint_url=seaweed.endpoint), part_size=PART))


def test_a_large_body_takes_the_memory_of_a_few_parts(store: S3Store) -> None:
    block = bytes(1 << 20)

    def body() -> Iterator[bytes]:
        for _ in range(12):
            yield from [block] * (PART >> 20)

    store.create("warm", [b"up"], retention="live")
    tracemalloc.start()
    try:
        store.create(NAME, body(), retention="live")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert store.head(NAME).size == 12 * PART
    assert peak < 5.5 * PART, "four parts, and what the growth of one and the client take"


def test_parts_go_at_the_same_time(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3)
    call = S3.call

    def waiting(self: S3, operation: str, *args: Any, **named: Any) -> dict[str, Any]:
        if operation == "upload_part":
            together.wait(timeout=120)
        return call(self, operation, *args, **named)

    monkeypatch.setattr(S3, "call", waiting)
    assert store.create(NAME, blocks(), retention="live").size == len(BIG)


def test_more_parts_than_s3_takes_are_refused(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.store.s3.upload.MAX_PARTS", 2)
    store.create(NAME, blocks(BIG[: 2 * PART]), retention="live")
    with pytest.raises(LimitExceededError, match="more than 2 parts") as caught:
        store.create("bundles/other", blocks(), retention="live")
    assert "store.part_size" in (caught.value.remedy or "")
    assert [info.name for info in store.list()] == [NAME]
    assert list(store.abandoned_uploads(timedelta(seconds=-60))) == []
