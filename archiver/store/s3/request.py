"""A call of S3 as errors name it, and the answers that this package deals with itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    DamagedError,
    StoreError,
    StoreUnreachableError,
)


class ConditionFailedError(AlreadyExistsError):
    """The store answered 412: what the condition of the request asks for is not so."""


class ConflictError(StoreUnreachableError):
    """The store answered 409: another write of the same key was going on."""


class PastEndError(StoreError):
    """The store answered 416: the range begins at the end of the object or behind it."""


class NoSuchUploadError(StoreUnreachableError):
    """The multipart upload is finished, aborted or was never there: all of it has to be sent again."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call of S3, as far as an error has to name it."""

    operation: str
    """As boto3 spells its method, such as `put_object`."""
    bucket: str
    name: str | None
    """Of the object; None for a call about the bucket."""
    endpoint: str | None

    @property
    def what(self) -> str:
        """The object or bucket for a message."""
        return f"object {self.name}" if self.name is not None else f"bucket {self.bucket}"

    @property
    def where(self) -> str:
        """The server for a message, without what may be secret in its URL."""
        return "S3" if self.endpoint is None else self.endpoint.rpartition("@")[2].rpartition("//")[2]

    @property
    def action(self) -> str:
        """The permission that the call needs."""
        return _ACTIONS.get(self.operation, self.operation)


_ACTIONS = {
    "put_object": "s3:PutObject and s3:PutObjectTagging",
    "create_multipart_upload": "s3:PutObject and s3:PutObjectTagging",
    "upload_part": "s3:PutObject",
    "complete_multipart_upload": "s3:PutObject",
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "list_multipart_uploads": "s3:ListBucketMultipartUploads",
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "get_object_tagging": "s3:GetObjectTagging",
    "put_object_tagging": "s3:PutObjectTagging",
    "delete_object": "s3:DeleteObject",
    "list_objects_v2": "s3:ListBucket",
    "list_object_versions": "s3:ListBucketVersions",
}


UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading an answer raises that lacks what it must have, or has it in another shape."""


def not_understood(what: str) -> StoreError:
    """The error for an answer that cannot be read; `what` it is about."""
    return StoreError(
        f"the server's answer to a request for {what} cannot be understood",
        remedy="check that store.endpoint_url is that of an S3 server and that no proxy changes its answers",
    )


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Around what takes an answer apart: raises `StoreError` where it is not as it must be."""
    try:
        yield
    except ArchiverError:
        raise
    except UNREADABLE as error:
        raise not_understood(what) from error


SEND_AGAIN: Final = (
    "run it again; if it stays so, a proxy, the network or the memory of a machine changes bytes, or the "
    "server does not know such checksums (store.checksums)"
)


def damaged(what: str, how: str) -> DamagedError:
    """The error for bytes of an object that are not those of its checksum."""
    return DamagedError(f"{what} {how}", remedy=SEND_AGAIN)
