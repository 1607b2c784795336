"""What the set-up of a bucket means for the runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from archiver.doctor import lifecycle
from archiver.doctor.check import Check, failure, ok, unknown, warning
from archiver.errors import RefusedError
from archiver.lifecycle.rules import Wanted
from archiver.store.probe.answer import Answer
from archiver.store.probe.bucket import Bucket

_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")


def judge(bucket: Bucket, wanted: Wanted) -> Iterator[Check]:
    """A line for each part of the set-up, for a store that wants such rules."""
    yield versioning(bucket.versioning)
    yield object_lock(bucket)
    yield encryption(bucket.encryption)
    yield public_access(bucket.public_access, bucket.policy_status)
    unseen = bucket.versioning.value is None and not bucket.versioning.unsupported
    yield from lifecycle_of(bucket.lifecycle, wanted, unseen=unseen)


def is_versioned(bucket: Bucket) -> bool:
    """Whether the bucket keeps versions, or may hold some from before that was suspended."""
    return (bucket.versioning.value or {}).get("Status") in ("Enabled", "Suspended")


def is_locking(bucket: Bucket) -> bool:
    """Whether versions in the bucket can be locked."""
    configured = (bucket.lock.value or {}).get("ObjectLockConfiguration") or {}
    return configured.get("ObjectLockEnabled") == "Enabled"


def default_retention(bucket: Bucket) -> tuple[str, str] | None:
    """Mode and length of the lock that every new object gets, such as `GOVERNANCE`, `30 days`."""
    configured = (bucket.lock.value or {}).get("ObjectLockConfiguration") or {}
    rule = (configured.get("Rule") or {}).get("DefaultRetention") or {}
    if "Mode" not in rule:
        return None
    count, unit = (rule["Years"], "year") if "Years" in rule else (rule.get("Days", 0), "day")
    return str(rule["Mode"]), f"{count} {unit}{'' if count == 1 else 's'}"


def versioning(answer: Answer) -> Check:
    name = "versioning"
    if answer.value is None:
        return _unseen(name, answer, "s3:GetBucketVersioning")
    status = answer.value.get("Status")
    if status == "Enabled":
        return ok(name, "on: what is deleted or replaced stays as an old version until a rule removes it")
    state = "suspended" if status else "off"
    return warning(
        name,
        f"{state}: whoever may delete an object removes it for good, and `rekey` leaves no way back",
        "turn it on (`aws s3api put-bucket-versioning`), with a rule that expires old versions",
    )


def object_lock(bucket: Bucket) -> Check:
    name, answer = "object lock", bucket.lock
    if answer.value is None:
        return (
            ok(name, _NO_LOCK)
            if answer.absent
            else _unseen(name, answer, "s3:GetBucketObjectLockConfiguration")
        )
    if not is_locking(bucket):
        return ok(name, _NO_LOCK)
    retention = default_retention(bucket)
    if retention is None:
        return ok(name, "on, without a default: only versions that somebody locks are protected")
    mode, length = retention
    return ok(
        name,
        f"on, {mode.lower()} mode for {length}: versions are protected so long, also from rules; a delete "
        "marker can still hide them",
    )


_NO_LOCK = "none: nothing protects a version from whoever may delete versions"


def encryption(answer: Answer) -> Check:
    """What lies in a bucket is sealed; a key of the bucket's own is a second lock, and logs who reads."""
    name = "encryption"
    if answer.value is None and not answer.absent:
        return _unseen(name, answer, "s3:GetEncryptionConfiguration")
    found = answer.value or {}
    rule = ((found.get("ServerSideEncryptionConfiguration") or {}).get("Rules") or [{}])[0]
    default = rule.get("ApplyServerSideEncryptionByDefault") or {}
    word, key = default.get("SSEAlgorithm"), default.get("KMSMasterKeyID")
    if not str(word or "").startswith("aws:kms"):
        used = f"{word} with a key of the server's" if word else "none of the server's own"
        return warning(name, f"{used}: only the own sealing protects what is saved, {_ONE_LOCK}", _SSE_KMS)
    used = f"{word}{f' with {key}' if key else ''}"
    if rule.get("BucketKeyEnabled") is not True and word == "aws:kms":
        return warning(
            name,
            f"{used}, without a bucket key: each request is one to KMS, which costs, and throttles many",
            "turn the bucket key on (BucketKeyEnabled; `aws s3api put-bucket-encryption`)",
        )
    needs = "; readers and writers need rights on that key too" if key else ""
    return ok(name, f"{used}, on top of the own sealing{needs}")


_ONE_LOCK = "and names, sizes and times of objects lie as the server keeps them"
_SSE_KMS = (
    "set SSE-KMS with a bucket key as the default of the bucket (`aws s3api put-bucket-encryption`; "
    "`terraform/` does)"
)


def public_access(block: Answer, policy: Answer) -> Check:
    name = "public access"
    if (policy.value or {}).get("PolicyStatus", {}).get("IsPublic"):
        return failure(
            name,
            "the bucket's policy makes it public",
            "remove the statement for everybody (Principal *), and block public access",
            RefusedError,
        )
    if block.value is None:
        if block.absent:
            return warning(name, "not blocked: a policy or an ACL could open the bucket to everybody", _BLOCK)
        return _unseen(name, block, "s3:GetBucketPublicAccessBlock")
    configured = block.value.get("PublicAccessBlockConfiguration") or {}
    missing = [word for word in _BLOCKS if not configured.get(word)]
    if missing:
        return warning(name, f"only blocked in part: {', '.join(missing)} is off", _BLOCK)
    return ok(name, "blocked")


_BLOCK = "block all four kinds (`aws s3api put-public-access-block`)"


def lifecycle_of(answer: Answer, wanted: Wanted, *, unseen: bool = False) -> list[Check]:
    """`unseen` where it cannot be seen whether the bucket keeps versions: then only what holds either way is
    said of the rules, and that the rest is not known.
    """
    if answer.value is None and not answer.absent:
        return [_unseen(lifecycle.NAME, answer, "s3:GetLifecycleConfiguration")]
    found = answer.value or {}

    def checks(wanted: Wanted) -> list[Check]:
        return lifecycle.checks(found.get("Rules", []), wanted, found.get("Unknown", ()))

    if not unseen:
        return checks(wanted)
    with_versions, without = (checks(replace(wanted, versioned=one)) for one in (True, False))
    certain = [check for check in with_versions if check.verdict != "ok" and check in without]
    return [*certain, unknown(lifecycle.NAME, _EITHER, "allow s3:GetBucketVersioning")]


_EITHER = (
    "whether the rules are as they should be depends on whether the bucket keeps versions, which is unknown"
)


def _unseen(name: str, answer: Answer, right: str) -> Check:
    if answer.unsupported:
        return unknown(name, "this server has nothing of the kind, or does not tell")
    if answer.denied:
        return unknown(name, f"these credentials may not look ({right})")
    return unknown(name, f"no answer: {answer.said}", answer.error.remedy if answer.error else None)
