"""What the answers of an S3 server say about the server."""

from __future__ import annotations

from collections.abc import Mapping

from archiver.doctor.check import ENFORCED, NOT_ENFORCED, Check, failed, failure, ok, unknown, warning
from archiver.errors import (
    ClockSkewError,
    ConfigError,
    RefusedError,
    StoreError,
    UnfencedStoreError,
)
from archiver.setup.fencing import Fencing
from archiver.store.probe.answer import Answer
from archiver.store.probe.server import Reach

SKEW_TO_MENTION = 30.0
SKEW_TO_FAIL = 600.0
"""Seconds; S3 refuses every request from 900 on."""
SLOW = 1.0
"""Seconds of a small request from which many of them are tedious."""


def reached(reach: Reach, url: str) -> Check:
    """The first line: whether anything at all can be said of the store."""
    name = "store"
    error = reach.first.error
    if error is not None and not reach.first.denied:
        return failed(name, error)
    if error is not None and reach.first.code not in ("AccessDenied", "Forbidden", "403"):
        return failed(name, error)  # not a missing right, but credentials that are no good at all
    took = f"{reach.latency * 1000:.0f} ms a request"
    who = f", {reach.server}" if reach.server else ""
    if reach.latency > SLOW:
        return warning(
            name, f"{url} is far away: {took}{who}", "raise store.parallel; archive from nearer by"
        )
    return ok(name, f"{url} answers in {took.removesuffix(' a request')}{who}")


def clock(reach: Reach) -> Check:
    name = "clock"
    if reach.skew is None:
        return unknown(name, "the server says no time that could be compared")
    way = "ahead of" if reach.skew > 0 else "behind"
    apart = f"this machine's clock is {abs(reach.skew):.0f} s {way} the server's"
    remedy = "set this machine's clock (`timedatectl set-ntp true`)"
    if abs(reach.skew) > SKEW_TO_FAIL:
        return failure(name, f"{apart}: S3 refuses requests from 15 minutes on", remedy, ClockSkewError)
    if abs(reach.skew) > SKEW_TO_MENTION:
        return warning(name, apart, remedy)
    return ok(name, "that of this machine and that of the server agree" if not reach.skew else apart)


def credentials(source: str | None, identity: Answer, *, aws: bool) -> Check:
    name = "credentials"
    found = f"from {source}" if source else "of unknown origin"
    arn = (identity.value or {}).get("Arn")
    if arn:
        root = str(arn).endswith(":root")
        if root:
            return warning(name, f"{arn}, {found}: the root of the account", "use a role or user of its own")
        return ok(name, f"{arn}, {found}")
    why = (
        "this server does not say whose they are" if not aws else f"STS does not say whose ({identity.said})"
    )
    return unknown(name, f"{found}; {why}")


def region(location: Answer, first: Answer, configured: str | None) -> Check:
    """Where the bucket is, and where the requests go."""
    name = "bucket"
    there = region_of(location, first)
    if there is None:
        return unknown(name, "is there; in which region is not told (s3:GetBucketLocation)")
    if configured is not None and there != configured:
        return warning(
            name,
            f"is in {there}, and store.region says {configured}: requests go a longer way or fail",
            f'set store.region = "{there}"',
        )
    return ok(name, f"is there, in {there}")


def region_of(location: Answer, first: Answer) -> str | None:
    """The region of the bucket, as far as it is told."""
    there = first.headers.get("x-amz-bucket-region") or location.headers.get("x-amz-bucket-region")
    if there is None and location.value is not None:
        there = location.value.get("LocationConstraint") or "us-east-1"
    return {"EU": "eu-west-1"}.get(str(there), there)


def key_regions(there: str | None, keys: Mapping[str, str]) -> Check | None:
    """In which regions keys of KMS lie (by ARN) beside the bucket; None without such keys.

    Which regions are allowed is for the policies of an account to say: this only tells what is used.
    """
    name = "regions"
    if not keys:
        return None
    if there is None:
        return unknown(
            name, f"keys of KMS lie in {', '.join(sorted(set(keys.values())))}, the bucket is not told"
        )
    away = {arn: region for arn, region in keys.items() if region != there}
    if len(away) == len(keys):
        return warning(
            name,
            f"no key of KMS lies where the bucket does, in {there}: each save and restore needs two regions, "
            f"and policies have to allow {', '.join(sorted(set(away.values())))} too",
            "use a key, or a replica of a multi-region key, in the region of the bucket",
        )
    others = f", others in {', '.join(sorted(set(away.values())))}" if away else ""
    return ok(name, f"bucket and keys of KMS lie in {there}{others}")


