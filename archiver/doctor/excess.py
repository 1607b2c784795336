"""Try out the rights that a writer should not have, on probes and with requests that change nothing."""

from __future__ import annotations

from archiver.doctor import bucket as of_bucket
from archiver.doctor import rights
from archiver.setup.probes import Probes
from archiver.store.probe import rights as asking
from archiver.store.probe.answer import Answer
from archiver.store.probe.bucket import Bucket
from archiver.store.s3.client import S3


def tried(
    s3: S3, probes: Probes, bucket: Bucket, server: str | None, *, writes: bool
) -> dict[str, Answer | None]:
    """The answers by right: None where it could not be asked, and no entry where it means nothing here.

    `writes` says whether a probe can be put; else what is deleted is not there, which needs the same right.
    """
    name = probes.name()
    put = asking.put(s3, name) if writes else None
    version = _version(put) if put is not None else None
    retagged = asking.retag(s3, name) if put is not None and put.done else None
    safe = asking.may_be_asked(server)
    found: dict[str, Answer | None] = {
        **({} if retagged is None else {rights.RETAGS: retagged}),
        "s3:DeleteObject": asking.delete(s3, name),
        "s3:PutLifecycleConfiguration": asking.put_lifecycle(s3) if safe else None,
        "s3:PutBucketPolicy": asking.put_policy(s3) if safe else None,
    }
    if version is not None or of_bucket.is_versioned(bucket) or bucket.versioning.denied:
        found["s3:DeleteObjectVersion"] = None
    if of_bucket.is_locking(bucket) or bucket.lock.denied:
        found["s3:BypassGovernanceRetention"] = None
    if version is not None:
        found |= _of_version(s3, name, version, bucket)
    return found


def _version(put: Answer) -> str | None:
    version = (put.value or {}).get("VersionId")
    return None if version in (None, "null") else str(version)


def _of_version(s3: S3, name: str, version: str, bucket: Bucket) -> dict[str, Answer | None]:
    plain = asking.delete_version(s3, name, version)
    retention = of_bucket.default_retention(bucket)
    if plain.done or retention is None:
        return {"s3:DeleteObjectVersion": plain}
    if retention[0] != "GOVERNANCE":
        return {}
    # Refused because the version is locked, or because the right is missing: past the lock it can be told.
    bypass = asking.delete_version(s3, name, version, bypass=True)
    version_too = {"s3:DeleteObjectVersion": bypass} if bypass.done else {}
    return {"s3:BypassGovernanceRetention": bypass, **version_too}
