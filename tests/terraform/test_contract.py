"""The contract of all stores, on the bucket that was applied, as the administrator.

Objects of several parts go up in one request here: ministack 1.5.33 drops the tags of a multipart upload, and
refuses a right CRC-64/NVME at its end. In parts they go up to SeaweedFS (`tests/store/test_s3.py`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from store.contract_remote import PART
from store.test_s3 import S3Contract

from archiver.aws.options import AwsOptions
from archiver.store import ObjectStore, S3Options, open_store
from terraform.applied import Applied


class TestAppliedBucket(S3Contract):
    """Below the store's prefix, each test in a place of its own."""

    @pytest.fixture
    def fresh(
        self, applied: Applied, sessions: Callable[[str], dict[str, str]], become: Callable[..., None]
    ) -> Callable[[], ObjectStore]:
        become(sessions("administrator"))
        numbers = iter(range(10**6))
        place = f"{applied.url}/contract/{secrets.token_hex(6)}"
        aws = AwsOptions(region="eu-central-1", endpoint_url=applied.endpoint)
        options = S3Options(aws, part_size=8 * PART)
        return lambda: open_store(f"{place}/{next(numbers)}", options=options)
