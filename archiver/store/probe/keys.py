"""The keys below a prefix as they are, whether or not a store could have made them."""

from __future__ import annotations

from collections.abc import Iterator

from archiver.store.s3.client import S3
from archiver.store.s3.contents import objects_of


def keys(s3: S3) -> Iterator[str]:
    """Every key below the store's prefix, without it. Raises the store's errors.

    The prefix itself, which consoles make as an empty object to show it as a folder, is none.
    """
    prefix = s3.address.prefix
    for page in s3.pages("list_objects_v2", Prefix=prefix):
        for item in objects_of(page):
            key = str(item["Key"]).removeprefix(prefix)
            if key:
                yield key
