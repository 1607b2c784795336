"""Objects in the order of their names, also from servers that list folder by folder.

S3 lists keys in their order, in which `/` comes after `-` and `.`: `run-2/1`, then `run/1`. A server that
keeps keys as files walks `run/` first. Here what lies in a folder waits until no sibling can come before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any, Final

from archiver.errors import LimitExceededError, StoreError
from archiver.store.base import ObjectInfo
from archiver.store.s3.client import S3, size_of
from archiver.store.s3.contents import objects_of
from archiver.store.s3.request import understood

MAX_EMPTY: Final = 1000
"""Pages in a row that may name nothing; S3 gives some where versions that were deleted lie."""
MAX_WAITING: Final = 500_000
"""Keys that may wait in memory until their turn comes."""


def listed(s3: S3, prefix: str) -> Iterator[ObjectInfo]:
    """Objects whose names start with `prefix`; keys that cannot be an object's are passed over."""
    start = s3.address.key_start(prefix)
    return _below(s3, start) if prefix else _all(s3, start)


def _all(s3: S3, start: str) -> Iterator[ObjectInfo]:
    """The whole store, top folder by top folder, so that only what lies in a folder of one of them waits."""
    tops: dict[str, dict[str, Any] | None] = {}
    for page in _pages(s3, Prefix=start, Delimiter="/"):
        refuse_too_many(len(tops))
        tops.update(_keyed(s3, page))
        with understood(f"bucket {s3.address.bucket}"):
            tops.update((str(item["Prefix"]), None) for item in page.get("CommonPrefixes", ()))
    for key in sorted(tops):
        item = tops[key]
        if item is None:
            yield from _below(s3, key)
        elif (name := s3.address.name(key)) is not None:
            yield _info(name, item)


def _below(s3: S3, start: str) -> Iterator[ObjectInfo]:
    pages = _pages(s3, Prefix=start)
    items = (item for page in pages for item in _keyed(s3, page))
    last = ""
    for key, item in in_order(items, start.rfind("/") + 1):
        if key <= last:
            raise StoreError(
                f"the bucket {s3.address.bucket} does not list its objects in order",
                remedy="use a general purpose bucket, or another server",
            )
        last = key
        if (name := s3.address.name(key)) is not None:
            yield _info(name, item)


def _pages(s3: S3, **params: Any) -> Iterator[dict[str, Any]]:
    empty = 0
    for page in s3.pages("list_objects_v2", **params):
        empty = 0 if objects_of(page) or page.get("CommonPrefixes") else empty + 1
        if empty > MAX_EMPTY:
            raise StoreError(
                f"the bucket {s3.address.bucket} gave {empty} pages of a list in a row that name nothing",
                remedy="check the server; in a bucket with versions, let a rule remove old delete markers",
            )
        yield page


def refuse_too_many(waiting: int) -> None:
    """`LimitExceededError` where so many keys cannot be held in memory."""
    if waiting > MAX_WAITING:
        raise LimitExceededError(
            f"more than {MAX_WAITING} objects of one folder would have to be held in memory to sort the list",
            remedy="list a single run, or keep fewer of them in one store",
        )


def _keyed(s3: S3, page: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    with understood(f"bucket {s3.address.bucket}"):
        return [(str(item["Key"]), item) for item in objects_of(page)]


def in_order(items: Iterable[tuple[str, Any]], depth: int) -> Iterator[tuple[str, Any]]:
    """Keys (with what belongs to them) in their order, given so or as a walk through folders gives them.

    The first `depth` characters of all keys are the same, and end in a slash. What waits in memory is at most
    what lies in one folder there, and in the siblings that go before it.
    """
    waiting: list[tuple[str, int, Any]] = []
    for number, (key, item) in enumerate(items):
        while waiting and _is_settled(waiting[0][0][depth:], key[depth:]):
            first, _, its = heapq.heappop(waiting)
            yield first, its
        heapq.heappush(waiting, (key, number, item))
        refuse_too_many(len(waiting))
    while waiting:
        first, _, its = heapq.heappop(waiting)
        yield first, its


def _is_settled(key: str, now: str) -> bool:
    """Whether neither order brings a key before `key` any more when it is at `now`."""
    folder, slash, _ = key.partition("/")
    return not slash or now.partition("/")[0] > f"{folder}/"


def _info(name: str, item: dict[str, Any]) -> ObjectInfo:
    with understood(f"object {name}"):
        modified = item["LastModified"].astimezone(UTC)
        return ObjectInfo(name, size_of(item["Size"]), modified, etag=item.get("ETag"))
