"""The lifecycle configuration of the bucket: read whole, and replaced whole, for S3 knows nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from archiver.aws.door import ClientError, code_of
from archiver.errors import StoreDeniedError, StoreError
from archiver.store.s3 import contents
from archiver.store.s3.client import S3
from archiver.store.s3.request import UNREADABLE, not_understood

_GET: Final = "get_bucket_lifecycle_configuration"
_PUT: Final = "put_bucket_lifecycle_configuration"
_RIGHTS: Final = {_GET: "s3:GetLifecycleConfiguration", _PUT: "s3:PutLifecycleConfiguration"}
_NONE: Final = ("NoSuchLifecycleConfiguration", "NoSuchLifecycle")
_SIZES: Final = "TransitionDefaultMinimumObjectSize"
_KNOWN: Final = frozenset(
    (
        *("LifecycleConfiguration", "Rule", "ID", "Status", "Prefix", "Filter", "And", "Tag", "Key", "Value"),
        *("ObjectSizeGreaterThan", "ObjectSizeLessThan", "Expiration", "Date", "Days"),
        *("ExpiredObjectDeleteMarker", "Transition", "StorageClass", "NoncurrentVersionTransition"),
        *("NoncurrentVersionExpiration", "NoncurrentDays", "NewerNoncurrentVersions"),
        *("AbortIncompleteMultipartUpload", "DaysAfterInitiation"),
    )
)
"""The elements that boto3 keeps; others it drops without a word, so they would be lost by a put."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The rules of a bucket as boto3 gives them, and what else the configuration has."""

    rules: list[dict[str, Any]]
    more: dict[str, Any] = field(default_factory=dict)
    """Settings beside the rules, to be put again with them."""
    unknown: tuple[str, ...] = ()
    """Elements that only this server has: what they do is not known, and a put would lose them."""


def get(s3: S3) -> Configuration:
    """The configuration, without rules where there is none.

    `StoreDeniedError` without the right to see it; `StoreError` from a server that has nothing of the kind.
    """
    try:
        answer = _call(s3, _GET)
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, ClientError) and code_of(cause) in _NONE:
            return Configuration([])
        raise
    try:
        rules = [dict(rule) for rule in answer.get("Rules", [])]
    except UNREADABLE as error:
        raise not_understood(f"the lifecycle rules of bucket {s3.address.bucket}") from error
    more = {_SIZES: answer[_SIZES]} if answer.get(_SIZES) else {}
    return Configuration(rules, more, tuple(sorted(set(answer.get(contents.ELEMENTS, ())) - _KNOWN)))


def put(s3: S3, configuration: Configuration) -> None:
    """Replace all rules of the bucket; raises as `get`."""
    _call(s3, _PUT, LifecycleConfiguration={"Rules": configuration.rules}, **configuration.more)


def _call(s3: S3, operation: str, **params: Any) -> dict[str, Any]:
    try:
        return s3.call(operation, **params)
    except StoreDeniedError as error:
        error.remedy = f"allow {_RIGHTS[operation]} on the bucket: a right of administrators, not of writers"
        raise
