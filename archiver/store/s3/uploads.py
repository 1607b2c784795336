"""Multipart uploads that nobody will finish: they cost room, are seen by no listing, and must be aborted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from archiver.errors import ArchiverError
from archiver.store.s3.client import S3
from archiver.store.s3.request import NoSuchUploadError, understood


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A multipart upload that is neither completed nor aborted: of which object, and when it began."""

    name: str
    id: str
    begun: datetime


def unfinished(s3: S3, prefix: str = "") -> Iterator[Unfinished]:
    """The unfinished uploads of objects whose names start with `prefix`."""
    for page in s3.pages("list_multipart_uploads", Prefix=s3.address.key_start(prefix)):
        with understood(f"bucket {s3.address.bucket}"):
            found = [
                Unfinished(name, str(upload["UploadId"]), upload["Initiated"].astimezone(UTC))
                for upload in page.get("Uploads", ())
                if (name := s3.address.name(str(upload["Key"]))) is not None
            ]
        yield from found


def abandoned(s3: S3, older_than: timedelta, prefix: str = "") -> Iterator[Unfinished]:
    """Those that began more than `older_than` ago."""
    limit = datetime.now(UTC) - older_than
    return (upload for upload in unfinished(s3, prefix) if upload.begun < limit)


def abort(s3: S3, name: str, upload: str) -> bool:
    """Abort one; false if the store would not."""
    try:
        s3.call("abort_multipart_upload", name, UploadId=upload)
    except NoSuchUploadError:
        return True
    except ArchiverError:
        return False
    return True


def abort_others(s3: S3, name: str, own: str) -> None:
    """Abort the uploads of one object but the own one, as far as the store lets us."""
    with suppress(ArchiverError):
        for upload in list(unfinished(s3, name)):
            if upload.name == name and upload.id != own:
                abort(s3, name, upload.id)
