"""Whether what was overwritten or hidden can be seen: the first version of a record is the record."""

from __future__ import annotations

from archiver.doctor import bucket as of_bucket
from archiver.doctor.check import Check, ok, unknown, warning
from archiver.store.probe.answer import Answer
from archiver.store.probe.bucket import Bucket

_ELSE = "what was put over a record counts in its place, and one that a delete marker hides is missing"
_ALLOW = "allow it to writers and readers (docs/CONFIGURATION.md has a policy)"


def reading(bucket: Bucket, listed: Answer, read: Answer | None) -> Check:
    """What the answers to a list of the versions of an object, and to reading one of them, mean."""
    name = "reading versions"
    if bucket.versioning.value is not None and not of_bucket.is_versioned(bucket):
        return ok(name, "the bucket keeps none, so nobody needs to")
    if listed.denied:
        return warning(name, f"s3:ListBucketVersions is not allowed: {_ELSE}", _ALLOW)
    if not listed.done:
        return unknown(name, f"the server gives no list of versions ({listed.said}): {_ELSE}")
    if read is None:
        return unknown(name, "they can be listed; there was none to be read")
    if read.denied:
        return warning(
            name, f"s3:GetObjectVersion is not allowed: where something was overwritten, {_ELSE}", _ALLOW
        )
    if not read.done:
        return unknown(name, f"they can be listed; reading one was refused: {read.said}")
    return ok(name, "they can be listed and read: what is put over a record, or hides it, is not believed")
