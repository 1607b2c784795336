"""The server itself: how far away, what time it has, who it takes us for, what strangers may see."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from archiver.aws import door
from archiver.store.probe.answer import Answer, ask, ask_of
from archiver.store.s3.client import S3

_TIMES = 3


@dataclass(frozen=True, slots=True)
class Reach:
    """What came of a few small requests."""

    first: Answer
    """The listing of one object of the store."""
    latency: float
    """Seconds of the fastest."""
    skew: float | None
    """Seconds that this machine's clock is ahead of the server's, as near as its answers tell."""
    server: str | None
    """What the server calls itself."""


def reach(s3: S3, now: Callable[[], datetime]) -> Reach:
    """List one object a few times, and compare clocks."""
    answers: list[Answer] = []
    seconds: list[float] = []
    skews: list[float] = []
    for _ in range(_TIMES):
        before, started = now(), time.monotonic()
        answers.append(ask(s3, "list_objects_v2", Prefix=s3.address.prefix, MaxKeys=1))
        seconds.append(time.monotonic() - started)
        if not answers[-1].status:
            break  # no answer: neither time nor clock is to be had, and asking again takes as long
        skew = _skew(before, now(), answers[-1].headers.get("date"))
        skews += [] if skew is None else [skew]
    first = answers[0]
    return Reach(first, min(seconds), min(skews, key=abs, default=None), first.headers.get("server"))


def _skew(before: datetime, after: datetime, date: str | None) -> float | None:
    """How far the clocks are apart at least: the server's time has whole seconds, and was taken between."""
    try:
        server = parsedate_to_datetime(date or "")
        late, early = (before - server - timedelta(seconds=1)), (after - server)
    except (TypeError, ValueError):
        return None
    if late <= timedelta() <= early:
        return 0.0
    return min(late.total_seconds(), early.total_seconds(), key=abs)


def identity(s3: S3) -> Answer:
    """Who these credentials are, as STS says it: AWS's, or that of the store's own server if it has one."""
    aws = s3.options.aws
    quick = replace(aws, attempts=1, timeout=min(aws.timeout, 5.0))
    request = s3.request("get_caller_identity", None)
    return ask_of(lambda: door.client("sts", quick), "get_caller_identity", request)


def anonymous(s3: S3, name: str | None = None) -> tuple[Answer, Answer | None]:
    """Whether somebody without credentials may list the store, and (with `name`) read that object."""
    made: list[Any] = []

    def stranger() -> Any:
        if not made:
            made.append(door.client("s3", s3.options.aws, signature_version=door.UNSIGNED))
        return made[0]

    bucket, prefix = s3.address.bucket, s3.address.prefix
    request = s3.request("list_objects_v2", None)
    listing = ask_of(stranger, "list_objects_v2", request, Bucket=bucket, Prefix=prefix, MaxKeys=1)
    if name is None:
        return listing, None
    request = s3.request("head_object", name)
    return listing, ask_of(stranger, "head_object", request, Bucket=bucket, Key=s3.address.key(name))
