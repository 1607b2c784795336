"""How the bucket is set up, as far as these credentials may see it."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.errors import ArchiverError
from archiver.store.probe.answer import Answer, ask, from_error
from archiver.store.s3 import rules
from archiver.store.s3.client import S3


@dataclass(frozen=True, slots=True)
class Bucket:
    """The answers about one bucket."""

    location: Answer
    versioning: Answer
    lock: Answer
    encryption: Answer
    public_access: Answer
    policy_status: Answer
    lifecycle: Answer


def bucket(s3: S3) -> Bucket:
    """Ask for each part of the bucket's set-up."""
    return Bucket(
        location=ask(s3, "get_bucket_location"),
        versioning=ask(s3, "get_bucket_versioning"),
        lock=ask(s3, "get_object_lock_configuration"),
        encryption=ask(s3, "get_bucket_encryption"),
        public_access=ask(s3, "get_public_access_block"),
        policy_status=ask(s3, "get_bucket_policy_status"),
        lifecycle=_lifecycle(s3),
    )


def _lifecycle(s3: S3) -> Answer:
    """The rules, with what the client would not tell of them as `Unknown`."""
    try:
        found = rules.get(s3)
    except ArchiverError as error:
        return from_error(error)
    return Answer(value={"Rules": found.rules, "Unknown": found.unknown}, status=200)
