"""The settings of `[store]` and `[keys]` as what clients of S3 and KMS take."""

from __future__ import annotations

from archiver.aws.options import AwsOptions
from archiver.config import Settings
from archiver.store import ObjectStore, S3Options


def store_options(settings: Settings) -> S3Options:
    """How the configured store is reached, if it is one on S3."""
    store = settings.store
    aws = _aws(settings, store.endpoint_url)
    return S3Options(aws, store.checksums, store.part_size, largest=settings.limits.run)


def is_remote(store: ObjectStore) -> bool:
    """Whether the store lies on a server, and not in a folder."""
    return not store.url.startswith("file:")


def kms_options(settings: Settings) -> AwsOptions:
    """How KMS is reached; the region of a key is that of its ARN."""
    return _aws(settings, settings.keys.kms_endpoint_url)


def _aws(settings: Settings, endpoint_url: str | None) -> AwsOptions:
    store = settings.store
    return AwsOptions(
        region=store.region,
        endpoint_url=endpoint_url,
        profile=store.profile,
        attempts=store.attempts,
        timeout=store.timeout.total_seconds(),
        parallel=store.parallel,
    )
