"""The contract of all stores, on a real S3 server and on moto's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from servers.seaweed import Seaweed

from archiver.aws.options import AwsOptions
from archiver.store import ObjectStore, S3Options
from archiver.store.s3 import S3Store

from .contract import StoreContract


class TestSeaweed(StoreContract):
    """The contract, on SeaweedFS."""

    @pytest.fixture
    def fresh(self, seaweed: Seaweed, s3_url: str) -> Callable[[], ObjectStore]:
        numbers = iter(range(10**6))
        options = S3Options(AwsOptions(endpoint_url=seaweed.endpoint), part_size=5 << 20)
        return lambda: S3Store.at(f"{s3_url}/{next(numbers)}", options)

    @pytest.fixture
    def store(self, fresh: Callable[[], ObjectStore]) -> ObjectStore:
        return fresh()
