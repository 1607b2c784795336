"""Does the server notice that bytes arrive other than they were sent, and a name that is taken?

Every object made here is a probe under a name of the caller, who removes it.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress

from archiver.errors import ArchiverError
from archiver.store.probe.answer import Answer, ask, from_error
from archiver.store.s3.client import CLASS_TAG, S3

_TAGGING = f"{CLASS_TAG}=live"
_BODY = b"these bytes"
_OTHER = b"other bytes"


def wrong_sha256(s3: S3, name: str) -> Answer:
    """A put whose SHA-256 is that of other bytes; to be refused."""
    digest = base64.b64encode(hashlib.sha256(_OTHER).digest()).decode()
    return _put(s3, name, ChecksumSHA256=digest)


def wrong_md5(s3: S3, name: str) -> Answer:
    """A put whose Content-MD5 is that of other bytes; to be refused."""
    digest = base64.b64encode(hashlib.md5(_OTHER, usedforsecurity=False).digest()).decode()
    return _put(s3, name, ContentMD5=digest)


def _put(s3: S3, name: str, **checksum: str) -> Answer:
    # Conditional like every put of a save: a policy of the bucket may demand it.
    return ask(s3, "put_object", name, Body=_BODY, Tagging=_TAGGING, IfNoneMatch="*", **checksum)


def taken_multipart(s3: S3, name: str) -> Answer:
    """Complete a multipart upload, on condition that the name is free, onto a name that is taken.

    To be refused where conditions hold for multipart uploads too. The answer of an earlier step stands for
    one that does not get so far.
    """
    begun = ask(s3, "create_multipart_upload", name, Tagging=_TAGGING)
    if begun.value is None:
        return begun
    upload = str(begun.value["UploadId"])
    part = ask(s3, "upload_part", name, UploadId=upload, PartNumber=1, Body=_OTHER)
    if part.value is None:
        completed = part
    else:
        parts = {"Parts": [{"PartNumber": 1, "ETag": part.value["ETag"]}]}
        completed = ask(
            s3, "complete_multipart_upload", name, UploadId=upload, MultipartUpload=parts, IfNoneMatch="*"
        )
    if not completed.done:
        with suppress(ArchiverError):  # what stays is found by the check of unfinished uploads
            s3.call("abort_multipart_upload", name, UploadId=upload)
    return completed


def tags(s3: S3, name: str) -> Answer:
    """The tags of the object."""
    try:
        return Answer(value=dict(s3.tags(name)), status=200)
    except ArchiverError as error:
        return from_error(error)
