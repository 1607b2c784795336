"""The contract of all stores, on a real S3 server and on an imitation in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from moto import mock_aws
from servers.seaweed import REGION, Seaweed

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.store import ObjectStore, S3Options, open_store
from archiver.store.s3 import S3Store

from .contract import StoreContract, dictionary_test
from .contract_remote import PART, RemoteContract
from .contract_replace import ReplaceContract


class S3Contract(StoreContract, ReplaceContract, RemoteContract):
    """All of it, with fewer examples: each is many requests."""

    test_it_behaves_like_a_dictionary = dictionary_test(5)

    @pytest.fixture
    def store(self, fresh: Callable[[], ObjectStore]) -> ObjectStore:
        return fresh()


class TestSeaweed(S3Contract):
    """On SeaweedFS, as `open_store` gives it."""

    @pytest.fixture
    def fresh(self, seaweed: Seaweed, s3_url: str) -> Callable[[], ObjectStore]:
        numbers = iter(range(10**6))
        options = S3Options(AwsOptions(endpoint_url=seaweed.endpoint), part_size=PART)
        return lambda: open_store(f"{s3_url}/{next(numbers)}", options=options)


class TestMoto(S3Contract):
    """On moto in this process: fast, but it believes every checksum and every signature.

    Creators of one moment do not race here: it looks whether a name is free, and then takes it.
    """

    test_one_of_many_creators_wins = None

    @pytest.fixture
    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ObjectStore]]:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        numbers = iter(range(10**6))
        options = S3Options(AwsOptions(region=REGION), part_size=PART)
        with mock_aws():
            client("s3", options.aws).create_bucket(Bucket="bucket")
            yield lambda: S3Store.at(f"s3://bucket/{next(numbers)}", options)
