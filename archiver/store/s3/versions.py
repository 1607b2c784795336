"""All versions of objects, and the markers that hide them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any

from archiver.errors import StoreError
from archiver.store.base import ObjectVersion
from archiver.store.s3.client import S3, size_of
from archiver.store.s3.listing import MAX_EMPTY, in_order, refuse_too_many
from archiver.store.s3.request import understood


def listed(s3: S3, prefix: str) -> Iterator[ObjectVersion]:
    """Versions of the objects whose names start with `prefix`, sorted by name, the newest first."""
    start = s3.address.key_start(prefix)
    return _below(s3, start) if prefix else _all(s3, start)


def _all(s3: S3, start: str) -> Iterator[ObjectVersion]:
    """The whole store, top folder by top folder, so that only what lies in a folder of one of them waits."""
    tops: dict[str, list[ObjectVersion | None]] = {}
    for page in _pages(s3, start, Delimiter="/"):
        refuse_too_many(len(tops))
        for key, found in _keyed(s3, page):
            tops.setdefault(key, []).append(found)
        with understood(f"bucket {s3.address.bucket}"):
            tops.update((str(item["Prefix"]), []) for item in page.get("CommonPrefixes", ()))
    for key in sorted(tops):
        if tops[key]:
            yield from (found for found in tops[key] if found is not None)
        else:
            yield from _below(s3, key)


def _below(s3: S3, start: str) -> Iterator[ObjectVersion]:
    items = (item for page in _pages(s3, start) for item in _keyed(s3, page))
    last = ""
    for key, found in in_order(items, start.rfind("/") + 1):
        if key < last:
            raise StoreError(
                f"the bucket {s3.address.bucket} does not list its versions in order",
                remedy="use a general purpose bucket, or another server",
            )
        last = key
        if found is not None:
            yield found


def _pages(s3: S3, start: str, **params: Any) -> Iterator[dict[str, Any]]:
    empty = 0
    for page in s3.pages("list_object_versions", Prefix=start, **params):
        named = page.get("Versions") or page.get("DeleteMarkers") or page.get("CommonPrefixes")
        empty = 0 if named else empty + 1
        if empty > MAX_EMPTY:
            raise StoreError(
                f"the bucket {s3.address.bucket} gave {empty} pages of versions in a row that name nothing",
                remedy="check the server",
            )
        yield page


def _keyed(s3: S3, page: dict[str, Any]) -> list[tuple[str, ObjectVersion | None]]:
    """What a page names; boto3 gives versions and markers apart, so they are put in one order again.

    Two of one name and time stay in the order of the server, which gives the newest first.
    """
    with understood(f"bucket {s3.address.bucket}"):
        found = [
            (str(item["Key"]), _version(s3, item, deleted=deleted))
            for word, deleted in (("DeleteMarkers", True), ("Versions", False))
            for item in page.get(word, ())
        ]
        found.sort(key=lambda pair: pair[1].modified.timestamp() if pair[1] else 0.0, reverse=True)
        found.sort(key=lambda pair: (pair[0], not (pair[1] and pair[1].latest)))
        return found


def _version(s3: S3, item: dict[str, Any], *, deleted: bool) -> ObjectVersion | None:
    """None for a key that cannot be an object's."""
    name = s3.address.name(str(item["Key"]))
    if name is None:
        return None
    return ObjectVersion(
        name,
        str(item["VersionId"]),
        item["LastModified"].astimezone(UTC),
        0 if deleted else size_of(item["Size"]),
        item.get("ETag"),
        deleted,
        bool(item["IsLatest"]),
    )