def fencing(found: Fencing, *, wanted: bool) -> Check:
    """Whether of two writers of one run the loser is always told; nothing is promised but what was seen."""
    name = "fencing"
    if found.enforced is None:
        return unknown(
            name,
            "a second create was refused, but the store failed while several ran at the same moment",
            "run doctor again when the store is less busy",
        )
    if found.enforced and wanted:
        return ok(name, f"{ENFORCED}: of two creates of one name one is refused, also at the same moment")
    if found.enforced:
        return warning(
            name,
            f"{ENFORCED}, although store.fencing is false",
            "remove store.fencing from the configuration: the store has what it says is missing",
        )
    how = "at the same moment" if found.in_turn else "one after the other"
    text = f"{NOT_ENFORCED}: two writers of one run can both win (two creates of one name, {how}, did)"
    if not wanted:
        return warning(name, f"{text}; store.fencing = false accepts that", "give every run one writer only")
    return failure(
        name,
        text,
        "use a server that enforces If-None-Match (docs/S3.md); or accept it with store.fencing = false, if "
        "every run has one writer only",
        UnfencedStoreError,
    )


def no_fencing(answer: Answer) -> Check | None:
    """What a refusal of every conditional put means; None for another refusal."""
    if not answer.unsupported:
        return None
    return failure(
        "fencing",
        f"{NOT_ENFORCED}: the server knows no conditional puts ({answer.said}), so nothing can be saved",
        "use a server that enforces If-None-Match (docs/S3.md)",
        UnfencedStoreError,
    )


def multipart(answer: Answer) -> Check:
    name = "multipart"
    if answer.done:
        return ok(name, "works; completed onto a name that is taken it wins, and nothing here relies on that")
    if answer.status in (409, 412):
        return ok(name, "works, and is refused onto a name that is taken; nothing here relies on that")
    if answer.denied:
        return unknown(name, f"these credentials may not use it ({answer.said})")
    if answer.error is not None and not answer.refused:
        return failed(name, answer.error)
    return failure(
        name,
        f"does not work: the server refuses it ({answer.said})",
        "objects above store.part_size cannot be stored; raise it, up to 1GiB",
        StoreError,
    )


def checksum(what: str, answer: Answer, *, sent: bool) -> Check:
    """Whether a put with the wrong checksum was refused; `sent` says whether saves carry such a one."""
    name = "checksums"
    if answer.done:
        found = f"a put with a wrong {what} is accepted: the server does not check it"
        remedy = (
            "damage on the way to the server is seen only when somebody restores; use another server, or TLS"
        )
        return failure(name, found, remedy, StoreError) if sent else warning(name, found, remedy)
    if answer.unsupported:
        found = f"the server knows no {what}"
        return (
            failure(name, found, 'set store.checksums to "basic" or "off"', ConfigError)
            if sent
            else unknown(name, found)
        )
    if answer.refused:
        return ok(name, f"a put with a wrong {what} is refused")
    return unknown(name, f"whether a wrong {what} is refused is not known: {answer.said}")


def strangers(listing: Answer, reading: Answer | None) -> Check:
    """What somebody without credentials gets."""
    name = "strangers"
    seen = ["list the objects"] if listing.done else []
    seen += ["read them"] if reading is not None and reading.done else []
    if seen:
        return failure(
            name,
            f"anybody may {' and '.join(seen)} without credentials: run ids, sizes, times, sealed bytes",
            "remove what makes the bucket public",
            RefusedError,
        )
    if listing.denied and (reading is None or reading.denied):
        return ok(name, "without credentials nothing is listed or read")
    return unknown(name, f"what is seen without credentials is not known: {listing.said}")
